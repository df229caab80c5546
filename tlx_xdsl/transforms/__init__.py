"""The passes, one per file, and `pipelines`, which puts them in order."""
