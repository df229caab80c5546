"""Matrix products as the tensor cores compute them: exact products of rounded inputs, added in f32 (or i32)."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.dialects.tt.enums import InputPrecision, ScaleDotElemType
from tlx_xdsl.element_types import BY_FORMAT
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.numerics.arrays import Array, is_float, numpy_type, truncate_tf32
from tlx_xdsl.numerics.rounding import round_to


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


def decode(values: Array, kind: ScaleDotElemType, packed_axis: int) -> Array:
    """The numbers of an operand as f32; 4-bit ones are packed in pairs along an axis."""
    if kind is ScaleDotElemType.E2M1:
        return unpack_e2m1(values, packed_axis)
    return (values if is_float(values.dtype) else values.view(numpy_type(BY_FORMAT[kind.keyword]))).astype(np.float32)


def multiply_scaled(
    a: Array, a_scale: Array | None, b: Array, b_scale: Array | None, c: Array, dtype: np.dtype[Any], *, fp16: bool
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


def _scaled(values: Array, scale: Array | None, compute: np.dtype[Any]) -> Array:
    """Values times the scales of their groups, both along the last axis, each rounded to `compute`, as f64."""
    held = round_to(values, compute)
    if scale is not None:
        factors = np.repeat(round_to(scale, compute), values.shape[-1] // scale.shape[-1], -1)
        held = round_to(held.astype(np.float32) * factors.astype(np.float32), compute)
    return held.astype(np.float64)


_LEAST_GROUP = {False: 32, True: 16}
"""Least elements along K that a scale is for: bytes (E8M0), and floats (e4m3) (PTX ISA, ".scale_vec_size")."""


def scaled_operand(op: Operation, values: Array, scales: Array, kind: ScaleDotElemType, rows: int) -> Array:
    """A matrix of `rows` x K, each element times the scale of its block along K, as f32.

    fp4 may be packed along K or along the rows. Tensor memory holds four scales of a row together: a smaller K uses the
    first of them. Raises Fault when K is no multiple of the number of scales.
    """
    numbers = decode(values, kind, 1 if values.shape[0] == rows else 0)
    size = numbers.shape[1]
    scales = scales[:, : max(size // _LEAST_GROUP[is_float(scales.dtype)], 1)]
    count = scales.shape[1]
    if scales.shape[0] != rows or count == 0 or size % count:
        raise fault_at(op, f"{list(scales.shape)} scales do not fit a matrix of {list(numbers.shape)} elements")
    return numbers * np.repeat(decode_scales(scales), size // count, axis=1)
