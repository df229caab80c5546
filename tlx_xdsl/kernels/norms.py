"""The launches of normalised rows: `layer_norm` and `rms_norm`, and their gradients (`norm_backward`)."""

from __future__ import annotations

from typing import Any

from tlx_xdsl.kernels import operator_rows
from tlx_xdsl.kernels.launching import Launch, Launches, multiprocessors
from tlx_xdsl.kernels.norm_rows import add_parts, norm_backward_rows, norm_rows
from tlx_xdsl.kernels.operands import Operand, Rows, check_shape, check_types, empty, is_aligned, operand, rows_of
from tlx_xdsl.kernels.planned_function import PlannedFunction
from tlx_xdsl.kernels.plans import WORKSPACE, Prepared

DTYPES = ("fp16", "bf16", "fp32")

MAX_COLUMNS = 65536
"""The longest row that registers hold: 64 values for each of 1024 threads."""

MAX_BACKWARD_COLUMNS = 16384
"""The same backward, where the next row and the sums of the weight's gradient are held, too: 16 for each."""

_UNIT = 8
"""Elements that a row and its distance are multiples of, so that 16 bytes are moved at a time."""

_ELEMENTS = 4096
"""Elements of a program at least: rows that are shorter are taken together."""

_BACKWARD_ELEMENTS = 512
"""Elements of a warp backward: 16 for each thread."""

_BACKWARD_WARPS = 16
"""Warps of a multiprocessor backward, of which each thread has up to 128 registers."""

_SHORT, _SHORT_WARPS = 1024, 24
"""Elements of a row up to which there are more, of up to 80 registers: each thread has 8 elements."""

_REGISTERS = 1 << 16
"""Those of a multiprocessor."""

_PART_COLUMNS, _PART_ROWS = 32, 128
"""The block of sums that a program adds up at a time."""


