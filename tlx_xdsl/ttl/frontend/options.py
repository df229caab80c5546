"""Options of `@ttl.kernel`."""

from __future__ import annotations

import ast
from typing import Any, cast

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.frontend.python.source import KernelSource
from tlx_xdsl.frontend.python.suggestions import did_you_mean

from ..dialects.ttcore import Architecture
from ..language.kernel import Kernel

_FLAGS = ("fp32_dest_acc_en", "dst_full_sync_en", "tiled")


def check_options(kernel: Kernel, source: KernelSource) -> None:
    """Check what was given to the decorator of a kernel.

    Raises CompilationError at the option.
    """
    for name in kernel.others:
        known = ("grid", "memory_space", *_FLAGS)
        raise _error(source, name, f"ttl.kernel has no option '{name}'" + did_you_mean(name, known))
    for name in _FLAGS:
        if not isinstance(getattr(kernel, name), bool):
            raise _error(source, name, f"'{name}' is True or False, found {getattr(kernel, name)!r}")
    if kernel.memory_space != "L1":
        raise _error(
            source,
            "memory_space",
            f"'memory_space' is where circular buffers are, which is 'L1' only, found {kernel.memory_space!r}: "
            "TensorSpec says where tensors are",
        )


def grid_of(kernel: Kernel, source: KernelSource, chip: Architecture) -> tuple[int, int]:
    """Columns and rows of the cores that run a kernel, on a chip: all that it has for `grid="full"`.

    Raises CompilationError at the option.
    """
    grid: Any = kernel.grid
    if callable(grid):
        try:
            grid = grid()
        except Exception as error:
            message = f"the function that gives 'grid' raised {type(error).__name__}: {error}"
            raise _error(source, "grid", message) from error
    if isinstance(grid, str):
        if grid in ("auto", "full"):
            return chip.columns, chip.rows
        raise _error(source, "grid", f'\'grid\' is (columns, rows), "auto" or "full", found {grid!r}')
    numbers = tuple(cast(Any, grid)) if isinstance(grid, tuple | list) else (grid,)
    if len(numbers) != 2 or not all(isinstance(each, int) and each >= 1 for each in numbers):
        count = f" with {len(numbers)} dimensions" if len(numbers) != 2 else ""
        raise _error(
            source,
            "grid",
            f"'grid' is two positive integers (columns, rows), found {grid!r}{count}: cores are in a plane",
        )
    columns, rows = numbers
    if columns > chip.columns or rows > chip.rows:
        raise _error(
            source,
            "grid",
            f"'grid' has {columns}x{rows} cores, but the device has {chip.columns}x{chip.rows}: "
            "let each core do the work of several",
        )
    return columns, rows


def _error(source: KernelSource, name: str, message: str) -> CompilationError:
    """The error at an option of the decorator, where there is one in the source."""
    for decorator in source.tree.decorator_list:
        for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
            if keyword.arg == name:
                return source.error(keyword.value, message)
    return source.error(source.tree, message)
