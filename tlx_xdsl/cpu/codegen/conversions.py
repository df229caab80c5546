"""Conversions of numbers, lane by lane, without branches, tables or functions of a run-time library.

Floats below 32 bits are the integers that hold their bits. Every conversion rounds once and gives the bits that
`tlx_xdsl.numerics.rounding` gives, which the interpreter uses; only the payload of an f16 that is NaN may differ.

A double becomes narrower than 32 bits by way of a float that is rounded to odd (see there). An integer that a float
does not hold keeps as many high bits as it does, the last of which is set if any bit below is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type
from xdsl.ir import Attribute

from tlx_xdsl.dialects.base.tensors import element_type_of

from .builder import F32, F64, I1, I16, I32, I64, Builder, Value, constant, register_type
from .host import Features

Rounding = Literal["rne", "rtz"]


@dataclass(frozen=True, slots=True)
class _Format:
    """Format of a float narrower than 32 bits; codes are bits without the sign's."""

    bits: int
    mantissa: int
    bias: int
    largest: int
    """The code of the largest finite number."""
    overflow: int
    """The code of what is larger: infinity, or NaN."""
    nan: int

    @property
    def is_unsigned_zero(self) -> bool:
        """Return whether the sign alone is NaN, and zero has none."""
        return self.nan >> self.bits - 1 != 0

    @property
    def shift(self) -> int:
        """Number of bits by which the mantissa of a float is longer."""
        return 23 - self.mantissa

    @property
    def rebias(self) -> int:
        """The difference of the exponents' biases, where a float has its exponent."""
        return 127 - self.bias << 23


@lru_cache(maxsize=256)
def _format(type_: Attribute) -> _Format | None:
    """Return how values of a type are held; None where they are no floats of 8 or 16 bits."""
    found = element_type_of(type_)
    if found is None or found.kind != "f" or found.bits not in (8, 16):
        return None
    return _Format(found.bits, found.mantissa, found.bias, found.largest_code, found.overflow_code, found.nan_code)


def is_narrow(type_: Attribute) -> bool:
    """Return whether values of a type are held as bits, and computed with as floats."""
    return _format(type_) is not None


# To a wider float ----------------------------------------------------------------------------------------------------


def widen(b: Builder, value: Value, type_: Attribute, features: Features) -> Value:
    """A number of `type_`, as the bits that hold it, as a float: exact. A float or a double stays.

    NaN keeps its sign, and the payload as bf16 and f16.
    """
    if (held := _format(type_)) is None:
        return value
    bits = b.resized(value, I32, signed=False)
    if isinstance(type_, BFloat16Type):
        return b.cast("bitcast", b.binary("shl", bits, constant(16, I32)), F32)
    if isinstance(type_, Float16Type) and features.hardware_half:
        return b.cast("fpext", b.cast("bitcast", value, "half"), F32)
    return _widen(b, bits, held)


def _widen(b: Builder, bits: Value, held: _Format) -> Value:
    magnitude = b.binary("and", bits, constant((1 << held.bits - 1) - 1, I32))
    sign = b.binary("shl", b.binary("lshr", bits, constant(held.bits - 1, I32)), constant(31, I32))
    moved = b.binary("shl", magnitude, constant(held.shift, I32))
    normal = b.binary("add", moved, constant(held.rebias, I32))
    # Without a leading bit of their own, they get that of the smallest normal number, which is then subtracted.
    lead = constant(held.rebias + (1 << 23), I32, bits.lanes)
    with_lead = b.cast("bitcast", b.binary("add", moved, lead), F32)
    subnormal = b.cast("bitcast", b.binary("fsub", with_lead, b.cast("bitcast", lead, F32)), I32)
    is_subnormal = b.compare("icmp ult", moved, constant(1 << 23, I32))
    result = b.select(is_subnormal, subnormal, normal)
    if held.is_unsigned_zero:
        nan = b.compare("icmp eq", bits, constant(held.nan, I32))
        result = b.select(nan, constant(0x7FC00000, I32), result)
    elif held.largest + 1 == held.nan:
        nan = b.compare("icmp eq", magnitude, constant(held.nan, I32))
        result = b.select(nan, constant(0x7FC00000, I32), result)
    else:
        special = b.compare("icmp ugt", magnitude, constant(held.largest, I32))
        # A payload is kept in 16 bits, and is the same for all NaN in 8.
        kept = b.binary("or", moved, constant(0x7F800000, I32))
        if held.bits == 8:
            nan = b.compare("icmp ugt", magnitude, constant(held.overflow, I32))
            kept = b.select(nan, constant(0x7FC00000, I32), kept)
        result = b.select(special, kept, result)
    return b.cast("bitcast", b.binary("or", result, sign), F32)


