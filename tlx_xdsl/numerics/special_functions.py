"""Functions of mathematics that numpy lacks, on f64 arrays.

Sources: Abramowitz and Stegun, "Handbook of Mathematical Functions" (A&S), and the NIST "Digital Library of
Mathematical Functions" (DLMF). Accuracy is that of the tests: a few units in the last place, and for Bessel functions
an absolute error of that size, as they have zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from .arrays import Integers

F64: TypeAlias = NDArray[np.float64]

_EULER = 0.5772156649015329
_SQRT_PI = math.sqrt(math.pi)


def each(function: Callable[[float], float], wrong: Callable[[float], float]) -> Callable[[F64], F64]:
    """A function of `math` on arrays; `wrong` gives the result where it raises an exception."""

    def guarded(x: float) -> float:
        try:
            return function(x)
        except (ValueError, OverflowError):
            return wrong(x)

    applied = cast("Callable[[F64], F64]", np.vectorize(guarded, otypes=[np.float64]))
    # A scalar gives a scalar.
    return lambda values: applied(values)[()]


def _gamma_pole(x: float) -> float:
    if x == 0:
        return math.copysign(math.inf, x)
    return math.inf if x > 0 else math.nan


erf = each(math.erf, lambda x: x)
erfc = each(math.erfc, lambda x: x)
gamma = each(math.gamma, _gamma_pole)
log_gamma = each(math.lgamma, lambda x: math.inf)

# Exact products ------------------------------------------------------------------------------------------------------


def two_product(a: F64, b: F64) -> tuple[F64, F64]:
    """The rounded product and what rounding has dropped (Dekker 1971); nothing may overflow."""
    product = a * b
    a_high, b_high = _upper_half(a), _upper_half(b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _upper_half(x: F64) -> F64:
    scaled = x * 134217729.0
    return scaled - (scaled - x)


def two_sum(a: F64, b: F64) -> tuple[F64, F64]:
    """The rounded sum and what rounding has dropped (Knuth, TAOCP 4.2.2)."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


# The error function and the normal distribution -----------------------------------------------------------------------


def erfcx(x: F64) -> F64:
    """`exp(x**2) * erfc(x)`, by the asymptotic series for large arguments (A&S 7.1.23)."""
    x = np.asarray(x, np.float64)
    large = x > 8
    small = np.where(large, 0.0, x)
    square, rest = two_product(small, small)
    near = np.exp(square) * erfc(small)
    near += near * np.where(np.isfinite(rest), rest, 0.0)
    far = np.where(large, x, 9.0)
    inverse = 0.5 / far / far
    term = total = np.ones_like(far)
    for k in range(1, 30):
        term = -term * (2 * k - 1) * inverse
        total = total + term
    return np.where(large, total / (far * _SQRT_PI), np.where(x < -27, np.inf, near))


def erfinv(x: F64) -> F64:
    """The inverse of the error function."""
    x = np.asarray(x, np.float64)
    magnitude = np.abs(x)
    # Close to 1 the complement is exact, and says more.
    tail = magnitude > 0.5
    near = _invert(np.where(tail, 0.25, magnitude), np.where(tail, 0.25, magnitude), erf, 1.0)
    complement = np.where(tail, 1 - magnitude, 0.25)
    return np.copysign(np.where(tail, _invert(1 - complement, complement, erfc, -1.0), near), x)


def erfcinv(y: F64) -> F64:
    """The inverse of the complementary error function."""
    y = np.asarray(y, np.float64)
    tail = y < 0.5
    small = np.where(tail, y, 0.25)
    return np.where(tail, _invert(1 - small, small, erfc, -1.0), erfinv(1 - y))


def _invert(x: F64, value: F64, function: Callable[[F64], F64], sign: float) -> F64:
    """The `z` not below 0 with `erf(z) == x` and `function(z) == value`; `sign` is that of the function's slope.

    It begins with Winitzki's approximation (2008, relative error below 0.2 %) and goes on with Halley's iteration.
    """
    complement = np.where(sign < 0, value * (2 - value), (1 - x) * (1 + x))
    logarithm = np.log(complement)
    middle = 2 / (math.pi * 0.147) + logarithm / 2
    z = np.sqrt(np.maximum(np.sqrt(middle * middle - logarithm / 0.147) - middle, 0.0))
    for _ in range(6):
        slope = sign * 2 / _SQRT_PI * np.exp(-z * z)
        newton = (function(z) - value) / slope
        moved = z - newton / (1 + z * newton)
        z = np.where(np.isfinite(moved), moved, z)
    edge = np.where(complement == 0, np.inf, np.where(complement > 0, z, np.nan))
    return np.where(x == 0, x, edge)


def normcdf(x: F64) -> F64:
    """The distribution function of the standard normal distribution: half of `erfc(-x / sqrt(2))`."""
    x = np.clip(np.asarray(x, np.float64), -40.0, 40.0)
    # The tail falls so fast that what rounding drops from the argument counts.
    high, low = two_product(-x, np.full_like(x, math.sqrt(0.5)))
    low = low - x * -4.833646656726457e-17
    return 0.5 * (erfc(high) - low * 2 / _SQRT_PI * np.exp(-high * high))


