"""Sine, cosine and tangent of f64; those of far angles are the C library's, called where a lane has one.

The remainder of an angle by quarter turns has two parts. The second one is below the last place of the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..builder import I1, Builder, Value
from ..host import Features
from .arithmetic import (
    Function,
    bits,
    from_bits,
    integer,
    multiply_add,
    number,
    polynomial,
    to_whole,
    two_sum,
    where_far,
    with_sign,
)

_QUARTER = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32)
"""Half of pi; products of the first three parts with whole numbers up to 2**20 are exact."""
_NEAR = 2.0**20
_SINE = (
    -0.16666666666666632, 0.008333333333322472, -0.00019841269829835655, 2.755731369731879e-06, -2.5050758484184414e-08,
    1.5896795941831587e-10,
)  # fmt: skip
"""Of `(sin(r) - r) / r**3` as a polynomial of `r**2`, |r| up to pi / 4: error 2**-58, relative to `sin(r)`."""
_COSINE = (
    0.041666666666666595, -0.0013888888888873325, 2.4801587288983733e-05, -2.7557314210112535e-07,
    2.087570427925257e-09, -1.1358683909793702e-11,
)  # fmt: skip
"""Of `(cos(r) - 1 + r**2 / 2) / r**4`: error 2**-63, relative to `cos(r)`."""

_Angle = tuple[Value, Value, Value]
"""Both parts of a remainder, and an integer whose low two bits count the quarter turns."""


def _angle(b: Builder, x: Value) -> _Angle:
    count, whole = to_whole(b, x, 2 / math.pi)
    high, low = x, number(0.0, x)
    for part in _QUARTER[:-1]:
        high, dropped = two_sum(b, high, b.binary("fmul", count, number(-part, x)))
        low = b.binary("fadd", low, dropped)
    low = multiply_add(b, count, number(-_QUARTER[-1], x), low)
    total = b.binary("fadd", high, low)
    low = b.binary("fadd", b.binary("fsub", high, total), low)
    # Zero keeps its sign; no other remainder is zero.
    return b.select(b.compare("fcmp oeq", x, number(0.0, x)), x, total), low, whole


def _sine(b: Builder, high: Value, low: Value) -> Value:
    square = b.binary("fmul", high, high)
    half = b.binary("fmul", square, number(0.5, high))
    # The slope of the sine, for the second part.
    moved = b.binary("fsub", low, b.binary("fmul", half, low))
    rest = multiply_add(b, b.binary("fmul", square, high), polynomial(b, square, _SINE), moved)
    return with_sign(b, b.binary("fadd", high, rest), high)


def _cosine(b: Builder, high: Value, low: Value) -> Value:
    one = number(1.0, high)
    square = b.binary("fmul", high, high)
    half = b.binary("fmul", square, number(0.5, high))
    first = b.binary("fsub", one, half)
    dropped = b.binary("fsub", b.binary("fsub", one, first), half)
    rest = multiply_add(b, b.fneg(high), low, dropped)
    fourth = b.binary("fmul", square, square)
    return b.binary("fadd", first, multiply_add(b, fourth, polynomial(b, square, _COSINE), rest))


def _of_turns(b: Builder, angle: _Angle, turns: int) -> Value:
    """The sine of an angle and some quarter turns."""
    high, low, whole = angle
    if turns:
        whole = b.binary("add", whole, integer(turns, high))
    odd = b.cast("trunc", whole, I1)
    result = b.select(odd, _cosine(b, high, low), _sine(b, high, low))
    sign = b.binary("shl", b.binary("and", whole, integer(2, high)), integer(62, high))
    return from_bits(b, b.binary("xor", bits(b, result), sign))


def _sin(b: Builder, angle: _Angle) -> Value:
    return _of_turns(b, angle, 0)


def _cos(b: Builder, angle: _Angle) -> Value:
    return _of_turns(b, angle, 1)


def _tan(b: Builder, angle: _Angle) -> Value:
    high, low, whole = angle
    sine, cosine = _sine(b, high, low), _cosine(b, high, low)
    odd = b.cast("trunc", whole, I1)
    return b.binary("fdiv", b.select(odd, cosine, sine), b.select(odd, b.fneg(sine), cosine))


def _of_any(name: str, near: Callable[[Builder, _Angle], Value]) -> Function:
    def run(b: Builder, _features: Features, x: Value) -> Value:
        result = near(b, _angle(b, x))
        # Of infinity and NaN, the result is NaN already.
        return where_far(b, x, _NEAR, [result], lambda: [b.scalar_call(name, x)])[0]

    return run


sin, cos, tan = _of_any("sin", _sin), _of_any("cos", _cos), _of_any("tan", _tan)
"""Of f64; error: 0.73, 0.73 and 1.9 ulp."""
