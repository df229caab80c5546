"""The grid of a launch: how many programs run along x, y and z."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import Any, TypeAlias, cast

from tlx_xdsl.errors import InputError

Grid: TypeAlias = "int | Sequence[int] | Callable[[dict[str, Any]], int | Sequence[int]]"
"""Programs along x, y and z, or a function that computes them from the kernel's arguments by name."""

MOST_ALONG_AN_AXIS = (1 << 31) - 1
"""Programs: their index is an i32 in kernels."""

MOST_ALONG_Y_AND_Z = 65_535
"""Programs on a GPU (CUDA C++ Programming Guide, "Technical Specifications"); along x the index is the limit."""


def cdiv(x: int, div: int) -> int:
    """Return `x` / `div`, rounded up: the blocks of `div` elements that cover `x`. Kernels have `tl.cdiv`.

    >>> cdiv(1000, 256)
    4
    """
    return -(-x // div)


def grid_of(grid: Grid, arguments: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return the sizes of a grid for arguments by name, as `sizes_of` does."""
    return sizes_of(grid(dict(arguments)) if callable(grid) else grid)


def sizes_of(
    grid: Any, *, least: int = 0, along_y_and_z: int = MOST_ALONG_AN_AXIS, of: str = ""
) -> tuple[int, int, int]:
    """Return the numbers of programs along x, y and z; those that are not given are 1.

    Raises InputError for anything but one to three integers within the limits; `of` says whose grid it is.
    """
    given = cast("Sequence[Any]", grid) if isinstance(grid, tuple | list) else (grid,)
    x, y, z = (*given, 1, 1)[:3] if 1 <= len(given) <= 3 else (-1, -1, -1)
    if not (x.__class__ is y.__class__ is z.__class__ is int):
        x, y, z = map(_integer, (x, y, z))
    if least <= x <= MOST_ALONG_AN_AXIS and least <= y <= along_y_and_z and least <= z <= along_y_and_z:
        return x, y, z
    limits = f"each from {least} to {MOST_ALONG_AN_AXIS:,}"
    if along_y_and_z < MOST_ALONG_AN_AXIS:
        limits += f" (along y and z to {along_y_and_z:,})"
    raise InputError(f"{of}expected a grid of one to three numbers of programs, {limits}, found {grid!r}")


def _integer(size: Any) -> int:
    """Return an integer of any library as Python's, and -1 for what is none; a truth value is none."""
    try:
        return -1 if isinstance(size, bool) else index(size)
    except TypeError:
        return -1
