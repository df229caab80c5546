"""Conversions between integers and floats of all widths; see `rounding.py`."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith as upstream
from xdsl.ir import Operation

from tlx_xdsl.dialects import arith
from tlx_xdsl.interpreter.numbers import dtype_of
from tlx_xdsl.interpreter.registry import Run, Unary, pure
from tlx_xdsl.numerics.arrays import Array, unsigned
from tlx_xdsl.numerics.rounding import clamp_to_integer, integer_to, round_to


@pure(arith.ExtSIOp)
def extsi(op: Operation) -> Unary:
    """As a signed number, the bit 1 is -1."""
    target = dtype_of(op.results[0].type)
    if dtype_of(op.operands[0].type).kind == "b":
        return lambda value: -value.astype(target)
    return lambda value: value.astype(target)


@pure(arith.ExtUIOp)
def extui(op: Operation) -> Unary:
    """Zeros in front."""
    source, target = dtype_of(op.operands[0].type), dtype_of(op.results[0].type)
    return lambda value: value.view(unsigned(source)).astype(target)


@pure(arith.TruncIOp)
def trunci(op: Operation) -> Unary:
    """The low bits."""
    target = dtype_of(op.results[0].type)
    if target.kind == "b":
        return lambda value: (value & value.dtype.type(1)).astype(target)
    return lambda value: value.astype(target)


@pure(arith.ExtFOp, arith.TruncFOp)
def convert_float(op: Operation) -> Unary:
    """Rounds to nearest, ties to even; the results beyond the range are infinite, or NaN where there is no infinity."""
    target = dtype_of(op.results[0].type)
    return lambda value: round_to(value, target)


@pure(arith.SIToFPOp)
def sitofp(op: Operation) -> Unary:
    """As a signed number, the bit 1 is -1."""
    target = dtype_of(op.results[0].type)
    if dtype_of(op.operands[0].type).kind == "b":
        return lambda value: -value.astype(target)
    return lambda value: integer_to(value, target)


@pure(arith.UIToFPOp)
def uitofp(op: Operation) -> Unary:
    """Of an unsigned number."""
    source, target = dtype_of(op.operands[0].type), dtype_of(op.results[0].type)
    if source.kind == "b":
        return lambda value: value.astype(target)
    return lambda value: integer_to(value.view(unsigned(source)), target)


def _float_to_bit(value: Array) -> Array:
    return (np.trunc(value.astype(np.float64)).astype(np.int64) & 1).astype(np.bool_)


@pure(arith.FPToSIOp, arith.FPToUIOp)
def float_to_integer(op: Operation) -> Run:
    """Rounds towards zero. Out of range, PTX's cvt.rzi gives the nearest integer there is, and 0 for NaN.

    For 8 bits, that is the low half of an integer of 16, to which the compiler converts.
    """
    target = dtype_of(op.results[0].type)
    if target.kind == "b":
        return _float_to_bit
    is_signed = isinstance(op, arith.FPToSIOp)
    whole = np.dtype(f"{'i' if is_signed else 'u'}{max(target.itemsize, 2)}")

    def run(value: Array) -> Array:
        return clamp_to_integer(np.trunc(value.astype(np.float64)), whole).astype(target)

    return run


@pure(upstream.BitcastOp)
def bitcast(op: Operation) -> Unary:
    """The same bits as another type."""
    source, target = dtype_of(op.operands[0].type), dtype_of(op.results[0].type)
    if "b" in (source.kind, target.kind):
        return lambda value: value.astype(target)
    return lambda value: value.view(target)


@pure(upstream.IndexCastOp)
def index_cast(op: Operation) -> Unary:
    """Between `index` and an integer."""
    target = dtype_of(op.results[0].type)
    return lambda value: value.astype(target)
