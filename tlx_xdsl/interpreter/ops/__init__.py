"""The implementation of each operation, by topic: every file here registers what it holds when it is imported."""

import importlib
import pkgutil
from functools import cache


@cache
def register_all() -> None:
    """Import every file of this package."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
