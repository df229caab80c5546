"""The softmax of rows, in plain `tl`: `softmax(x)`. A kernel to start from, and one that stock Triton lowers.

Rows up to ONE_BLOCK columns are read once and kept in registers. Longer ones are read twice: for the maximum and the
sum of exponentials, block by block (online softmax), and for the result.
"""

# The kernels are read by our frontend, not run by Python: their types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

from __future__ import annotations

from typing import Any

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.kernels import operator_rows
from tlx_xdsl.kernels.launching import Launch
from tlx_xdsl.kernels.operands import check_shape, check_types, empty, operand, rows_of, warps_for
from tlx_xdsl.kernels.planned_function import PlannedFunction
from tlx_xdsl.kernels.plans import Prepared

DTYPES = ("fp16", "bf16", "fp32")

ONE_BLOCK = 16384
"""Columns of the longest row that one block holds: 16 values for each of 1024 threads."""


@tlx_xdsl.jit
def softmax_rows(x_ptr, out_ptr, x_stride, out_stride, COLUMNS, BLOCK: tl.constexpr):
    """One row for each program, in one block."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < COLUMNS
    x = tl.load(x_ptr + row * x_stride + columns, mask=inside, other=float("-inf")).to(tl.float32)
    weights = tl.exp(x - tl.max(x, 0))
    result = weights / tl.sum(weights, 0)
    tl.store(out_ptr + row * out_stride + columns, result.to(out_ptr.dtype.element_ty), mask=inside)


@tlx_xdsl.jit
def softmax_long_rows(x_ptr, out_ptr, x_stride, out_stride, COLUMNS, BLOCK: tl.constexpr):
    """One row for each program, block by block.

    Each column of a block has a maximum and a sum of its own, which are put together at the end: the loop has no
    reduction.
    """
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    m = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, COLUMNS, BLOCK):
        inside = first + columns < COLUMNS
        x = tl.load(x_ptr + row * x_stride + first + columns, mask=inside, other=float("-inf")).to(tl.float32)
        m_new = tl.maximum(m, x)
        # A column that has met nothing but minus infinity has no sum yet; the difference would be no number.
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        total = total * tl.exp(m - shift) + tl.exp(x - shift)
        m = m_new
    top = tl.max(m, 0)
    denominator = tl.sum(total * tl.exp(m - top), 0)
    for first in range(0, COLUMNS, BLOCK):
        inside = first + columns < COLUMNS
        x = tl.load(x_ptr + row * x_stride + first + columns, mask=inside).to(tl.float32)
        result = tl.exp(x - top) / denominator
        tl.store(out_ptr + row * out_stride + first + columns, result.to(out_ptr.dtype.element_ty), mask=inside)


def softmax(x: Any, out: Any = None) -> Any:
    """Return the softmax of `x` along its last dimension: fp16, bf16 or fp32, computed in f32.

    The last dimension is contiguous, the others lie as rows at one distance. `out` receives the result where it is
    given. Numpy arrays and tensors on the CPU go through the interpreter.

    Raises TypeError for other types, ValueError for other strides and for an `out` of another shape.
    """
    return SOFTMAX((x, out))


def _prepare(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    x, out = tensors
    given = operand("softmax", "x", x)
    check_types((given,), DTYPES)
    if out is None:
        out = empty(given, given.shape)
    return Prepared({"x": x, "out": out}, () if 0 in given.shape else (softmax_launch(x, out),))


SOFTMAX = PlannedFunction("softmax", _prepare, results=1, operator=operator_rows.SOFTMAX)


def softmax_launch(x: Any, out: Any) -> Launch:
    """The launch of `softmax`; no extent may be 0. Raises as `softmax` does."""
    given, result = operand("softmax", "x", x), operand("softmax", "out", out)
    check_types((given, result), DTYPES)
    check_shape(result, given.shape, "that of 'x'")
    rows, target = rows_of(given), rows_of(result)
    long = rows.columns > ONE_BLOCK
    block = 4096 if long else rows.block
    return Launch(
        softmax_long_rows if long else softmax_rows,
        (rows.count,),
        {
            "x_ptr": x,
            "out_ptr": out,
            "x_stride": rows.distance,
            "out_stride": target.distance,
            "COLUMNS": rows.columns,
        },
        {"BLOCK": block},
        given.device,
        num_warps=warps_for(block),
        sources={"x_ptr": "x", "out_ptr": "out"},
    )
