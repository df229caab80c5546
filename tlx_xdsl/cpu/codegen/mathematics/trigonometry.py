"""Sine, cosine and tangent of f32, and their inverses, in doubles.

An angle is a whole number of quarter turns and a remainder of at most an eighth of a turn.
"""

from __future__ import annotations

import math

from ..builder import I1, Builder, Value
from ..host import Features
from .arithmetic import (
    absolute,
    bits,
    from_bits,
    in_double,
    integer,
    multiply_add,
    number,
    polynomial,
    to_whole,
    two_sum,
    where_far,
    with_sign,
)

_QUARTER = (1.5707963109016418, 1.5893254712295857e-08, 6.123233995736766e-17)
"""Half of pi; products of the first two parts with whole numbers below 2**28 are exact."""
_NEAR = 2.0**27
"""Up to here a remainder is `x - n * pi / 2`."""
_INVERSE = (
    0.6366197690367699, 3.3308114738561656e-09, 2.276010047810136e-18, 2.5268260189002822e-26, 1.6682867657019525e-34,
    1.158871328288855e-43, 7.053959174404295e-52,
)  # fmt: skip
"""2 / pi, 28 bits in each part: products with floats are exact doubles. The rest is below 2**-196."""
_SINE = (1.0, -0.16666666641528335, 0.008333329374287397, -0.00019839331047106509, 2.7182749147731286e-06)
"""Of `sin(r) / r` as a polynomial of `r**2`, |r| up to pi / 4: error 2**-37."""
_COSINE = (1.0, -0.5, 0.04166666661930177, -0.0013888883483839410, 2.479945588932622e-05, -2.72054028181774e-07)
"""Of `cos(r)`: error 2**-42."""


def _angle(b: Builder, x: Value) -> tuple[Value, Value]:
    """The remainder, and an integer whose low two bits count the quarter turns. Of infinity and NaN it is NaN."""
    count, whole = to_whole(b, x, 2 / math.pi)
    rest = x
    for part in _QUARTER:
        rest = multiply_add(b, count, number(-part, x), rest)
    rest, whole = where_far(b, x, _NEAR, [rest, whole], lambda: _far_angle(b, x))
    return rest, whole


def _far_angle(b: Builder, x: Value) -> tuple[Value, Value]:
    """The same of any float: of each product with a part of `2 / pi`, whole turns are dropped, which is exact.

    The sum of what is left has two parts: together they are exact enough for the float that is closest to a multiple
    of `pi / 2`.
    """
    total, low = number(0.0, x), number(0.0, x)
    for part in _INVERSE:
        product = b.binary("fmul", x, number(part, x))
        turns = b.intrinsic("llvm.rint", b.binary("fmul", product, number(0.25, x)))
        rest = b.binary("fsub", product, b.binary("fmul", turns, number(4.0, x)))
        total, dropped = two_sum(b, total, rest)
        low = b.binary("fadd", low, dropped)
    count, whole = to_whole(b, total)
    rest = b.binary("fadd", b.binary("fsub", total, count), low)
    return b.binary("fmul", rest, number(math.pi / 2, x)), whole


def _sine_and_cosine(b: Builder, rest: Value) -> tuple[Value, Value]:
    square = b.binary("fmul", rest, rest)
    return b.binary("fmul", rest, polynomial(b, square, _SINE)), polynomial(b, square, _COSINE)


def _quarter(b: Builder, rest: Value, whole: Value) -> Value:
    """The sine of a remainder after a number of quarter turns."""
    sine, cosine = _sine_and_cosine(b, rest)
    result = b.select(_is_odd(b, whole), cosine, sine)
    sign = b.binary("shl", b.binary("and", whole, integer(2, rest)), integer(62, rest))
    return from_bits(b, b.binary("xor", bits(b, result), sign))


def _is_odd(b: Builder, whole: Value) -> Value:
    return b.cast("trunc", whole, I1)


def _sin(b: Builder, _features: Features, x: Value) -> Value:
    return _quarter(b, *_angle(b, x))


