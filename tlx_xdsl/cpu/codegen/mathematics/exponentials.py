"""Exponential functions: `2**n` for the nearest whole `n`, times a polynomial on what is left.

All polynomials of this package are minimax fits (Remez' algorithm in 200 bits) whose coefficients were rounded one
after the other, the rest being fitted again each time, and then moved by a few last places while that helped. Errors
are the largest ones measured, in units of the last place of the exact result (ulp): of f32 over all numbers where they
are large and a part of the others, of f64 over samples.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..builder import F32, F64, Builder, Value
from ..host import Features
from .arithmetic import (
    absolute,
    clamped,
    in_double,
    long_polynomial,
    multiply_add,
    number,
    polynomial,
    scaled,
    scaled_within,
    to_whole,
    with_sign,
)

LOG2E = 1.4426950408889634


@dataclass(frozen=True, slots=True)
class _Exponential:
    """Constants of `exp` and `exp2` in one type."""

    lowest: float
    """Its exponential is 0."""
    highest: float
    """Its exponential is infinite."""
    logarithm: tuple[float, float]
    """Of 2; the first part has so few bits that its products with exponents are exact."""
    coefficients: tuple[float, ...]
    """Of `exp(r)` for |r| up to half of the logarithm, from that of `r` on."""
    base_two: tuple[float, ...]
    """Of `2**r` for |r| up to 1/2."""


_EXPONENTIALS = {
    # Errors of the polynomials, relative to the result: 2**-28 and 2**-27.
    F32: _Exponential(
        lowest=-104.0,
        highest=89.0,
        logarithm=(0.693145751953125, 1.428606765330187e-06),
        coefficients=(1.0, 0.49999994, 0.16666509, 0.04166801, 0.008370018, 0.0013847941),
        base_two=(0.6931472, 0.24022646, 0.055503458, 0.009618538, 0.0013398605, 0.00015353586),
    ),
    # 2**-57 and 2**-57.
    F64: _Exponential(
        lowest=-746.0,
        highest=710.0,
        logarithm=(0.6931471805598903, 5.497923018708371e-14),
        coefficients=(
            1.0, 0.5000000000000012, 0.16666666666666413, 0.041666666666514494, 0.008333333333486287,
            0.0013888888948218327, 0.00019841269540849454, 2.480148794684618e-05, 2.755754138632427e-06,
            2.763220527760661e-07, 2.5018684119511464e-08,
        ),
        base_two=(
            0.6931471805599453, 0.24022650695910172, 0.05550410866482457, 0.009618129107577242, 0.0013333558145570544,
            0.00015403530478637456, 1.5252734734832873e-05, 1.3215424570069494e-06, 1.0177657376070032e-07,
            7.075605760669786e-09, 4.5191173332174703e-10,
        ),
    ),
}  # fmt: skip
_SHORT = (
    1.0, 0.5000000000113181, 0.16666666759257082, 0.0416666659127331, 0.008333287342756079, 0.0013888988779982834,
    0.0001990612767509616, 2.4796377154446154e-05,
)  # fmt: skip
"""Of `exp` in doubles as far as a float needs them: error 2**-37, also relative to `exp(r) - 1`."""


def exp(b: Builder, features: Features, x: Value) -> Value:
    """Error of f32: 0.9 ulp; of f64: 0.81 ulp."""
    held = _EXPONENTIALS[x.element]
    x = clamped(b, x, held.lowest, held.highest)
    exponent, _ = to_whole(b, x, LOG2E)
    return scaled(b, polynomial(b, _reduced(b, x, exponent), (1.0, *held.coefficients)), exponent, features)


def exp2(b: Builder, features: Features, x: Value) -> Value:
    """Error of f32: 0.85 ulp; of f64: 0.75 ulp."""
    held = _EXPONENTIALS[x.element]
    x = clamped(b, x, held.lowest * LOG2E, held.highest * LOG2E)
    exponent, _ = to_whole(b, x)
    rest = b.binary("fsub", x, exponent)
    return scaled(b, polynomial(b, rest, (1.0, *held.base_two)), exponent, features)


def _reduced(b: Builder, x: Value, exponent: Value) -> Value:
    """`x - exponent * log(2)`."""
    for part in _EXPONENTIALS[x.element].logarithm:
        x = multiply_add(b, exponent, number(-part, x), x)
    return x


def short_exp(b: Builder, x: Value) -> Value:
    """`exp` of doubles between -700 and 700 with an error of 2**-37."""
    exponent, whole = to_whole(b, x, LOG2E)
    return scaled_within(b, polynomial(b, _reduced(b, x, exponent), (1.0, *_SHORT)), whole)


def short_exp2(b: Builder, x: Value) -> Value:
    """`2**x` of doubles between -1000 and 1000 with an error of 2**-37."""
    exponent, whole = to_whole(b, x)
    rest = b.binary("fmul", b.binary("fsub", x, exponent), number(1 / LOG2E, x))
    return scaled_within(b, polynomial(b, rest, (1.0, *_SHORT)), whole)


def short_expm1(b: Builder, x: Value) -> Value:
    """`exp(x) - 1` of doubles between -700 and 700 with an error of 2**-36, relative to it; its zero has no sign."""
    exponent, whole = to_whole(b, x, LOG2E)
    rest = _reduced(b, x, exponent)
    grown = b.binary("fmul", rest, polynomial(b, rest, _SHORT))
    power = scaled_within(b, number(1.0, x), whole)
    return multiply_add(b, power, grown, b.binary("fsub", power, number(1.0, x)))


# Of f32, in doubles --------------------------------------------------------------------------------------------------


def _expm1(b: Builder, _features: Features, x: Value) -> Value:
    return with_sign(b, short_expm1(b, clamped(b, x, -50.0, 100.0)), x)


def _sinh(b: Builder, _features: Features, x: Value) -> Value:
    grown = short_expm1(b, clamped(b, absolute(b, x), 0.0, 100.0))
    shrunk = b.binary("fdiv", grown, b.binary("fadd", grown, number(1.0, x)))
    return with_sign(b, b.binary("fmul", b.binary("fadd", grown, shrunk), number(0.5, x)), x)


def _cosh(b: Builder, _features: Features, x: Value) -> Value:
    grown = short_exp(b, clamped(b, absolute(b, x), 0.0, 100.0))
    return b.binary("fmul", b.binary("fadd", grown, b.binary("fdiv", number(1.0, x), grown)), number(0.5, x))


expm1, sinh, cosh = in_double(_expm1), in_double(_sinh), in_double(_cosh)
"""Of f32; error: 0.51 ulp."""

# The hyperbolic tangent ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Tangent:
    """Constants of `tanh` in one type."""

    split: float
    """Up to it by the polynomial."""
    end: float
    """From it on the result is 1."""
    coefficients: tuple[float, ...]
    """Of `(tanh(x) - x) / x**3` as a polynomial of `x**2`."""


_TANGENTS = {
    # Errors of the polynomials, relative to the result: 2**-31 and 2**-55.
    F32: _Tangent(
        1.0,
        10.0,
        (
            -0.33333328, 0.13333175, -0.053950723, 0.021774445, -0.008571457, 0.0030488763, -0.0008218962,
            0.0001164497,
        ),
    ),
    F64: _Tangent(
        0.55,
        20.0,
        (
            -0.33333333333332316, 0.1333333333316894, -0.05396825387616818, 0.02186948597655643, -0.0088631945242064,
            0.0035917198393619937, -0.001453217381021311, 0.0005791386871047146, -0.00021030489045918403,
            5.1023063367658515e-05,
        ),
    ),
}  # fmt: skip


def tanh(b: Builder, features: Features, x: Value) -> Value:
    """A polynomial of small numbers, else `1 - 2 / (exp(2 * x) + 1)`. Error of f32: 0.96 ulp; of f64: 1.42 ulp."""
    held = _TANGENTS[x.element]
    size = absolute(b, x)
    square = b.binary("fmul", x, x)
    small = multiply_add(b, b.binary("fmul", x, square), polynomial(b, square, held.coefficients), x)
    double = b.binary("fmul", clamped(b, size, 0.0, held.end), number(2.0, x))
    one = number(1.0, x)
    part = b.binary("fdiv", number(2.0, x), b.binary("fadd", exp(b, features, double), one))
    large = b.binary("fsub", one, part)
    return with_sign(b, b.select(b.compare("fcmp ogt", size, number(held.split, x)), large, small), x)


# The error function of f32.

_CENTER, _CENTRAL, _END = 2.2500777, 0.99853784, 3.93
"""A place whose result is a float but for 2**-36, that result, and the place from which on the result is 1."""
_SMALL = (0.12837917, -0.37612626, 0.112835854, -0.026853811, 0.005188315, -0.0008010146, 7.8543744e-05)
"""Of `erf(x) / x - 1` as a polynomial of `x**2` up to 1: error 2**-29, relative to `erf(x) / x`."""
_LARGE = (
    0.007139854, -0.016065368, 0.021717934, -0.019076802, 0.010659856, -0.002914309, -0.0006768631, 0.0010172776,
    -0.00036375888, -2.9405543e-05, 6.4597196e-05, -1.3196298e-05, -3.0296376e-06, 1.0700019e-06,
)  # fmt: skip
"""Of `(erf(center + t) - erf(center)) / t` from 1 to the end: error 2**-27."""


def erf(b: Builder, _features: Features, x: Value) -> Value:
    """Compute erf of f32; error: 0.991 ulp."""
    size = absolute(b, x)
    small = multiply_add(b, x, polynomial(b, b.binary("fmul", x, x), _SMALL), x)
    moved = b.binary("fsub", clamped(b, size, 0.0, _END), number(_CENTER, x))
    large = multiply_add(b, moved, long_polynomial(b, moved, _LARGE), number(_CENTRAL, x))
    return with_sign(b, b.select(b.compare("fcmp ogt", size, number(1.0, x)), large, small), x)
