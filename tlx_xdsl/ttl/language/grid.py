"""The grid of cores. Coordinates are (x, y): column first, counted from 0 within the grid of the kernel."""

from __future__ import annotations

from typing import Any

from .marks import builtin

__all__ = ["core", "grid_size", "node"]


@builtin()
def core(dims: Any = 2) -> Any:
    """Where the core that runs this is: `x, y` with `dims=2`, its number `x + y * columns` with `dims=1`."""


@builtin()
def node(dims: Any = 2) -> Any:
    """The later spelling of `core`."""


@builtin()
def grid_size(dims: Any = 2) -> Any:
    """The grid of the kernel, known at compile time: columns and rows with `dims=2`, all cores with `dims=1`."""