# To a narrower float -------------------------------------------------------------------------------------------------


def narrow(b: Builder, value: Value, type_: Attribute, features: Features, rounding: Rounding = "rne") -> Value:
    """A float or a double as a number of `type_`, which may be as wide: to the nearest, ties to even, or towards zero.

    What is too large becomes infinite, NaN where the type has no infinity, or with `rtz` the largest finite number.
    """
    if isinstance(type_, Float64Type):
        return b.cast("fpext", value, F64) if value.element == F32 else value
    if isinstance(type_, Float32Type):
        if value.element == F32:
            return value
        return b.cast("fptrunc", value, F32) if rounding == "rne" else _truncated_single(b, value)
    if value.element == F64:
        value = _odd_single(b, value)
    if isinstance(type_, Float16Type) and features.hardware_half and rounding == "rne":
        return b.cast("bitcast", b.cast("fptrunc", value, "half"), I16)
    held = _format(type_)
    assert held is not None, "the types of a float's width and more are above"
    return b.resized(_narrow(b, value, held, rounding), register_type(type_))


def _odd_single(b: Builder, value: Value) -> Value:
    """A double as a float; of an inexact one, the neighbour whose last bit is set."""
    nearest = b.cast("fptrunc", value, F32)
    back = b.cast("fpext", nearest, F64)
    bits = b.cast("bitcast", nearest, I32)
    even = b.compare("icmp eq", b.binary("and", bits, constant(1, I32)), constant(0, I32))
    to_move = b.binary("and", even, b.compare("fcmp one", back, value))
    above = b.compare("fcmp ogt", b.intrinsic("llvm.fabs", back), b.intrinsic("llvm.fabs", value))
    step = b.select(above, constant(-1, I32), constant(1, I32, bits.lanes))
    return b.cast("bitcast", b.binary("add", bits, b.select(to_move, step, constant(0, I32))), F32)


def _truncated_single(b: Builder, value: Value) -> Value:
    """A double as the float next to it towards zero; infinities stay."""
    nearest = b.cast("fptrunc", value, F32)
    size, back = b.intrinsic("llvm.fabs", value), b.intrinsic("llvm.fabs", b.cast("fpext", nearest, F64))
    above = b.compare("fcmp ogt", back, size)
    bits = b.cast("bitcast", nearest, I32)
    return b.cast("bitcast", b.binary("add", bits, b.cast("sext", above, I32)), F32)


def _narrow(b: Builder, value: Value, held: _Format, rounding: Rounding) -> Value:
    """The bits that hold a float, as the low ones of an i32."""
    bits = b.cast("bitcast", value, I32)
    sign = b.binary("and", b.binary("lshr", bits, constant(32 - held.bits, I32)), constant(1 << held.bits - 1, I32))
    size = b.binary("and", bits, constant(0x7FFFFFFF, I32))
    code = _normal_code(b, size, held, rounding)
    if held.rebias:
        # Below the smallest normal number of the type.
        small = b.compare("icmp ult", size, constant(held.rebias + (1 << 23), I32))
        code = b.select(small, _subnormal_code(b, size, held, rounding), code)
        # The exponents of a float go on, also those of infinity and NaN.
        too_large = b.compare("icmp sgt", code, constant(held.largest, I32))
        finite_limit = constant(held.largest if rounding == "rtz" else held.overflow, I32)
        code = b.select(too_large, finite_limit, code)
        if rounding == "rtz":
            infinite = b.compare("icmp eq", size, constant(0x7F800000, I32))
            code = b.select(infinite, constant(held.overflow, I32), code)
    nan = constant(held.nan, I32)
    if held.bits == 16 and held.rebias:
        # f16 keeps what there is room for of a payload.
        payload = b.binary("and", b.binary("lshr", size, constant(held.shift, I32)), constant(0x1FF, I32))
        nan = b.binary("or", payload, nan)
    code = b.select(b.compare("icmp ugt", size, constant(0x7F800000, I32)), nan, code)
    if held.is_unsigned_zero:
        return b.select(b.compare("icmp eq", code, constant(0, I32)), code, b.binary("or", code, sign))
    return b.binary("or", code, sign)


def _normal_code(b: Builder, size: Value, held: _Format, rounding: Rounding) -> Value:
    """The bits without the last ones, of which the first decides."""
    if rounding == "rne":
        odd = b.binary("and", b.binary("lshr", size, constant(held.shift, I32)), constant(1, I32))
        size = b.binary("add", b.binary("add", size, constant((1 << held.shift - 1) - 1, I32)), odd)
    if held.rebias:
        # Before the shift, for which it is a multiple: small numbers, whose code this is not, are negative then.
        size = b.binary("sub", size, constant(held.rebias, I32))
        return b.binary("ashr", size, constant(held.shift, I32))
    return b.binary("lshr", size, constant(held.shift, I32))


