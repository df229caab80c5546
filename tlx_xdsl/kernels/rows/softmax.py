"""The softmax of rows: `softmax(x)`, and its gradient, `softmax_backward`. The kernels are in `softmax_rows`."""

from __future__ import annotations

from typing import Any

from ..calls.launching import Launch
from ..calls.planned_function import PlannedFunction
from ..calls.plans import Prepared
from ..operators import rows as operators
from .edges import THREADS, tile_of
from .softmax_rows import (
    softmax_backward_long_rows,
    softmax_backward_rows,
    softmax_backward_unaligned_rows,
    softmax_long_rows,
    softmax_rows,
    softmax_unaligned_rows,
)
from .tables import Tables, prepared

HELD_COLUMNS = 8192
"""The longest row that registers hold, though they have room for four times as many."""

HELD_BACKWARD_COLUMNS = 32768
"""The longest row that registers hold, with its gradient: 32 values of each for each of 1024 threads."""

_ELEMENTS = 4096
"""Elements of a program at least: rows that are shorter are taken together."""

_LONG_VALUES = 16
"""Elements of a longer row that a thread has at a time."""

_LONG_WARPS, _LONGER_WARPS, _LONGER_BYTES = 16, 32, 32768
"""Warps for a longer row forward, and from so many bytes on: more rows at a time would not stay in the L2 cache."""

_LONG_REGISTERS = 32
"""Registers of a thread there, of which a multiprocessor has room for 2048."""

_LONGEST_BYTES = 192 << 10
"""From so many bytes of a row on a thread has twice as many elements and registers.

A multiprocessor then has one row at a time: two of each would not stay in the L2 cache. Of a copy's rate, 128256
columns of bf16 have 0.82, else 0.73; 65536 would have 0.73, and have 0.92 (H200, 2026-12-01).
"""


def softmax(x: Any, out: Any = None) -> Any:
    """Return the softmax of `x` along its last dimension: fp16, bf16 or fp32, computed in f32.

    The last dimension is contiguous, the others lie as rows at one distance. `out` receives the result where it is
    given. Arrays of numpy and tensors on the CPU run there, as machine code. torch's tensors have gradients.

    Raises TypeError for other types, ValueError for other strides and for an `out` of another shape.
    """
    return SOFTMAX((x, out))


def softmax_backward(y: Any, dout: Any) -> Any:
    """Return the gradient of `softmax`'s argument: y (dout - sum(y dout)), with `y` its result. As `softmax` else."""
    return SOFTMAX_BACKWARD((y, dout, None))


def _prepare(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    x, out = tensors
    return prepared("softmax", {"x": x, "out": out}, "x", "out", softmax_launch)


def softmax_launch(x: Any, out: Any) -> Launch:
    """The launch of `softmax`; no extent may be 0. Raises as `softmax` does."""
    kernels = (softmax_rows, softmax_unaligned_rows, softmax_long_rows)
    return _launch("softmax", {"x": x, "out": out}, kernels, HELD_COLUMNS, 4)


def _prepare_backward(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    y, dout, dx = tensors
    return prepared("softmax_backward", {"y": y, "dout": dout, "dx": dx}, "y dout", "dx", softmax_backward_launch)


SOFTMAX_BACKWARD = PlannedFunction(
    "softmax_backward", _prepare_backward, results=2, operator=operators.SOFTMAX_BACKWARD
)
SOFTMAX = PlannedFunction("softmax", _prepare, results=1, operator=operators.softmax(SOFTMAX_BACKWARD))


def softmax_backward_launch(y: Any, dout: Any, dx: Any) -> Launch:
    """The launch of `softmax_backward`; no extent may be 0. Raises as it does."""
    kernels = (softmax_backward_rows, softmax_backward_unaligned_rows, softmax_backward_long_rows)
    return _launch("softmax_backward", {"y": y, "dout": dout, "dx": dx}, kernels, HELD_BACKWARD_COLUMNS, 2)


def _launch(name: str, tensors: dict[str, Any], kernels: tuple[Any, Any, Any], held: int, vectors: int) -> Launch:
    """The launch of the first kernel, the second for rows that begin anywhere, or the third for more than `held`.

    A thread of the second has so many vectors of each tensor.
    """
    of = Tables(name, tensors)
    first, unit, width, values = of.first, of.unit, of.width, of.arguments
    count, columns, block = of.rows.count, of.rows.columns, of.rows.block
    aligned = tuple(of.pointers) if unit * width > 1 else ()
    kernel, unaligned_kernel, long_kernel = kernels
    if columns > held:
        is_forward = "out" in tensors
        is_long = is_forward and columns * first.element_bytes <= _LONGER_BYTES
        warps = _LONG_WARPS if is_long else _LONGER_WARPS
        times = 2 if is_forward and aligned and columns * first.element_bytes >= _LONGEST_BYTES else 1
        constants = {
            "BLOCK": warps * 32 * _LONG_VALUES * times,
            "UNIT": unit,
            "WIDTH": width,
            **({"THREADS": warps * 32} if is_forward else {}),
        }
        # Rows that are not aligned are read by 2 bytes, whose addresses take more.
        registers = _LONG_REGISTERS * times if is_forward and aligned else None
        return Launch.of(
            long_kernel, (count,), values, constants, first.device, aligned=aligned, maxnreg=registers, num_warps=warps
        )  # fmt: skip
    values["ROW_COUNT"] = count
    if width > 1:
        tile = tile_of(columns, width, vectors)
        return Launch.of(
            unaligned_kernel, (-(-count // tile["ROWS"]),), values, tile, first.device, aligned=aligned,
            num_warps=max(THREADS, tile["LANES"]) // 32,
        )  # fmt: skip
    together = max(1, min(_ELEMENTS // block, count))
    together = 1 << (together.bit_length() - 1)
    constants = {"BLOCK": block, "ROWS": together, "UNIT": unit, "EVEN": columns == block}
    warps = min(max(together * block // (1024 if len(tensors) == 2 else 512), 1), 32)
    return Launch.of(
        kernel, (-(-count // together),), values, constants, first.device, aligned=aligned,
        num_warps=warps,
    )  # fmt: skip
