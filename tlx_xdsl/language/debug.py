"""Functions that print and check, and the barrier for debugging."""

from __future__ import annotations

from .arguments import Flag, Text, Value
from .marks import builtin

__all__ = ["debug_barrier", "device_assert", "device_print", "static_assert", "static_print"]

_tl = builtin("tl")


@_tl
def debug_barrier() -> None:
    """Wait for all threads of the program."""


@_tl
def device_assert(cond: Value, msg: Text = "", mask: Value | None = None) -> None:
    """Stop the kernel with `msg` when `cond` is false somewhere that `mask` is true; compiled in debug mode only."""


@_tl
def device_print(prefix: Text, *args: Value, hex: Flag = False) -> None:
    """Print the constexpr text `prefix` and values from the GPU; integers in hexadecimal with `hex`."""


@_tl
def static_assert(cond: object, msg: Text = "") -> None:
    """Stop the compilation with `msg` when the constexpr `cond` is false."""


@_tl
def static_print(*values: object, sep: Text = " ", end: Text = "\n", file: object = None, flush: Flag = False) -> None:
    """Print while the kernel is compiled, as Python's `print` does."""