def _subnormal_code(b: Builder, size: Value, held: _Format, rounding: Rounding) -> Value:
    """Return how many of the smallest numbers of the type."""
    number = b.cast("bitcast", size, F32)
    exponent = held.bias - 1 + held.mantissa
    if rounding == "rtz":
        count = b.binary("fmul", number, constant(2.0**exponent, F32))
        # What is too large for it is not taken.
        return _saturated(b, count, I32, signed=True)
    # Added to a number whose last bit counts as much as theirs, it is rounded there.
    lead = constant(2.0 ** (23 - exponent), F32, size.lanes)
    return b.binary("sub", b.cast("bitcast", b.binary("fadd", number, lead), I32), b.cast("bitcast", lead, I32))


# Integers ------------------------------------------------------------------------------------------------------------


def from_integer(b: Builder, value: Value, type_: Attribute, features: Features, *, signed: bool) -> Value:
    """An integer as the nearest number of `type_`, ties to even. As a signed number, the bit 1 is -1."""
    opcode, width = "sitofp" if signed else "uitofp", int(value.element[1:])
    if isinstance(type_, Float32Type | Float64Type):
        return b.cast(opcode, value, register_type(type_))
    if width < 32:
        value = b.resized(value, I32, signed=signed)
        return narrow(b, b.cast("sitofp", value, F32), type_, features)
    element, exact, dropped = (F32, 24, 9) if width <= 32 else (F64, 53, 12)
    value = b.resized(value, I32 if width <= 32 else I64, signed=signed)
    return narrow(b, b.cast(opcode, _with_few_bits(b, value, exact, dropped, signed=signed), element), type_, features)


def _with_few_bits(b: Builder, value: Value, exact: int, dropped: int, *, signed: bool) -> Value:
    """An integer; of one with more than `exact` bits, the last `dropped` are their highest alone, or none."""
    mask = constant((1 << dropped) - 1, value.element)
    rest = b.compare("icmp ne", b.binary("and", value, mask), constant(0, value.element))
    last = b.select(rest, constant(1 << dropped - 1, value.element), constant(0, value.element))
    few = b.binary("or", b.binary("and", value, constant(-1 << dropped, value.element)), last)
    offset, range_ = (1 << exact, 2 << exact) if signed else (0, 1 << exact)
    moved = b.binary("add", value, constant(offset, value.element))
    return b.select(b.compare("icmp ult", moved, constant(range_, value.element)), value, few)


def to_integer(b: Builder, value: Value, element: str, *, signed: bool) -> Value:
    """A float or a double, rounded towards zero, as an integer; out of range the nearest integer there is.

    NaN is 0, but of a double and as a 64-bit integer it has the highest bit alone. For 8 bits, the result is the low
    half of that in 16 (PTX ISA, "cvt"), and the lowest bit for one, which is 0 for what has no bit of that value.
    """
    width = int(element[1:])
    if element == I1:
        whole = _saturated(b, value, I64, signed=True)
        infinite = b.compare("fcmp uge", b.intrinsic("llvm.fabs", value), constant(2.0**63, value.element))
        return b.cast("trunc", b.select(infinite, constant(0, I64), whole), I1)
    if width < 16:
        return b.resized(to_integer(b, value, I16, signed=signed), element)
    whole = _saturated(b, value, element, signed=signed)
    if value.element == F64 or width == 64:
        nan = b.compare("fcmp uno", value, value)
        whole = b.select(nan, constant(-1 << width - 1, element), whole)
    return whole


def _saturated(b: Builder, value: Value, element: str, *, signed: bool) -> Value:
    """An integer of at least 16 bits, of NaN 0: LLVM's own saturating conversion takes vectors apart for some targets.

    Limits are powers of two, which floats hold: the upper one is the first that is too large.
    """
    width = int(element[1:])
    lower, upper = (-(2.0 ** (width - 1)), 2.0 ** (width - 1)) if signed else (0.0, 2.0**width)
    below = b.compare("fcmp olt", value, constant(lower, value.element))
    above = b.compare("fcmp oge", value, constant(upper, value.element))
    taken = b.binary(
        "and",
        b.compare("fcmp oge", value, constant(lower, value.element)),
        b.compare("fcmp olt", value, constant(upper, value.element)),
    )
    within = b.select(taken, value, constant(0, value.element))
    # By way of 32 bits, which processors have instructions for.
    whole = b.cast("fptosi" if signed or width < 32 else "fptoui", within, element if width >= 32 else I32)
    whole = b.resized(whole, element)
    least, most = (-1 << width - 1, (1 << width - 1) - 1) if signed else (0, -1)
    return b.select(above, constant(most, element), b.select(below, constant(least, element), whole))
