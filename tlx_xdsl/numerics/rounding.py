"""Conversions between floating-point types with one rounding, to nearest or towards zero.

ml_dtypes before 0.7 go from f64 to the types below f32 by way of f32, and so round twice. Rounding the first step "to
odd" makes the second one right (S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums: proved
algorithms using rounding to odd", IEEE Transactions on Computers 57(4), 2008).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import ml_dtypes
import numpy as np

from .arrays import Array, Dtype, truncate_tf32


def round_to(values: Array, target: Dtype, *, saturates: bool = False) -> Array:
    """`values` as the nearest numbers of `target`, ties to even.

    What is out of range becomes infinite, NaN where the type has no infinity, or, with `saturates`, the largest finite
    number (PTX ISA, "cvt", `.satfinite`). NaN stays NaN.
    """
    if saturates:
        limit = largest(target)
        wide = values if values.dtype.itemsize >= 4 else values.astype(np.float32)
        values = np.clip(wide, wide.dtype.type(-limit), wide.dtype.type(limit))
    if values.dtype == np.float64 and target.itemsize < 4 and target != np.float16:
        values = to_odd_single(values)
    return values.astype(target)


def integer_to(values: Array, target: Dtype) -> Array:
    """Integers as the nearest numbers of `target`, ties to even."""
    if target.itemsize >= 4 or target == np.float16:
        return values.astype(target)
    if values.dtype.itemsize < 8:
        return round_to(values.astype(np.float64), target)
    # f64 holds 53 bits: of larger numbers, the 11 below only say whether there is anything.
    kept, below = values >> values.dtype.type(11), values & values.dtype.type(2047)
    large = (kept | (below != 0)).astype(np.float64) * 2048.0
    near = values.astype(np.float64)
    return round_to(np.where(np.abs(near) < 2.0**52, near, large), target)


def round_to_integer(values: Array, dtype: Dtype, to_whole: Callable[[Array], Array] = np.trunc) -> Array:
    """Floats as integers, rounded by `to_whole`; out of range the nearest integer there is.

    NaN is 0, but of an f64 and as a 64-bit integer it has the highest bit alone (PTX ISA, "cvt": "1 << (BitWidth-1)"
    for those types; an H200 does the same).
    """
    limits = np.iinfo(dtype)
    nan = 1 << limits.bits - 1 if values.dtype == np.float64 or limits.bits == 64 else 0
    whole = to_whole(values.astype(np.float64))
    with np.errstate(invalid="ignore"):
        result = np.clip(whole, float(limits.min), float(limits.max)).astype(dtype)
    # The largest integer need not be a float.
    result = np.where(whole >= float(limits.max), dtype.type(limits.max), result)
    return np.where(np.isnan(whole), np.uint64(nan).astype(dtype), result)[()]


def truncate_to(values: Array, target: Dtype) -> Array:
    """`values` as the numbers of `target` that are next to them towards zero; infinities and NaN stay.

    What is out of range becomes the largest finite number.
    """
    limit = largest(target)
    wide = values.astype(np.float64)
    result = round_to(np.where(np.isfinite(wide), np.clip(wide, -limit, limit), wide), target)
    too_large = np.abs(result.astype(np.float64)) > np.abs(wide)
    bits = np.dtype(f"u{target.itemsize}")
    # The next number towards zero: signs and magnitudes are held as integers are, the magnitude below.
    return np.where(too_large, result.view(bits) - bits.type(1), result.view(bits)).view(target)[()]


def round_at_random(values: Array, chance: Array, target: Dtype) -> Array:
    """Up or down; what is too large becomes the largest finite number of `target`, and NaN stays NaN.

    A number lies between two neighbours of `target`. It becomes the one farther from zero where its distance from the
    other one, as a part of the gap, is more than `chance`, which is in 0 to 1: evenly spread, they keep the mean.
    """
    exact = values.astype(np.float64)
    size = np.minimum(np.abs(exact), largest(target))
    with np.errstate(all="ignore"):
        nearest = size.astype(target)
        down = np.where(nearest.astype(np.float64) > size, _next(nearest, -1), nearest).astype(target)
        up = np.where(down.astype(np.float64) < size, _next(down, 1), down).astype(target)
        low, high = down.astype(np.float64), up.astype(np.float64)
        part = np.where(high > low, (size - low) / np.where(high > low, high - low, 1), 0)
    chosen = np.where(part > chance, high, low)
    return np.where(np.isnan(exact), exact, np.copysign(chosen, exact)).astype(target)


def _next(values: Array, step: int) -> Array:
    """The next greater or smaller number of ones that are not negative."""
    integer = np.dtype(f"i{values.dtype.itemsize}")
    return (values.view(integer) + integer.type(step)).view(values.dtype)


def largest(dtype: Dtype) -> float:
    """The largest finite number of a floating-point type."""
    return float(cast(Any, ml_dtypes.finfo(dtype)).max)


def to_odd_single(values: Array) -> Array:
    """f64 as f32, rounded to odd: what is inexact gets the neighbour whose last bit is set."""
    nearest = values.astype(np.float32)
    wide = nearest.astype(np.float64)
    bits = nearest.view(np.int32)
    inexact = (wide != values) & np.isfinite(wide)
    # Of the two neighbours, one is even and one is odd; towards zero is one bit less, away from it one more.
    even = inexact & (bits & np.int32(1) == 0)
    towards_zero = np.abs(wide) > np.abs(values)
    moved = np.where(towards_zero, bits - np.int32(1), bits + np.int32(1))
    return np.where(even, moved, bits).view(np.float32)[()]


def nearest_tf32(values: Array) -> Array:
    """f32 rounded to the 10 bits of a tf32 mantissa, ties away from zero (PTX: cvt.rna.tf32.f32)."""
    bits = values.view(np.uint32)
    return np.where(np.isfinite(values), truncate_tf32((bits + np.uint32(0x1000)).view(np.float32)), values)
