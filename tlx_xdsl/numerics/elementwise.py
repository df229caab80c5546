"""High halves of products of integers, and extrema of floats."""

from __future__ import annotations

import numpy as np

from .arrays import Array, Binary, Dtype, is_float, unsigned, where


def multiply_high(a: Array, b: Array, signed: Dtype, *, is_signed: bool) -> Array:
    """The high half of a product of integers held as `signed`."""
    width = signed.itemsize * 8
    other = unsigned(signed)
    if width < 64:
        wide = np.dtype(np.int64 if is_signed else np.uint64)
        if not is_signed:
            a, b = a.view(other), b.view(other)
        return ((a.astype(wide) * b.astype(wide)) >> wide.type(width)).astype(other).view(signed)[()]
    # 64 bits: by halves, of unsigned numbers; the sign is corrected after.
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    ua, ub_ = a.view(other), b.view(other)
    a_low, a_high, b_low, b_high = ua & mask, ua >> half, ub_ & mask, ub_ >> half
    low = a_low * b_low
    middle = a_high * b_low + (low >> half)
    middle_low = (middle & mask) + a_low * b_high
    high = (a_high * b_high + (middle >> half) + (middle_low >> half)).view(signed)
    if is_signed:
        zero = signed.type(0)
        high = high - where(a < 0, b, zero) - where(b < 0, a, zero)
    return high


def _extremum(function: np.ufunc, *, is_lower: bool) -> Binary:
    """`function`, but of two zeros the lower or the higher one by their sign: PTX says so, numpy takes any."""

    def run(a: Array, b: Array) -> Array:
        found = function(a, b)
        if np.all(found) or not is_float(found.dtype):
            return found
        lower, higher = (a, b) if is_lower else (b, a)
        return where((a == 0) & (b == 0), where(np.signbit(a), lower, higher), found)

    return run


def extremum_along(function: Binary, values: Array, axis: int) -> Array:
    """The extremum along an axis, which vanishes, by one of the functions below."""
    values = np.moveaxis(values, axis, 0)
    while (half := len(values) // 2) > 0:
        values = np.concatenate((function(values[:half], values[half : 2 * half]), values[2 * half :]))
    return values[0]


# `minimum` and `maximum` spread NaN, the others give the number.
minimum = _extremum(np.minimum, is_lower=True)
maximum = _extremum(np.maximum, is_lower=False)
minnum = _extremum(np.fmin, is_lower=True)
maxnum = _extremum(np.fmax, is_lower=False)

EXTREMA: dict[tuple[str, bool], Binary] = {
    ("min", True): minimum, ("max", True): maximum, ("min", False): minnum, ("max", False): maxnum,
}  # fmt: skip
"""The functions by PTX's name, and whether NaN spreads."""
