"""Powers and roots."""

from __future__ import annotations

import math

from ..builder import Builder, Value
from ..host import Features
from .arithmetic import (
    BIAS,
    MANTISSA,
    absolute,
    clamped,
    in_double,
    multiply_add,
    number,
    with_sign,
)
from .exponentials import LOG2E, short_exp2
from .logarithms import short_log


def rsqrt(b: Builder, _features: Features, x: Value) -> Value:
    """The reciprocal of the square root; of -0 it is -inf. Error: 0.51 ulp.

    What both roundings drop is known exactly, and so is corrected, except at the edges, where it is NaN. Of small
    numbers it would not be exact: they are multiplied by a power of four.
    """
    one, mantissa = number(1.0, x), MANTISSA[x.element]
    steps = mantissa // 2 + 1
    tiny = b.compare("fcmp olt", x, number(2.0 ** (mantissa + 2 - BIAS[x.element]), x))
    x = b.binary("fmul", x, b.select(tiny, number(4.0**steps, x), one))
    root = b.intrinsic("llvm.sqrt", x)
    inverse = b.binary("fdiv", one, root)
    root_rest = multiply_add(b, b.fneg(root), root, x)
    rest = multiply_add(b, b.fneg(inverse), root, one)
    square = b.binary("fmul", b.binary("fmul", inverse, inverse), number(-0.5, x))
    rest = multiply_add(b, root_rest, square, rest)
    corrected = multiply_add(b, inverse, rest, inverse)
    result = b.select(b.compare("fcmp uno", corrected, corrected), inverse, corrected)
    return b.binary("fmul", result, b.select(tiny, number(2.0**steps, x), one))


def _log2(b: Builder, x: Value) -> Value:
    """Compute log2 of a float that is not negative, as a double: those are normal numbers."""
    result = b.binary("fmul", short_log(b, x), number(LOG2E, x))
    result = b.select(b.compare("fcmp olt", x, number(math.inf, x)), result, x)
    return b.select(b.compare("fcmp oeq", x, number(0.0, x)), number(-math.inf, x), result)


def _cbrt(b: Builder, _features: Features, x: Value) -> Value:
    third = b.binary("fmul", _log2(b, absolute(b, x)), number(1 / 3, x))
    size = absolute(b, x)
    root = short_exp2(b, clamped(b, third, -200.0, 200.0))
    ordinary = b.binary(
        "and",
        b.compare("fcmp one", size, number(0.0, x)),
        b.compare("fcmp one", size, number(math.inf, x)),
    )
    return b.select(ordinary, with_sign(b, root, x), x)


def _pow(b: Builder, _features: Features, x: Value, y: Value) -> Value:
    """Compute the power, with the special values of C's `pow` (ISO C, F.10.4.4)."""
    zero = number(0.0, x)
    logarithm = _log2(b, absolute(b, x))
    # 1 to any power, and anything to the power of 0.
    is_one = b.binary("or", b.compare("fcmp oeq", logarithm, zero), b.compare("fcmp oeq", y, zero))
    exponent = b.select(is_one, zero, b.binary("fmul", y, logarithm))
    # Out of the range of floats on both sides, and in that of doubles.
    size = short_exp2(b, clamped(b, exponent, -300.0, 300.0))
    fraction = b.compare("fcmp une", b.intrinsic("llvm.floor", y), y)
    half = b.binary("fmul", y, number(0.5, x))
    half_is_whole = b.compare("fcmp oeq", b.intrinsic("llvm.floor", half), half)
    even = b.binary("or", fraction, half_is_whole)
    result = b.select(even, size, with_sign(b, size, x))
    finite_negative = b.binary("and", b.compare("fcmp olt", x, zero), b.compare("fcmp ogt", x, number(-math.inf, x)))
    return b.select(b.binary("and", finite_negative, fraction), number(math.nan, x), result)


cbrt, pow_ = in_double(_cbrt), in_double(_pow)
"""Of f32; error: 0.51 ulp."""
