"""Logarithms: `log(2**e * m)` is `e * log(2)` plus a function of `f = m - 1`, where `m` is near 1.

`m` lies between the square roots of 1/2 and of 2. Terms that are not much smaller than the result come in two parts, so
that only the last sum rounds: also where `e * log(2)` and `log(m)` cancel in part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..builder import F32, Builder, Value
from ..host import Features
from .arithmetic import (
    BIAS,
    MANTISSA,
    absolute,
    bits,
    from_bits,
    in_double,
    integer,
    multiply_add,
    number,
    polynomial,
    with_sign,
)

_ROOT = {"float": 0x3F3504F3, "double": 0x3FE6A09E667F3BCD}
"""The bits of the square root of 1/2."""


def _parts(b: Builder, x: Value, *, is_normal: bool = False) -> tuple[Value, Value]:
    """`m - 1` and `e` of a positive finite number."""
    mantissa, root = MANTISSA[x.element], _ROOT[x.element]
    lead = 1.5 * 2.0**mantissa
    bias = BIAS[x.element]
    offset = number(lead + bias, x)
    if not is_normal:
        tiny = b.compare("fcmp olt", x, number(2.0 ** (1 - bias), x))
        grown = b.binary("fmul", x, number(2.0**mantissa, x))
        x = b.select(tiny, grown, x)
        offset = b.select(tiny, number(lead + bias + mantissa, x), offset)
    moved = b.binary("add", bits(b, x), integer((bias << mantissa) - root, x))
    # Of vectors of 64 bits, not every processor shifts signed numbers or converts them.
    exponent = b.binary("or", b.binary("lshr", moved, integer(mantissa, x)), bits(b, number(lead, x)))
    low = b.binary("and", moved, integer((1 << mantissa) - 1, x))
    near_one = from_bits(b, b.binary("add", low, integer(root, x)))
    return b.binary("fsub", near_one, number(1.0, x)), b.binary("fsub", from_bits(b, exponent), offset)


def _with_edges(b: Builder, x: Value, result: Value) -> Value:
    """Infinity and NaN stay; that of 0 is -inf, and that of a negative number NaN."""
    result = b.select(b.compare("fcmp olt", x, number(math.inf, x)), result, x)
    is_zero = b.compare("fcmp oeq", x, number(0.0, x))
    edge = b.select(is_zero, number(-math.inf, x), number(math.nan, x))
    return b.select(b.compare("fcmp ogt", x, number(0.0, x)), result, edge)


@dataclass(frozen=True, slots=True)
class _Base:
    """A logarithm to one base in one type, each factor in two parts."""

    two: tuple[float, float]
    """The logarithm of 2; products of the first part with exponents are exact."""
    e: tuple[float, float]
    """That of e."""
    coefficients: tuple[float, ...] = ()
    """Of `(log(1 + f) - f * log(e)) / f**2`."""


# Errors of the polynomials, relative to the logarithm: 2**-27.8 and 2**-29.8.
_NATURAL = _Base(
    (0.693145751953125, 1.428606765330187e-06),
    (1.0, 0.0),
    (
        -0.49999988, 0.33333325, -0.25001594, 0.2000199, -0.16608821, 0.14181392, -0.13245113, 0.1290865, -0.07621437,
    ),
)  # fmt: skip
_BINARY = _Base(
    (1.0, 0.0),
    (1.4426950216293335, 1.925963033500011e-08),
    (
        -0.7213475, 0.48089802, -0.36067423, 0.28857115, -0.24046403, 0.2051136, -0.17899205, 0.1717238, -0.1684995,
        0.09701962,
    ),
)  # fmt: skip


def _single(b: Builder, x: Value, base: _Base) -> Value:
    f, exponent = _parts(b, x)
    scaled = b.binary("fmul", exponent, number(base.two[0], x)) if base.two[0] != 1.0 else exponent
    high = f
    if base.e[0] != 1.0:
        high = b.binary("fmul", f, number(base.e[0], x))
    # The smaller one of the two minus what has arrived in their rounded sum (Dekker 1971).
    total = b.binary("fadd", scaled, high)
    small = b.binary("fadd", b.binary("fsub", scaled, total), high)
    if base.e[0] != 1.0:
        low = multiply_add(b, f, number(base.e[0], x), b.fneg(high))
        small = b.binary("fadd", small, multiply_add(b, f, number(base.e[1], x), low))
    if base.two[1]:
        small = multiply_add(b, exponent, number(base.two[1], x), small)
    small = multiply_add(b, b.binary("fmul", f, f), polynomial(b, f, base.coefficients), small)
    return _with_edges(b, x, b.binary("fadd", total, small))


_NATURAL_DOUBLE = _Base((0.6931471806019545, -4.2009150726810846e-11), (1.0, 0.0))
_BINARY_DOUBLE = _Base((1.0, 0.0), (1.4426950408889634, 2.0355273740931033e-17))
_DECIMAL_DOUBLE = _Base((0.3010299956658855, -1.9043128467164274e-12), (0.4342944819032518, 1.098319650216765e-17))
_SERIES = (
    0.6666666666666735, 0.39999999999409336, 0.2857142874369246, 0.2222219842818524, 0.18183572372446521,
    0.15313833258821802, 0.14798224723951317,
)  # fmt: skip
"""Of `(2 * atanh(s) / s - 2) / s**2` as a polynomial of `s**2` up to 0.0295: error 2**-59."""
_SHORT_SERIES = (0.666666666758447, 0.3999999560513569, 0.2857211110224387, 0.2217610081138172, 0.19585505697970526)
"""The same with an error of 2**-45."""


def _double(b: Builder, x: Value, base: _Base) -> Value:
    """`log(1 + f)` is `f - f**2 / 2` plus a term of the third order, by way of `2 * atanh(f / (2 + f))`."""
    f, exponent = _parts(b, x)
    half = b.binary("fmul", f, number(0.5, x))
    square = b.binary("fmul", f, half)
    rest = _third_order(b, f, square, _SERIES)
    # What the square and the difference drop.
    rest = b.binary("fsub", rest, b.intrinsic("llvm.fma", f, half, b.fneg(square)))
    high = b.binary("fsub", f, square)
    low = b.binary("fadd", b.binary("fsub", b.binary("fsub", f, high), square), rest)
    if base.e[0] != 1.0:
        factor = number(base.e[0], x)
        product = b.binary("fmul", high, factor)
        dropped = b.intrinsic("llvm.fma", high, factor, b.fneg(product))
        low = multiply_add(b, low, factor, multiply_add(b, high, number(base.e[1], x), dropped))
        high = product
    scaled = b.binary("fmul", exponent, number(base.two[0], x))
    total = b.binary("fadd", scaled, high)
    low = b.binary("fadd", b.binary("fadd", b.binary("fsub", scaled, total), high), low)
    low = multiply_add(b, exponent, number(base.two[1], x), low)
    return _with_edges(b, x, b.binary("fadd", total, low))


def _third_order(b: Builder, f: Value, square: Value, series: tuple[float, ...]) -> Value:
    """`log(1 + f) - f + square`, half of the square of `f`."""
    part = b.binary("fdiv", f, b.binary("fadd", f, number(2.0, f)))
    z = b.binary("fmul", part, part)
    return b.binary("fmul", part, multiply_add(b, z, polynomial(b, z, series), square))


def short_log(b: Builder, x: Value) -> Value:
    """Compute the logarithm of positive normal doubles, with a relative error of 2**-44."""
    f, exponent = _parts(b, x, is_normal=True)
    square = b.binary("fmul", b.binary("fmul", f, f), number(0.5, x))
    near = b.binary("fsub", f, b.binary("fsub", square, _third_order(b, f, square, _SHORT_SERIES)))
    return multiply_add(b, exponent, number(math.log(2), x), near)


def log(b: Builder, _features: Features, x: Value) -> Value:
    """Error of f32: 0.88 ulp; of f64: 0.58 ulp."""
    return _single(b, x, _NATURAL) if x.element == F32 else _double(b, x, _NATURAL_DOUBLE)


def log2(b: Builder, _features: Features, x: Value) -> Value:
    """Error of f32: 0.96 ulp; of f64: 0.62 ulp."""
    return _single(b, x, _BINARY) if x.element == F32 else _double(b, x, _BINARY_DOUBLE)


def log10(b: Builder, features: Features, x: Value) -> Value:
    """Error of f32: 0.51 ulp; of f64: 0.6 ulp."""
    return _single_log10(b, features, x) if x.element == F32 else _double(b, x, _DECIMAL_DOUBLE)


# Of f32, in doubles --------------------------------------------------------------------------------------------------


def _log10(b: Builder, _features: Features, x: Value) -> Value:
    return _with_edges(b, x, b.binary("fmul", short_log(b, x), number(1 / math.log(10), x)))


_single_log10 = in_double(_log10)


def _log1p(b: Builder, _features: Features, x: Value) -> Value:
    # Below 2**-29 the result rounds to the number itself; from there on `1 + x` is exact.
    more = b.binary("fadd", x, number(1.0, x))
    tiny = b.compare("fcmp olt", absolute(b, x), number(2.0**-29, x))
    return b.select(tiny, x, _with_edges(b, more, short_log(b, more)))


def _asinh(b: Builder, _features: Features, x: Value) -> Value:
    size = absolute(b, x)
    root = b.intrinsic("llvm.sqrt", multiply_add(b, size, size, number(1.0, x)))
    # 1 + this is |x| + sqrt(x**2 + 1), and exact enough where it is small.
    square = b.binary("fmul", size, size)
    more = b.binary("fadd", size, b.binary("fdiv", square, b.binary("fadd", root, number(1.0, x))))
    total = b.binary("fadd", more, number(1.0, x))
    result = _with_edges(b, size, short_log(b, total))
    tiny = b.compare("fcmp olt", size, number(2.0**-13, x))
    cubic = multiply_add(b, b.binary("fmul", b.binary("fmul", x, x), x), number(-1 / 6, x), x)
    return with_sign(b, b.select(tiny, cubic, result), x)


def _acosh(b: Builder, _features: Features, x: Value) -> Value:
    less = b.binary("fsub", x, number(1.0, x))
    product = b.binary("fmul", less, b.binary("fadd", x, number(1.0, x)))
    total = b.binary("fadd", x, b.intrinsic("llvm.sqrt", product))
    result = _with_edges(b, total, short_log(b, total))
    return b.select(b.compare("fcmp olt", less, number(0.0, x)), number(math.nan, x), result)


def _atanh(b: Builder, _features: Features, x: Value) -> Value:
    one = number(1.0, x)
    quotient = b.binary("fdiv", b.binary("fadd", one, x), b.binary("fsub", one, x))
    result = b.binary("fmul", _with_edges(b, quotient, short_log(b, quotient)), number(0.5, x))
    cubic = multiply_add(b, b.binary("fmul", b.binary("fmul", x, x), x), number(1 / 3, x), x)
    return b.select(b.compare("fcmp olt", absolute(b, x), number(2.0**-13, x)), cubic, result)


log1p, asinh, acosh, atanh = in_double(_log1p), in_double(_asinh), in_double(_acosh), in_double(_atanh)
"""Of f32; error: 0.51 ulp."""
