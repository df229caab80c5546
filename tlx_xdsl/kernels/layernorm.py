"""Layer normalisation of rows, in plain `tl`: `layer_norm(x, weight, bias)`. A kernel that stock Triton lowers."""

# The kernel is read by our frontend, not run by Python: its types are those of the language.
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

MAX_COLUMNS = 65536
"""The longest row that registers hold: 64 values for each of 1024 threads."""


@tlx_xdsl.jit
def layer_norm_rows(
    x_ptr, weight_ptr, bias_ptr, out_ptr, x_stride, out_stride, COLUMNS, eps,
    BLOCK: tl.constexpr, HAS_WEIGHT: tl.constexpr, HAS_BIAS: tl.constexpr,
):  # fmt: skip
    """One row for each program, kept in registers; the variance is that of the differences from the mean."""
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < COLUMNS
    x = tl.load(x_ptr + row * x_stride + columns, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, 0) / COLUMNS
    centred = tl.where(inside, x - mean, 0.0)
    variance = tl.sum(centred * centred, 0) / COLUMNS
    result = centred * tl.rsqrt(variance + eps)
    if HAS_WEIGHT:
        result = result * tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    if HAS_BIAS:
        result = result + tl.load(bias_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * out_stride + columns, result.to(out_ptr.dtype.element_ty), mask=inside)


def layer_norm(x: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5, out: Any = None) -> Any:
    """Return (x - mean) / sqrt(variance + eps) * weight + bias along the last dimension, computed in f32.

    fp16, bf16 or fp32, all of one type. The last dimension is contiguous, the others lie as rows at one distance;
    `weight` and `bias` are contiguous, of as many elements as a row has. `out` receives the result where it is given.
    Numpy arrays and tensors on the CPU go through the interpreter.

    Raises TypeError for other types, ValueError for other shapes and strides and for rows of more than 65536 elements.
    """
    return LAYER_NORM((x, weight, bias, out), (eps,))


def _prepare(tensors: tuple[Any, ...], options: tuple[float]) -> Prepared:
    x, weight, bias, out = tensors
    (eps,) = options
    given = operand("layer_norm", "x", x)
    check_types((given,), DTYPES)
    if out is None:
        out = empty(given, given.shape)
    named = {"x": x, "weight": weight, "bias": bias, "out": out}
    return Prepared(named, () if 0 in given.shape else (layer_norm_launch(x, weight, bias, out, eps=eps),))


LAYER_NORM = PlannedFunction("layer_norm", _prepare, results=3, operator=operator_rows.LAYER_NORM)


def layer_norm_launch(x: Any, weight: Any, bias: Any, out: Any, *, eps: float = 1e-5) -> Launch:
    """The launch of `layer_norm`; no extent may be 0. Raises as `layer_norm` does."""
    given, result = operand("layer_norm", "x", x), operand("layer_norm", "out", out)
    factors = [
        operand("layer_norm", name, value) for name, value in (("weight", weight), ("bias", bias)) if value is not None
    ]
    check_types((given, *factors, result), DTYPES)
    check_shape(result, given.shape, "that of 'x'")
    rows, target = rows_of(given), rows_of(result)
    if rows.columns > MAX_COLUMNS:
        raise ValueError(f"{given.what}: expected rows of at most {MAX_COLUMNS} elements, got {rows.columns}")
    for each in factors:
        check_shape(each, (rows.columns,), "the last dimension of 'x'")
        rows_of(each)
    arguments = {
        "x_ptr": x,
        **{name: value for name, value in (("weight_ptr", weight), ("bias_ptr", bias)) if value is not None},
        "out_ptr": out,
        "x_stride": rows.distance,
        "out_stride": target.distance,
        "COLUMNS": rows.columns,
        "eps": float(eps),
    }
    constexprs = {
        **{name: None for name, value in (("weight_ptr", weight), ("bias_ptr", bias)) if value is None},
        "BLOCK": rows.block,
        "HAS_WEIGHT": weight is not None,
        "HAS_BIAS": bias is not None,
    }
    return Launch(
        layer_norm_rows,
        (rows.count,),
        arguments,
        constexprs,
        given.device,
        num_warps=warps_for(rows.block),
        sources={"x_ptr": "x", "weight_ptr": "weight", "bias_ptr": "bias", "out_ptr": "out"},
    )
