"""The implementation of each operation, by topic: every file here registers what it holds when it is imported."""

import importlib
import pkgutil
from functools import cache

from tlx_xdsl import wings


@cache
def register_all() -> None:
    """Import every file of this package, and what wings register."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    wings.import_all("operations")