def norm_launch(name: str, x: Any, weight: Any, bias: Any, out: Any, eps: float, *, centred: bool) -> Launch:
    """The launch of `layer_norm`, or without `centred` of `rms_norm`, called `name`; no extent may be 0.

    Raises as those do.
    """
    given, result = operand(name, "x", x), operand(name, "out", out)
    factors = _factors(name, weight, bias)
    check_types((given, *factors, result), DTYPES)
    check_shape(result, given.shape, "that of 'x'")
    rows, target = rows_of(given), rows_of(result)
    _check_rows(given, rows, factors, MAX_COLUMNS)
    unit = _unit((given, result, *factors), (rows, target))
    together = max(1, min(_ELEMENTS // rows.block, rows.count))
    together = 1 << (together.bit_length() - 1)
    return Launch.of(
        norm_rows,
        (-(-rows.count // together),),
        {
            "x_ptr": x,
            "weight_ptr": weight,
            "bias_ptr": bias,
            "out_ptr": out,
            "x_stride": rows.distance // unit,
            "out_stride": target.distance // unit,
            "ROW_COUNT": rows.count,
            "COLUMNS": rows.columns // unit,
            "eps": float(eps),
        },
        {
            "BLOCK": rows.block,
            "ROWS": together,
            "UNIT": unit,
            "EVEN": rows.columns == rows.block,
            "CENTRED": centred,
        },
        given.device,
        {"x_ptr": "x", "weight_ptr": "weight", "bias_ptr": "bias", "out_ptr": "out"},
        ("x_ptr", "weight_ptr", "bias_ptr", "out_ptr") if unit > 1 else (),
        num_warps=min(max(together * rows.block // 1024, 1), 32),
    )


def norm_backward(
    x: Any, weight: Any, dout: Any, *, eps: float, centred: bool, with_bias: bool = False
) -> tuple[Any, Any, Any]:
    """Return the gradients (dx, dweight, dbias) of `layer_norm`, or without `centred` of `rms_norm`.

    `dout` is the gradient of the result; dweight is None without `weight`, dbias unless it is asked for.

    Raises TypeError for other types, ValueError for other shapes and strides and for rows of more than 16384 elements.
    """
    return NORM_BACKWARD((x, weight, dout, None, None, None), (eps, centred, with_bias))


_NAME = "norm_backward"


def norm_backward_launch(
    x: Any, weight: Any, dout: Any, dx: Any, dweight: Any, dbias: Any, *, eps: float, centred: bool
) -> Launches:
    """The launches of `norm_backward`; no extent may be 0. Raises as it does."""
    given, grad, result = (operand(_NAME, *each) for each in (("x", x), ("dout", dout), ("dx", dx)))
    factors = _factors(_NAME, weight, None)
    check_types((given, grad, result, *factors), DTYPES)
    for each in (grad, result):
        check_shape(each, given.shape, "that of 'x'")
    rows, of_grad, of_result = (rows_of(each) for each in (given, grad, result))
    _check_rows(given, rows, factors, MAX_BACKWARD_COLUMNS)
    unit = _unit((given, grad, result, *factors), (rows, of_grad, of_result))
    warps = min(max(rows.block // _BACKWARD_ELEMENTS, 4), 32)
    resident = _SHORT_WARPS if rows.block <= _SHORT else _BACKWARD_WARPS
    programs = min(rows.count, multiprocessors(given) * max(resident // warps, 1))
    parts = empty(given, (programs * 2 * rows.block,), "fp32")
    main = Launch.of(
        norm_backward_rows,
        (programs,),
        {
            "x_ptr": x,
            "weight_ptr": weight,
            "dout_ptr": dout,
            "dx_ptr": dx,
            "parts_ptr": parts,
            "x_stride": rows.distance // unit,
            "dout_stride": of_grad.distance // unit,
            "dx_stride": of_result.distance // unit,
            "ROW_COUNT": rows.count,
            "COLUMNS": rows.columns // unit,
            "eps": float(eps),
        },
        {
            "BLOCK": rows.block,
            "UNIT": unit,
            "EVEN": rows.columns == rows.block,
            "CENTRED": centred,
            "WITH_BIAS": dbias is not None,
        },
        given.device,
        {"x_ptr": "x", "weight_ptr": "weight", "dout_ptr": "dout", "dx_ptr": "dx", "parts_ptr": WORKSPACE},
        ("x_ptr", "weight_ptr", "dout_ptr", "dx_ptr", "parts_ptr") if unit > 1 else ("parts_ptr",),
        maxnreg=None if warps > resident else _REGISTERS // (resident // warps * warps * 32) // 8 * 8,
        num_warps=warps,
    )
    outs = (dweight is not None) + (dbias is not None)
    if not outs:
        return Launches((main,), parts)
    sums = Launch.of(
        add_parts,
        (-(-rows.columns // _PART_COLUMNS), outs),
        {"parts_ptr": parts, "dweight_ptr": dweight, "dbias_ptr": dbias, "PARTS": programs, "COLUMNS": rows.columns},
        {"LENGTH": rows.block, "BLOCK": _PART_COLUMNS, "ROWS": _PART_ROWS},
        given.device,
        {"parts_ptr": WORKSPACE, "dweight_ptr": "dweight", "dbias_ptr": "dbias"},
        ("parts_ptr",),
        num_warps=8,
    )
    return Launches((main, sums), parts)


def _prepare(tensors: tuple[Any, ...], options: tuple[Any, ...]) -> Prepared:
    x, weight, dout, *_ = tensors
    eps, centred, with_bias = options
    given = operand(_NAME, "x", x)
    check_types((given,), DTYPES)
    columns = given.shape[-1:]
    dx = empty(given, given.shape)
    dweight = None if weight is None else empty(given, columns)
    dbias = empty(given, columns) if with_bias else None
    named = {"x": x, "weight": weight, "dout": dout, "dx": dx, "dweight": dweight, "dbias": dbias}
    if 0 in given.shape:
        for each in (dweight, dbias):
            if each is not None:
                each[...] = 0
        return Prepared(named)
    launches = norm_backward_launch(x, weight, dout, dx, dweight, dbias, eps=eps, centred=centred)
    return Prepared({**named, WORKSPACE: launches.workspace}, launches.parts)


NORM_BACKWARD = PlannedFunction(_NAME, _prepare, results=slice(3, 6), operator=operator_rows.NORM_BACKWARD)


def _factors(name: str, weight: Any, bias: Any) -> list[Operand]:
    return [operand(name, what, value) for what, value in (("weight", weight), ("bias", bias)) if value is not None]


def _check_rows(given: Operand, rows: Rows, factors: list[Operand], most: int) -> None:
    if rows.columns > most:
        raise ValueError(f"{given.what}: expected rows of at most {most} elements, got {rows.columns}")
    for each in factors:
        check_shape(each, (rows.columns,), "the last dimension of 'x'")
        rows_of(each)


def _unit(operands: tuple[Operand, ...], rows: tuple[Rows, ...]) -> int:
    """_UNIT where rows are multiples of it long and apart, and all begin at multiples of 16 bytes; else 1."""
    are_multiples = all(each.columns % _UNIT == 0 and each.distance % _UNIT == 0 for each in rows)
    return _UNIT if are_multiples and all(map(is_aligned, operands)) else 1
