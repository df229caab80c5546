"""Functions of arrays that numpy lacks."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlx_xdsl.interpreter.numbers import Array
from tlx_xdsl.interpreter.rounding import round_to


def round_half_away(values: Array) -> Array:
    """The nearest integer, ties away from zero (C: round)."""
    whole = np.trunc(values)
    return whole + np.where(np.abs(values - whole) >= 0.5, np.copysign(1.0, values), 0.0)


def reciprocal_root(values: Array) -> Array:
    """1 / sqrt(x)."""
    return 1 / np.sqrt(values)


def leading_zeros(values: Array) -> Array:
    """Zeros above the highest bit that is set, of unsigned integers."""
    width = values.dtype.itemsize * 8
    spread = values
    for shift in (1, 2, 4, 8, 16, 32):
        if shift < width:
            spread = spread | (spread >> values.dtype.type(shift))
    return width - np.bitwise_count(spread).astype(np.int64)


SERIES_END = 2.5
"""Up to here the error function is its series, from here on a continued fraction."""


def erf(x: Array) -> Array:
    """The error function of f64 numbers (DLMF 7.6.2 and 7.9.2), to about 1e-15."""
    size = np.minimum(np.abs(x), SERIES_END)
    square = size * size
    # 2/sqrt(pi) exp(-x^2) sum 2^n x^(2n+1) / (2n+1)!!: all terms have one sign, so nothing cancels.
    total = np.ones_like(square)
    for n in range(60, 0, -1):
        total = 1.0 + total * square * (2.0 / (2 * n + 1))
    near = 2.0 / np.sqrt(np.pi) * size * np.exp(-square) * total
    # Far out it is 1, and the square of the number would be too large.
    far = 1.0 - _erfc_fraction(np.clip(np.abs(x), SERIES_END, 30.0))
    result = np.where(np.abs(x) < SERIES_END, near, far)
    return np.where(np.isnan(x), x, np.copysign(result, x))


def _erfc_fraction(x: Array) -> Array:
    """1 - erf for numbers from `SERIES_END` on."""
    twice = 2.0 * x * x
    steps = 50
    fraction = twice + (4 * steps + 1)
    for n in range(steps, 0, -1):
        fraction = twice + (4 * n - 3) - (2 * n - 1) * (2 * n) / fraction
    return 2.0 * x * np.exp(-x * x) / (np.sqrt(np.pi) * fraction)


# Fused multiply-add --------------------------------------------------------------------------------------------------


def fused_multiply_add(a: Array, b: Array, c: Array, dtype: np.dtype[Any]) -> Array:
    """Compute a * b + c with one rounding.

    Below f64, the product is exact in f64, and the sum is rounded to odd there, so that the second rounding is right.
    In f64 it is exact where neither the product nor its error leaves the range of normal numbers; S. Boldo, G.
    Melquiond, "Emulation of FMA and correctly rounded sums" (2008).
    """
    a, b, c = (value.astype(np.float64) for value in (a, b, c))
    if dtype != np.float64:
        return round_to(_add_to_odd(a * b, c), dtype)
    # No product of finite numbers reaches an infinity.
    plain = np.where(np.isfinite(a) & np.isfinite(b) & ~np.isfinite(c), c, a * b + c)
    product, rest = _two_product(a, b)
    low, low_rest = _two_sum(c, rest)
    high, high_rest = _two_sum(product, low)
    result = high + _add_to_odd(high_rest, low_rest)
    return np.where(np.isfinite(result), result, plain)[()]


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The sum, and what rounding has taken from it (D. Knuth, TAOCP vol. 2, 4.2.2)."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """The product, and what rounding has taken from it (T. Dekker, 1971)."""
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(x: Array) -> tuple[Array, Array]:
    """Two numbers of 26 bits whose sum is a number of 53."""
    spread = x * 134217729.0  # 2**27 + 1
    high = spread - (spread - x)
    return high, x - high


def _add_to_odd(a: Array, b: Array) -> Array:
    """The sum in f64, rounded to odd: what is inexact gets the neighbour whose last bit is set."""
    total, rest = _two_sum(a, b)
    bits = total.view(np.int64)
    even = (bits & 1 == 0) & (rest != 0) & np.isfinite(rest)
    away = (rest > 0) == (total > 0)
    return np.where(even, np.where(away, bits + 1, bits - 1), bits).view(np.float64)[()]
