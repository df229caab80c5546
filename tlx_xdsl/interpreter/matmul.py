"""Matrix products as the tensor cores compute them: exact products of rounded inputs, added in f32 (or i32)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlx_xdsl.interpreter.numbers import Array, truncate_tf32


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
