"""`check(kernel, grid, ...)`: run a kernel at small sizes and in all orders that make a difference.

The function is in `run.py`, and is loaded when it is first used: command lines ask for the defaults alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .run import check

__all__ = ["check"]


def __getattr__(name: str) -> Any:
    if name != "check":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from .run import check

    return check