def _cos(b: Builder, _features: Features, x: Value) -> Value:
    rest, whole = _angle(b, x)
    return _quarter(b, rest, b.binary("add", whole, integer(1, x)))


def _tan(b: Builder, _features: Features, x: Value) -> Value:
    rest, whole = _angle(b, x)
    sine, cosine = _sine_and_cosine(b, rest)
    odd = _is_odd(b, whole)
    return b.binary("fdiv", b.select(odd, cosine, sine), b.select(odd, b.fneg(sine), cosine))


sin, cos, tan = in_double(_sin), in_double(_cos), in_double(_tan)
"""Error: 0.51 ulp."""

# Inverses ------------------------------------------------------------------------------------------------------------

_ARCTANGENT = (
    1.0, -0.333333332954868, 0.19999994295949394, -0.14285422350838606, 0.11103979652155405, -0.08996608634390516,
    0.06990136076778374, -0.037904675725478586,
)  # fmt: skip
"""Of `atan(t) / t` as a polynomial of `t**2`, |t| up to the tangent of pi / 8: error 2**-40."""


def _positive_angle(b: Builder, y: Value, x: Value) -> Value:
    """The angle between 0 and pi / 2 whose tangent is `y / x`, both not negative; not both 0 or infinite.

    Beyond pi / 8 it is that of the angle's difference to pi / 4, and so on.
    """
    low, high = number(math.sqrt(2) - 1, x), number(math.sqrt(2) + 1, x)
    beyond = b.compare("fcmp ogt", y, b.binary("fmul", x, low))
    steep = b.compare("fcmp ogt", y, b.binary("fmul", x, high))
    above = b.select(steep, b.fneg(x), b.select(beyond, b.binary("fsub", y, x), y))
    below = b.select(steep, y, b.select(beyond, b.binary("fadd", y, x), x))
    tangent = b.binary("fdiv", above, below)
    angle = b.binary("fmul", tangent, polynomial(b, b.binary("fmul", tangent, tangent), _ARCTANGENT))
    offset = b.select(beyond, number(math.pi / 4, x), number(0.0, x))
    return b.binary("fadd", angle, b.select(steep, number(math.pi / 2, x), offset))


def _atan(b: Builder, _features: Features, x: Value) -> Value:
    return with_sign(b, _positive_angle(b, absolute(b, x), number(1.0, x)), x)


def _atan2(b: Builder, _features: Features, y: Value, x: Value) -> Value:
    height, width = absolute(b, y), absolute(b, x)
    # Two zeros or two infinities are as 0 to 1 and as 1 to 1.
    infinity = number(math.inf, x)
    same = b.compare("fcmp oeq", height, width)
    edge = b.binary("and", same, b.compare("fcmp oeq", height, infinity))
    one = number(1.0, x)
    empty = b.compare("fcmp oeq", b.binary("fadd", height, width), number(0.0, x))
    angle = _positive_angle(b, b.select(edge, one, height), b.select(b.binary("or", edge, empty), one, width))
    left = b.compare("icmp slt", bits(b, x), integer(0, x))
    angle = b.select(left, b.binary("fsub", number(math.pi, x), angle), angle)
    return with_sign(b, angle, y)


def _other_leg(b: Builder, x: Value) -> Value:
    """`sqrt(1 - x**2)`, NaN beyond 1."""
    one = number(1.0, x)
    return b.intrinsic("llvm.sqrt", b.binary("fmul", b.binary("fsub", one, x), b.binary("fadd", one, x)))


def _asin(b: Builder, _features: Features, x: Value) -> Value:
    return with_sign(b, _positive_angle(b, absolute(b, x), _other_leg(b, x)), x)


def _acos(b: Builder, _features: Features, x: Value) -> Value:
    angle = _positive_angle(b, _other_leg(b, x), absolute(b, x))
    left = b.compare("fcmp olt", x, number(0.0, x))
    return b.select(left, b.binary("fsub", number(math.pi, x), angle), angle)


atan, atan2, asin, acos = in_double(_atan), in_double(_atan2), in_double(_asin), in_double(_acos)
"""Error: 0.51 ulp."""