def normcdfinv(p: F64) -> F64:
    """The inverse of `normcdf`."""
    return -math.sqrt(2.0) * erfcinv(2 * np.asarray(p, np.float64))


# Angles in half turns ------------------------------------------------------------------------------------------------


def sinpi(x: F64) -> F64:
    """The sine of pi times the argument, which is reduced exactly."""
    reduced, quadrant = _half_turns(x)
    result = np.where(quadrant % 2 == 0, np.sin(math.pi * reduced), np.cos(math.pi * reduced))
    result = np.where(quadrant >= 2, -result, result)
    return np.where(np.isfinite(x), np.where(np.fmod(x, 1) == 0, np.copysign(0.0, x), result), np.nan)


def cospi(x: F64) -> F64:
    """The cosine of pi times the argument."""
    reduced, quadrant = _half_turns(x)
    result = np.where(quadrant % 2 == 0, np.cos(math.pi * reduced), np.sin(math.pi * reduced))
    result = np.where((quadrant == 1) | (quadrant == 2), -result, result)
    return np.where(np.isfinite(x), np.where(np.fmod(np.abs(x), 1) == 0.5, 0.0, result), np.nan)


def _half_turns(x: F64) -> tuple[F64, F64]:
    """A remainder of at most a quarter, and the number of halves modulo 4 that were taken from `x`."""
    within = np.fmod(np.where(np.isfinite(x), x, 0.0), 2)
    halves = np.rint(2 * within)
    return within - halves / 2, np.mod(halves, 4)


# Lengths -------------------------------------------------------------------------------------------------------------


def cbrt(x: F64) -> F64:
    """Return the cube root; numpy's of doubles is off by more than two units on some processors."""
    return np.cbrt(x.astype(np.longdouble)).astype(x.dtype)


def length(*parts: F64) -> F64:
    """The Euclidean length of a vector, without overflow on the way; infinite if a part is, even beside NaN."""
    arrays = [np.abs(np.asarray(part, np.float64)) for part in parts]
    largest = np.maximum.reduce(arrays)
    exponent = np.frexp(np.where(np.isfinite(largest), largest, 1.0))[1]
    squares = np.zeros_like(largest)
    for part in arrays:
        squares = squares + np.ldexp(part, -exponent) ** 2
    result = np.ldexp(np.sqrt(squares), exponent)
    return np.where(np.any([np.isinf(part) for part in arrays], axis=0), np.inf, result)


# Bessel functions ----------------------------------------------------------------------------------------------------

_FAR = 30.0
"""From here on the asymptotic series are exact to the last bit: their smallest term is about exp(-2x)."""


def bessel_i(order: int) -> Callable[[F64], F64]:
    """The modified Bessel function of the first kind (A&S 9.6.10, 9.7.1), whose series has no cancellation."""

    def run(x: F64) -> F64:
        x = np.asarray(x, np.float64)
        size = np.abs(x)
        far = size > _FAR
        near_x, far_x = np.where(far, 1.0, size), np.where(far, size, _FAR)
        quarter = near_x * near_x / 4
        term = (near_x / 2) ** order
        near = term
        for k in range(1, 90):
            term = term * quarter / (k * (k + order))
            near = near + term
        term = total = np.ones_like(far_x)
        for k in range(1, 40):
            term = -term * (4 * order * order - (2 * k - 1) ** 2) / (8 * k * far_x)
            total = total + term
        # In two factors, as the exponential alone overflows first.
        half = np.exp(far_x / 2)
        asymptotic = half / np.sqrt(2 * math.pi * far_x) * total * half
        result = np.where(far, asymptotic, near)
        return np.where(np.isinf(size), np.inf, result) * (np.sign(x) if order % 2 else 1.0)

    return run


def _hankel(order: int, x: F64) -> tuple[F64, F64]:
    """J and Y of order 0 or 1 far from 0 (A&S 9.2.5 to 9.2.10)."""
    term = np.ones_like(x)
    p, q = np.ones_like(x), np.zeros_like(x)
    for k in range(1, 40):
        term = term * (4 * order * order - (2 * k - 1) ** 2) / (8 * k * x)
        match k % 4:
            case 1:
                q = q + term
            case 2:
                p = p - term
            case 3:
                q = q - term
            case _:
                p = p + term
    # cos and sin of x - (order / 2 + 1 / 4) * pi, without a difference that cancels.
    sine, cosine = np.sin(x), np.cos(x)
    root = math.sqrt(0.5)
    if order == 0:
        c, s = (cosine + sine) * root, (sine - cosine) * root
    else:
        c, s = (sine - cosine) * root, -(sine + cosine) * root
    scale = np.sqrt(2 / (math.pi * x))
    return scale * (p * c - q * s), scale * (p * s + q * c)


