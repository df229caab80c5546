"""Elementwise operations: conversions, and arithmetic that says how it rounds, at random or packed too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects import arith as upstream
from xdsl.ir import Operation

from tlx_xdsl.dialects import arith, tlx, tt, ttng
from tlx_xdsl.dialects.ttng import PackedArithOpKind
from tlx_xdsl.numerics import elementwise, matmul
from tlx_xdsl.numerics.arrays import Array, unsigned
from tlx_xdsl.numerics.rounding import integer_to, round_at_random, round_to, round_to_integer, truncate_to

from ..faults import fault_at
from ..numbers import dtype_of
from ..out_of_range import answered
from ..registry import Binary, Run, Unary, pure
from .arith import rounded


@pure(tt.BitcastOp, upstream.BitcastOp)
def bitcast(op: Operation) -> Unary:
    """The same bits as another type; pointers stay addresses."""
    source, target = dtype_of(op.operands[0].type), dtype_of(op.results[0].type)
    if source == target:
        return lambda value: value
    if "b" in (source.kind, target.kind):
        return lambda value: value.astype(target)
    return lambda value: value.view(target)


@pure(tt.FpToFpOp)
def convert_float(op: tt.FpToFpOp) -> Unary:
    """Round to nearest, ties to even, or towards zero; 8-bit results stop at their largest finite number."""
    target = dtype_of(op.result.type)
    if op.rounding is not None and tt.RoundingMode(op.rounding.value.data) is tt.RoundingMode.RTZ:
        return lambda value: truncate_to(value, target)
    saturates = target.itemsize == 1
    return lambda value: round_to(value, target, saturates=saturates)


@pure(tt.ClampFOp)
def clamp(op: tt.ClampFOp) -> Run:
    """The larger one of `x` and the lower limit, then the smaller one of that and the upper limit.

    A NaN spreads, or the other operand takes its place.
    """
    spreads = tt.PropagateNan(op.propagate_nan.value.data) is tt.PropagateNan.ALL
    lower, upper = (elementwise.maximum, elementwise.minimum) if spreads else (elementwise.maxnum, elementwise.minnum)

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
        return elementwise.multiply_high(a, b, signed, is_signed=False)

    return run


# Stochastic rounding, and packed arithmetic (PTX ISA, "cvt", `.rs`; "add", "mul" and "fma" of packed types) ----------


@pure(tlx.StochRoundOp)
def stoch_round(op: tlx.StochRoundOp) -> Binary:
    """Each element with random bits of its own.

    The hardware looks at fewer bits, and packs them, so single elements may differ from it.
    """
    dtype = dtype_of(op.result.type)
    return lambda values, bits: round_at_random(values, bits.view(np.uint32) / 2.0**32, dtype)


def _fma(a: Array, b: Array, c: Array) -> Array:
    return a * b + c


_PACKED: dict[PackedArithOpKind, Callable[..., Array]] = {
    PackedArithOpKind.ADD: np.add,
    PackedArithOpKind.SUB: np.subtract,
    PackedArithOpKind.MUL: np.multiply,
    PackedArithOpKind.FMA: _fma,
    PackedArithOpKind.MIN: elementwise.minnum,
    PackedArithOpKind.MAX: elementwise.maxnum,
}


@pure(ttng.PackedArithOp)
def packed_arith(op: ttng.PackedArithOp) -> Run:
    """Element by element, rounded once; a scale counts for its whole block, and pairs of fp4 are taken apart."""
    function, dtype = _PACKED[PackedArithOpKind(op.op_kind.value.data)], dtype_of(op.result.type)
    shape = op.result.type.get_shape()

    def run(*values: Array) -> Array:
        return np.asarray(function(*(_like(op, value, shape) for value in values))).astype(dtype)

    return run


def _like(op: ttng.PackedArithOp, values: Array, shape: tuple[int, ...]) -> Array:
    """An operand in f64, with an element for each of the result.

    Raises Fault where the shapes do not fit.
    """
    if values.dtype == np.int8:
        halved = [axis for axis, size in enumerate(shape) if size == 2 * values.shape[axis]]
        if len(halved) != 1:
            raise fault_at(op, f"{list(values.shape)} pairs of fp4 are not the {list(shape)} elements of the result")
        return matmul.unpack_e2m1(values, halved[0]).astype(np.float64)
    held = values.astype(np.float64)
    for axis, size in enumerate(shape):
        if size % held.shape[axis]:
            raise fault_at(op, f"an operand of shape {list(values.shape)} does not fit a result of shape {list(shape)}")
        held = np.repeat(held, size // held.shape[axis], axis)
    return held


# Conversions between integers and floats of all widths; see `numerics/rounding.py` -----------------------------------


@pure(arith.ExtSIOp)
def extsi(op: Operation) -> Unary:
    """Extend a signed number: the bit 1 is -1."""
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
def round_float(op: Operation) -> Unary:
    """Rounds to nearest, ties to even; the results beyond the range are infinite, or NaN where there is no infinity."""
    target = dtype_of(op.results[0].type)
    return lambda value: round_to(value, target)


@pure(arith.SIToFPOp)
def sitofp(op: Operation) -> Unary:
    """Convert a signed number: the bit 1 is -1."""
    target = dtype_of(op.results[0].type)
    if dtype_of(op.operands[0].type).kind == "b":
        # Negated as an integer: a float would be -0.0 for the bit 0.
        return lambda value: integer_to(-value.astype(np.int8), target)
    return lambda value: integer_to(value, target)


@pure(arith.UIToFPOp)
def uitofp(op: Operation) -> Unary:
    """Convert an unsigned number."""
    source, target = dtype_of(op.operands[0].type), dtype_of(op.results[0].type)
    if source.kind == "b":
        return lambda value: value.astype(target)
    return lambda value: integer_to(value.view(unsigned(source)), target)


def _float_to_bit(value: Array) -> Array:
    return (np.trunc(value.astype(np.float64)).astype(np.int64) & 1).astype(np.bool_)


@pure(arith.FPToSIOp, arith.FPToUIOp)
def float_to_integer(op: Operation) -> Run:
    """Rounds towards zero, as PTX's cvt.rzi (`numerics.rounding.round_to_integer` says what becomes of NaN).

    For 8 bits, that is the low half of an integer of 16, to which the compiler converts. What is out of range may be
    anything in compiled code (`out_of_range`).
    """
    target = dtype_of(op.results[0].type)
    if target.kind == "b":
        return _float_to_bit
    is_signed = isinstance(op, arith.FPToSIOp)
    kind = "i" if is_signed else "u"
    whole, exact = (np.dtype(f"{kind}{size}") for size in (max(target.itemsize, 2), target.itemsize))

    def run(value: Array) -> Array:
        return answered(op, value, round_to_integer(value, whole).astype(exact)).astype(target)

    return run


@pure(upstream.IndexCastOp)
def index_cast(op: Operation) -> Unary:
    """Convert between `index` and an integer."""
    target = dtype_of(op.results[0].type)
    return lambda value: value.astype(target)
