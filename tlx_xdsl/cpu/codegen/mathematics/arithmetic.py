"""Building blocks of the functions: polynomials, powers of two, parts of a float."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..builder import F32, F64, I1, I16, I32, Builder, Value, bits_type, constant, mangle
from ..host import Features

Function = Callable[..., Value]
"""Gets the builder, the features of the processor and the operands."""

MANTISSA = {"float": 23, "double": 52}
"""Bits of a mantissa, without the leading one."""
BIAS = {"float": 127, "double": 1023}
"""Of an exponent."""


def number(value: float, like: Value) -> Value:
    """A constant of the type of another value."""
    return constant(value, like.element, like.lanes)


def integer(value: int, like: Value) -> Value:
    """A constant integer as wide as a float."""
    return constant(value, bits_type(like.element), like.lanes)


def bits(b: Builder, value: Value) -> Value:
    """The integer that holds a float."""
    return b.cast("bitcast", value, bits_type(value.element))


def from_bits(b: Builder, value: Value) -> Value:
    """The float that an integer holds."""
    return b.cast("bitcast", value, F32 if value.element == I32 else F64)


def multiply_add(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """`x * y + z`, rounded once where the processor has an instruction for it."""
    return b.intrinsic("llvm.fmuladd", x, y, z)


def polynomial(b: Builder, x: Value, coefficients: Sequence[float]) -> Value:
    """The sum of `coefficients[k] * x**k` by Horner's rule."""
    result = number(coefficients[-1], x)
    for coefficient in reversed(coefficients[:-1]):
        result = multiply_add(b, result, x, number(coefficient, x))
    return result


def long_polynomial(b: Builder, x: Value, coefficients: Sequence[float]) -> Value:
    """`polynomial` in fours, which wait for each other only in the steps by `x**4`."""
    power = b.binary("fmul", x, x)
    power = b.binary("fmul", power, power)
    *fours, result = (polynomial(b, x, coefficients[first : first + 4]) for first in range(0, len(coefficients), 4))
    for each in reversed(fours):
        result = multiply_add(b, result, power, each)
    return result


def in_double(function: Function) -> Function:
    """A function of floats that is computed in doubles: all of it is exact enough to be rounded once."""

    def run(b: Builder, features: Features, *operands: Value) -> Value:
        wide = (b.cast("fpext", operand, F64) for operand in operands)
        return b.cast("fptrunc", function(b, features, *wide), F32)

    return run


def two_sum(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """The rounded sum and what rounding has dropped (Knuth, TAOCP 4.2.2)."""
    total = b.binary("fadd", x, y)
    other = b.binary("fsub", total, x)
    rest = b.binary("fsub", x, b.binary("fsub", total, other))
    return total, b.binary("fadd", rest, b.binary("fsub", y, other))


def any_lane(b: Builder, mask: Value) -> Value:
    """Return whether any bit of a vector is set."""
    if mask.lanes == 1:
        return mask
    found = b.call(f"llvm.vector.reduce.or.{mangle(mask)}", Value("", I1), mask)
    assert found is not None
    return found


def where_far(
    b: Builder, x: Value, limit: float, near: Sequence[Value], far: Callable[[], Sequence[Value]]
) -> list[Value]:
    """`near`, but what `far` writes in lanes where a finite `x` is beyond `limit`; it runs if there is such a lane."""
    size = absolute(b, x)
    is_far = b.binary(
        "and", b.compare("fcmp ogt", size, number(limit, x)), b.compare("fcmp olt", size, number(math.inf, x))
    )
    before, slow, done = b.label, b.name(), b.name()
    b.branch_if(any_lane(b, is_far), slow, done)
    b.begin(slow)
    found = [b.select(is_far, other, value) for value, other in zip(near, far(), strict=True)]
    end = b.label
    b.branch(done)
    b.begin(done)
    return [
        b.phi(value.element, x.lanes, [(value, before), (other, end)])[0]
        for value, other in zip(near, found, strict=True)
    ]


def absolute(b: Builder, x: Value) -> Value:
    """Clear the sign."""
    return b.intrinsic("llvm.fabs", x)


def with_sign(b: Builder, x: Value, sign: Value) -> Value:
    """The magnitude of one number with the sign of another."""
    return b.intrinsic("llvm.copysign", x, sign)


def clamped(b: Builder, x: Value, low: float, high: float) -> Value:
    """A number between two limits; NaN stays, which the order of the operands is for."""
    lowest, highest = number(low, x), number(high, x)
    x = b.select(b.compare("fcmp ogt", lowest, x), lowest, x)
    return b.select(b.compare("fcmp olt", highest, x), highest, x)


def to_whole(b: Builder, x: Value, factor: float = 1.0) -> tuple[Value, Value]:
    """The whole number nearest to `factor * x`, whose size is below 2**22 (2**51 of doubles).

    It comes as a float, and as an integer whose low bits are those of the number. Added to a float whose last bit is 1,
    it is rounded there: processors without an instruction for it need no call.
    """
    lead = number(1.5 * 2.0 ** MANTISSA[x.element], x)
    moved = multiply_add(b, x, number(factor, x), lead)
    return b.binary("fsub", moved, lead), bits(b, moved)


def scaled_within(b: Builder, x: Value, whole: Value) -> Value:
    """`x * 2**whole`, the integer of `to_whole`, where neither is out of the range of normal numbers.

    NaN stays if its low bits are 0, as those of a float that became a double.
    """
    exponent = b.binary("shl", whole, integer(MANTISSA[x.element], x))
    return from_bits(b, b.binary("add", bits(b, x), exponent))


def scaled(b: Builder, x: Value, exponent: Value, features: Features) -> Value:
    """`x * 2**exponent`, rounded once: `exponent` is a whole number within twice the range of exponents, as a float.

    In two factors where no instruction does it, so that neither of them nor the product on the way is out of range.
    """
    if features.vector_bytes == 64 and not features.sve and x.lanes * (4 if x.element == F32 else 8) in (16, 32, 64):
        size = 8 * x.lanes * (4 if x.element == F32 else 8)
        mask = Value("-1", I16 if x.lanes == 16 else "i8")
        operands = [x, exponent, Value("zeroinitializer", x.element, x.lanes), mask]
        if size == 512:
            # Rounds as all instructions do.
            operands.append(Value("4", I32))
        found = b.call(f"llvm.x86.avx512.mask.scalef.p{'s' if x.element == F32 else 'd'}.{size}", x, *operands)
        assert found is not None
        return found
    mantissa = MANTISSA[x.element]
    lead = number(1.5 * 2.0**mantissa, x)
    whole = b.binary("sub", bits(b, b.binary("fadd", exponent, lead)), bits(b, lead))
    half = b.binary("ashr", whole, integer(1, x))
    for part in (half, b.binary("sub", whole, half)):
        biased = b.binary("add", part, integer(BIAS[x.element], x))
        x = b.binary("fmul", x, from_bits(b, b.binary("shl", biased, integer(mantissa, x))))
    return x
