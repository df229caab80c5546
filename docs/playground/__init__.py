"""The playground: a page that runs the compiler in the browser. `docs/site/playground.py` puts its files together."""
