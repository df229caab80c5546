"""Builder of the site from `docs/` and the package's sources: `mkdocs.yml` names the hook, `make docs` runs it.

Pages of the reference are made when the site is built, of docstrings, definitions and parsers; nothing of them is
committed. `pages.py` lists them.
"""
