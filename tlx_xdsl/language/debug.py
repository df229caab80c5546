"""Functions that print and check, and the barrier for debugging."""

from __future__ import annotations

from typing import Any

from tlx_xdsl.language.marks import builtin

__all__ = ["debug_barrier", "device_assert", "device_print", "static_assert", "static_print"]

_tl = builtin("tl")


@_tl
def debug_barrier() -> Any:
    """Wait for all threads of the program."""


@_tl
def device_assert(cond: Any, msg: Any = "", mask: Any = None) -> Any:
    """Stop the kernel with `msg` when `cond` is false somewhere that `mask` is true; compiled in debug mode only."""


@_tl
def device_print(prefix: Any, *args: Any, hex: Any = False) -> Any:
    """Print the constexpr text `prefix` and values from the GPU; integers in hexadecimal with `hex`."""


@_tl
def static_assert(cond: Any, msg: Any = "") -> Any:
    """Stop the compilation with `msg` when the constexpr `cond` is false."""


@_tl
def static_print(*values: Any, sep: Any = " ", end: Any = "\n", file: Any = None, flush: Any = False) -> Any:
    """Print while the kernel is compiled, as Python's `print` does."""
