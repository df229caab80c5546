"""Functions of arrays that numpy lacks."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.numerics.directed_rounding import to_odd
from tlx_xdsl.numerics.rounding import round_to
from tlx_xdsl.numerics.special_functions import two_product, two_sum


def round_half_away(values: Array) -> Array:
    """The nearest integer, ties away from zero (C: round)."""
    whole = np.trunc(values)
    away = whole + np.copysign(1.0, values)
    return np.where(np.abs(values - whole) >= 0.5, away, whole)[()]


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


# Fused multiply-add --------------------------------------------------------------------------------------------------


def fused_multiply_add(a: Array, b: Array, c: Array, dtype: np.dtype[Any]) -> Array:
    """Compute a * b + c with one rounding.

    Below f64, the product is exact in f64, and the sum is rounded to odd there, so that the second rounding is right.
    In f64 it is exact where neither the product nor its error leaves the range of normal numbers; S. Boldo, G.
    Melquiond, "Emulation of FMA and correctly rounded sums" (2008).
    """
    a, b, c = (value.astype(np.float64) for value in (a, b, c))
    if dtype != np.float64:
        return round_to(to_odd(*two_sum(a * b, c)), dtype)
    # No product of finite numbers reaches an infinity.
    plain = np.where(np.isfinite(a) & np.isfinite(b) & ~np.isfinite(c), c, a * b + c)
    product, rest = two_product(a, b)
    low, low_rest = two_sum(c, rest)
    high, high_rest = two_sum(product, low)
    result = high + to_odd(*two_sum(high_rest, low_rest))
    return np.where(np.isfinite(result), result, plain)[()]
