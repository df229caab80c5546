"""High halves of products of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import Array, unsigned, where


def multiply_high(a: Array, b: Array, signed: np.dtype[Any], *, is_signed: bool) -> Array:
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