def _miller(x: F64, count: int) -> list[F64]:
    """J of the orders 0 to `count - 1` by recurrence from far above downwards (Miller 1952; A&S 9.12)."""
    start = 2 * ((count + 60 + int(np.max(x, initial=0.0))) // 2)
    above, here, total = np.zeros_like(x), np.full_like(x, 1e-300), np.zeros_like(x)
    kept: list[F64] = []
    for k in range(start, 0, -1):
        above, here = here, np.where(x > 0, 2 * k / np.where(x > 0, x, 1.0), 0.0) * here - above
        # What grows too large is scaled down, together with all that was kept.
        grown = np.abs(here) > 1e200
        if grown.any():
            shrink = np.where(grown, 1e-250, 1.0)
            above, here, total = above * shrink, here * shrink, total * shrink
            kept = [value * shrink for value in kept]
        if k - 1 < count:
            kept.append(here)
        if (k - 1) % 2 == 0 and k > 1:
            total = total + 2 * here
    total = total + here
    scaled = [value / total for value in reversed(kept)]
    return [np.where(x > 0, value, float(order == 0)) for order, value in enumerate(scaled)]


def bessel_j(order: int) -> Callable[[F64], F64]:
    """The Bessel function of the first kind, of order 0 or 1."""

    def run(x: F64) -> F64:
        x = np.asarray(x, np.float64)
        size = np.abs(x)
        far = ~(size < _FAR)
        near = _miller(np.where(far, 1.0, size), order + 1)[order]
        result = np.where(far, _hankel(order, np.where(far & np.isfinite(size), size, _FAR))[0], near)
        result = np.where(np.isinf(size), 0.0, np.where(np.isnan(x), np.nan, result))
        # The recurrence divides by what it should not: close to 0 the first term says it all.
        tiny = size < 1e-8
        result = np.where(tiny, size / 2 if order else 1.0, result)
        return result * (np.sign(x) if order % 2 else 1.0)

    return run


def bessel_y(order: int) -> Callable[[F64], F64]:
    """The Bessel function of the second kind, of order 0 or 1: Neumann's series (A&S 9.1.88) near 0."""

    def run(x: F64) -> F64:
        x = np.asarray(x, np.float64)
        far = ~(x < _FAR)
        near_x = np.where(far | ~(x > 1e-8), 1.0, x)
        j = _miller(near_x, 2 * _NEUMANN + order + 2)
        series = np.zeros_like(near_x)
        for k in range(1, _NEUMANN):
            series = series + (-1) ** k * (order + 2 * k) / (k * (order + k)) * j[order + 2 * k]
        psi = order - _EULER
        near = 2 / math.pi * ((np.log(near_x / 2) - psi) * j[order] - series)
        if order:
            near = near - 2 / (math.pi * near_x) * j[0]
        positive = np.where(x > 0, x, 1.0)
        tiny = -2 / (math.pi * positive) if order else 2 / math.pi * (np.log(positive / 2) + _EULER)
        result = np.where(x > 1e-8, near, np.where(x > 0, tiny, np.where(x == 0, -np.inf, np.nan)))
        result = np.where(far, _hankel(order, np.where(far & np.isfinite(x), x, _FAR))[1], result)
        return np.where(np.isposinf(x), 0.0, np.where(np.isnan(x), np.nan, result))

    return run


_NEUMANN = 40
"""Terms of Neumann's series up to `_FAR`: J of order 80 there is below 1e-15 of the sum."""

j0, j1, y0, y1 = bessel_j(0), bessel_j(1), bessel_y(0), bessel_y(1)


def jn(order: Integers, x: F64) -> F64:
    """J of any order that is not negative: upwards where the order is below the argument, downwards else."""
    order, x = np.broadcast_arrays(np.asarray(order, np.int64), np.asarray(x, np.float64))
    size = np.abs(x)
    top = int(order.max(initial=0))
    upwards = size > order
    below, here = j0(size), j1(size)
    up = np.where(order == 0, below, here)
    for k in range(1, top):
        below, here = here, np.where(size > 0, 2 * k / np.where(size > 0, size, 1.0), 0.0) * here - below
        up = np.where(order == k + 1, here, up)
    down = np.choose(np.zeros_like(order), [up])
    if not upwards.all():
        values = _miller(np.where(upwards | ~np.isfinite(size), 0.0, size), top + 1)
        for k, value in enumerate(values):
            down = np.where(order == k, value, down)
    result = np.where(upwards, up, down) * np.where((order % 2 == 1) & (x < 0), -1.0, 1.0)
    return np.where(order < 0, np.nan, np.where(np.isnan(x), np.nan, result))


def yn(order: Integers, x: F64) -> F64:
    """Y of any order that is not negative, by recurrence upwards, which is stable."""
    order, x = np.broadcast_arrays(np.asarray(order, np.int64), np.asarray(x, np.float64))
    below, here = y0(x), y1(x)
    result = np.where(order == 0, below, here)
    for k in range(1, int(order.max(initial=0))):
        # From -inf on it stays there.
        following = np.where(np.isneginf(here), here, 2 * k / x * here - below)
        below, here = here, following
        result = np.where(order == k + 1, here, result)
    return np.where(order < 0, np.nan, result)
