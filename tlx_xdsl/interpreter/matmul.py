"""Matrix products as the tensor cores compute them: exact products of rounded inputs, added in f32 (or i32)."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tlx_xdsl.dialects.tt.enums import InputPrecision
from tlx_xdsl.numerics.arrays import Array, truncate_tf32


def multiply(a: Array, b: Array, c: Array | None, dtype: np.dtype[Any], *, tf32: bool = False) -> Array:
    """`a @ b + c` with a result of `dtype`; integers are added exactly and wrap around.

    The order of additions, and with it the last bits of f32, is numpy's and not the hardware's. With `tf32` the low
    bits of f32 inputs play no part.
    """
    if dtype.kind == "i":
        # Products of bytes are exact in f64, and so are sums of less than 2**37 of them.
        exact = np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64)
        return ((exact if c is None else exact + c) & 0xFFFFFFFF).astype(np.uint32).view(np.int32).astype(dtype)
    wide = np.float64 if dtype == np.float64 else np.float32
    left, right = a.astype(wide), b.astype(wide)
    if tf32 and a.dtype == np.float32:
        left, right = truncate_tf32(left), truncate_tf32(right)
    result = np.matmul(left, right)
    if c is not None:
        result += c.astype(wide)
    return result.astype(dtype)


def multiply_split(a: Array, b: Array, c: Array, precision: InputPrecision) -> Array:
    """`a @ b + c` of f32 matrices, each of which is the sum of two or three parts of fewer bits.

    Of the products of parts, the small ones are added first. Those that are too small to matter are left out: with
    tf32x3 and bf16x3 that of the second parts, with bf16x6 all below 2**-16 of the result. A small product that is NaN
    (the parts of an infinity are) counts as 0.
    """
    narrow = nearest_tf32 if precision is InputPrecision.TF32x3 else _nearest_bf16
    count = 3 if precision is InputPrecision.BF16x6 else 2
    left, right = _parts(a, narrow, count), _parts(b, narrow, count)
    pairs = [(i, rank - i) for rank in range(count - 1, 0, -1) for i in range(rank + 1)]
    small = sum((np.matmul(left[i], right[j]) for i, j in pairs), np.float32(0))
    return np.where(np.isnan(small), np.float32(0), small) + np.matmul(left[0], right[0]) + c


def _parts(values: Array, narrow: Any, count: int) -> list[Array]:
    parts: list[Array] = []
    for _ in range(count):
        parts.append(narrow(values))
        values = values - parts[-1]
    return parts


def _nearest_bf16(values: Array) -> Array:
    return values.astype(ml_dtypes.bfloat16).astype(np.float32)


def nearest_tf32(values: Array) -> Array:
    """f32 rounded to the 10 bits of a tf32 mantissa, ties away from zero (PTX: cvt.rna.tf32.f32)."""
    bits = values.view(np.uint32)
    return np.where(np.isfinite(values), truncate_tf32((bits + np.uint32(0x1000)).view(np.float32)), values)
