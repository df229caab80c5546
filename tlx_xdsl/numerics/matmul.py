"""Matrix products as the tensor cores compute them: exact products of rounded inputs, added in f32 (or i32)."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from .arrays import Array, Dtype, is_float, truncate_tf32
from .rounding import round_to


def multiply(a: Array, b: Array, c: Array | None, dtype: Dtype, *, tf32: bool = False) -> Array:
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


# Operands of block-scaled products: small floats, packed or not, and the scales of their blocks (OCP MX 1.0) ---------

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
"""The values of the 16 codes."""


def unpack_e2m1(values: Array, axis: int) -> Array:
    """Pairs of fp4 in bytes as f32, the low half first along `axis`."""
    codes = values.view(np.uint8)
    pairs = np.stack([E2M1[codes & 15], E2M1[codes >> 4]], axis=axis + 1)
    shape = list(values.shape)
    shape[axis] *= 2
    return pairs.reshape(shape)


def decode_scales(scales: Array) -> Array:
    """Scales as f32: 8-bit exponents with a bias of 127, where 255 is NaN (e8m0), or floats."""
    if is_float(scales.dtype):
        return scales.astype(np.float32)
    return scales.view(ml_dtypes.float8_e8m0fnu).astype(np.float32)


def multiply_scaled(
    a: Array, a_scale: Array | None, b: Array, b_scale: Array | None, c: Array, dtype: Dtype, *, fp16: bool
) -> Array:
    """`(a * a_scale) @ (b * b_scale) + c`; the products are added in f64, and their sum is rounded once.

    A scale holds for a group of elements along K: `a_scale` has the shape [..., M, K / group], and `b_scale` has the
    shape [..., N, K / group]. As upstream Triton's "decompose-scaled-blocked" has it, numbers, scales and their
    products are bf16, or fp16 where one of the operands is: what is out of its range is an infinity or 0 there.
    """
    compute = np.dtype(np.float16 if fp16 else ml_dtypes.bfloat16)
    left = _scaled(a, a_scale, compute)
    right = np.swapaxes(_scaled(np.swapaxes(b, -1, -2), b_scale, compute), -1, -2)
    return round_to(np.matmul(left, right) + c.astype(np.float64), dtype)


def _scaled(values: Array, scale: Array | None, compute: Dtype) -> Array:
    """Values times the scales of their groups, both along the last axis, each rounded to `compute`, as f64."""
    held = round_to(values, compute)
    if scale is not None:
        factors = np.repeat(round_to(scale, compute), values.shape[-1] // scale.shape[-1], -1)
        held = round_to(held.astype(np.float32) * factors.astype(np.float32), compute)
    return held.astype(np.float64)
