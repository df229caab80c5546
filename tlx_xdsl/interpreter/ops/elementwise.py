"""Elementwise operations of `tt`: conversions, and arithmetic that says how it rounds."""

from __future__ import annotations

import numpy as np

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.tt.enums import PropagateNan, RoundingMode
from tlx_xdsl.interpreter.numbers import dtype_of
from tlx_xdsl.interpreter.ops.arith import maximum, maxnum, minimum, minnum, multiply_high, rounded
from tlx_xdsl.interpreter.registry import Binary, Run, Unary, pure
from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.numerics.rounding import round_to, truncate_to


@pure(tt.BitcastOp)
def bitcast(op: tt.BitcastOp) -> Unary:
    """The same bits as another type; pointers stay addresses."""
    source, target = dtype_of(op.src.type), dtype_of(op.result.type)
    if source == target:
        return lambda value: value
    return lambda value: value.view(target)


@pure(tt.FpToFpOp)
def convert_float(op: tt.FpToFpOp) -> Unary:
    """To the nearest number, ties to even, or towards zero; 8-bit results stop at their largest finite number."""
    target = dtype_of(op.result.type)
    if op.rounding is not None and RoundingMode(op.rounding.value.data) is RoundingMode.RTZ:
        return lambda value: truncate_to(value, target)
    saturates = target.itemsize == 1
    return lambda value: round_to(value, target, saturates=saturates)


@pure(tt.ClampFOp)
def clamp(op: tt.ClampFOp) -> Run:
    """The larger one of `x` and the lower limit, then the smaller one of that and the upper limit.

    A NaN spreads, or the other operand takes its place.
    """
    spreads = PropagateNan(op.propagate_nan.value.data) is PropagateNan.ALL
    lower, upper = (maximum, minimum) if spreads else (maxnum, minnum)

    def run(x: Array, low: Array, high: Array) -> Array:
        return upper(lower(x, low), high)

    return rounded(op, run)


@pure(tt.PreciseSqrtOp)
def precise_sqrt(op: tt.PreciseSqrtOp) -> Run:
    """Correctly rounded, as numpy's is."""
    return rounded(op, np.sqrt)


@pure(tt.PreciseDivFOp, tt.ApproxDivFOp)
def divide(op: tt.PreciseDivFOp | tt.ApproxDivFOp) -> Run:
    """Correctly rounded, also where the hardware may be 2 ulp off (PTX: div.full.f32)."""
    return rounded(op, np.divide)


@pure(tt.MulhiUIOp)
def multiply_high_unsigned(op: tt.MulhiUIOp) -> Binary:
    """The high half of an unsigned product."""
    signed = dtype_of(op.result.type)

    def run(a: Array, b: Array) -> Array:
        return multiply_high(a, b, signed, is_signed=False)

    return run
