"""The kernels of the corpus, written for it, one file per topic."""
