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
        known = ("grid", "memory_space", "options", "math_fidelity", *_FLAGS)
        raise _error(source, name, f"ttl.kernel has no option '{name}'" + did_you_mean(name, known))
    for name in _FLAGS:
        if not isinstance(getattr(kernel, name), bool | None) or (name == "tiled" and kernel.tiled is None):
            raise _error(source, name, f"'{name}' is True or False, found {getattr(kernel, name)!r}")
    _check_compiler_options(kernel, source)
    fidelity = getattr(kernel.math_fidelity, "name", kernel.math_fidelity)
    if fidelity is not None and str(fidelity).rpartition(".")[2] not in _FIDELITIES:
        raise _error(
            source,
            "math_fidelity",
            f"'math_fidelity' is one of {', '.join(_FIDELITIES)}, found {kernel.math_fidelity!r}",
        )
    if kernel.memory_space not in ("L1", "DRAM"):
        raise _error(
            source,
            "memory_space",
            f"'memory_space' is 'L1' or 'DRAM', found {kernel.memory_space!r}: circular buffers are in L1, and "
            "TensorSpec says where tensors are",
        )


_FIDELITIES = ("LoFi", "HiFi2", "HiFi3", "HiFi4")

_SWITCHES = (
    "maximize-dst",
    "fpu-binary-ops",
    "block-matmul",
    "subblock-sync",
    "combine-pack-tiles",
    "reduce-full-fp32",
    "matmul-full-fp32",
    "strict-f32-acc",
    "compiler-dfbs",
    "specialize-cores",
)
"""Options of tt-lang's compiler, each with `--ttl-` or `--no-ttl-` before it: how it compiles, not what."""


def _check_compiler_options(kernel: Kernel, source: KernelSource) -> None:
    if kernel.options is None:
        return
    if not isinstance(kernel.options, str):
        raise _error(
            source, "options", f"'options' is a text such as '--no-ttl-maximize-dst', found {kernel.options!r}"
        )
    known = [f"--{no}ttl-{each}" for each in _SWITCHES for no in ("", "no-")]
    words = iter(kernel.options.replace("=", " ").split())
    for word in words:
        if word == "--ttl-l1-budget" and next(words, "").isdigit():
            continue
        if word not in known:
            raise _error(source, "options", f"'options' has no option '{word}'" + did_you_mean(word, known))


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
