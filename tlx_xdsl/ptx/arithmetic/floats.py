"""Arithmetic on f32 as PTX has it, on numpy arrays (PTX ISA, "Floating Point Instructions").

`add`, `sub`, `mul` and `div.rn` of numpy round to nearest even, as `.rn` does, and keep subnormal numbers; `.ftz` makes
them zeros of their sign. Approximate functions are in `approximate.py`.
"""

from __future__ import annotations

import numpy as np

from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.numerics.directed_rounding import fused_multiply_add

F4 = np.dtype(np.float32)
_TINY = np.float32(np.finfo(np.float32).smallest_normal)
_TIE = np.int64(1 << 28)
_BELOW = np.int64((1 << 29) - 1)


def flush(values: Array) -> Array:
    """Subnormal numbers become zeros of their sign (`.ftz`)."""
    small = np.abs(values) < _TINY
    return np.where(small, np.copysign(np.float32(0), values), values) if np.count_nonzero(small) else values


def fma(a: Array, b: Array, c: Array) -> Array:
    """`a * b + c` with one rounding to nearest.

    The product is exact in f64, and rounding the sum to f64 first does no harm, unless that makes a tie between two f32
    of it, or the result is subnormal: then it is computed with rounding to odd.
    """
    total = np.asarray(a, np.float64) * b + c
    low = total.view(np.int64) & _BELOW
    doubtful = (low == _TIE) | (np.abs(total) < _TINY) & (total != 0)
    if np.count_nonzero(doubtful):
        return fused_multiply_add(np.asarray(a), np.asarray(b), np.asarray(c), F4)
    return total.astype(np.float32)


def saturate(values: Array) -> Array:
    """Clamp to 0 to 1; NaN is 0 (`.sat`)."""
    clipped = np.clip(values, values.dtype.type(0), values.dtype.type(1))
    return np.where(np.isnan(values), values.dtype.type(0), clipped)


def reciprocal(values: Array) -> Array:
    """`rcp.rn.f32`."""
    return np.float32(1) / values
