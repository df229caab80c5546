"""Products of tensor cores (PTX ISA, "mma", "wgmma.mma_async", "tcgen05.mma"), bit for bit those of an H200.

PTX leaves the sums of products to the hardware ("at least single precision", in any order). What an H200 computes was
measured (2026-11-24; `wgmma` and `mma.sync`), and is the same for all products of one instruction, K = 32 bytes:

1. E is the largest of the sums of the exponents of a[m, k] and b[k, n] over K, zeros left out, and the exponent of c.
   A subnormal number has the lowest exponent of its type, and E is at least -133.
2. Each exact product, and c, is truncated towards zero to a multiple of 2**(E - 25); of 2**(E - 13) for 8-bit elements.
3. These are added exactly, and the sum is rounded towards zero to f32, of 8-bit elements to 13 bits of fraction first;
   an accumulator of f16 is rounded to nearest even.

Fifth-generation tensor cores (`tcgen05.mma`) do the same, with 25 bits for 8-bit elements, too, as F. A. Khattak and
M. Mikaitis found of a B200 ("Accurate Models of NVIDIA Tensor Cores", arXiv 2512.07004; the parameters of their models
of H100 and B200 differ in that alone for results in f32). We measured none; those of fp4, fp6 and scales are not
published, and taken to be the same. Integers are exact, and f64 is numpy's.
"""

from __future__ import annotations

from math import prod
from typing import Any, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.element_types import PTX_TYPES
from tlx_xdsl.numerics.arrays import Array, Dtype, Integers, numpy_type, truncate_tf32

ELEMENTS = {name: numpy_type(PTX_TYPES[name][0]) for name in ("f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8", "f64")}
"""The types of A and B."""

_BITS = 25
_BITS_OF_FP8 = 13
_NO_EXPONENT = -10000
_SAFE = 90
"""Where all exponents E are smaller in magnitude, f32 will do for products and their scaling."""
_LOWEST = -133
"""The lowest E; -134 and -135 would give the same results in all cases that were measured."""
_ALL_ZERO = -300
"""Stands for E where there is none; below every exponent of a product or of an f32."""
_BLOCK = 1 << 14
"""Elements of the result that are computed together: their arrays fit into the L2 cache."""
_NAN = np.uint32(0x7FFFFFFF).view(np.float32)


def multiply(a: Array, b: Array, c: Array | None, result: Dtype, *, is_fifth: bool = False) -> Array:
    """`a @ b + c` of one instruction: [..., M, K], [..., K, N], [..., M, N].

    f32 elements are tf32, whose low bits play no part. `is_fifth` is for the fifth generation of tensor cores.
    """
    if result.kind == "i":
        exact = np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64)
        total = exact if c is None else exact + c
        return (total & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
    if result == np.float64:
        product = np.matmul(a, b)
        return product if c is None else product + c
    bits = _BITS_OF_FP8 if a.dtype.itemsize == 1 and not is_fifth else _BITS
    lowest = _lowest_exponent(a.dtype)
    left, right = _single(a), _single(b)
    special = not (np.isfinite(left).all() and np.isfinite(right).all() and (c is None or np.isfinite(c).all()))
    if not special:
        return _aligned(left, right, c, result, bits, lowest)
    with np.errstate(invalid="ignore"):
        plain = np.matmul(left.astype(np.float64), right.astype(np.float64))
        plain = plain if c is None else plain + c
    found = _aligned(_finite(left), _finite(right), None if c is None else _finite(c), result, bits, lowest)
    infinite = np.where(np.isnan(plain), _NAN if result == np.float32 else np.float16(np.nan), plain.astype(result))
    return np.where(np.isfinite(plain), found, infinite)


def multiply_as_f16(a: Array, b: Array, c: Array, result: Dtype) -> Array:
    """`a @ b + c` of `mma.sync` with 8-bit floats, which ptxas makes of two products of f16 and an addition.

    The first has the elements of the low halves of registers: 0 and 1 of each four along K.
    """
    places: Integers = np.arange(a.shape[-1], dtype=np.int64).reshape(-1, 4)
    total: Array | None = None
    for half in (places[:, :2].ravel(), places[:, 2:].ravel()):
        left, right = a[..., half].astype(np.float16), b[..., half, :].astype(np.float16)
        total = multiply(left, right, total, result)
    assert total is not None
    with np.errstate(invalid="ignore", over="ignore"):
        return total + c


def _single(values: Array) -> NDArray[np.float32]:
    return truncate_tf32(values) if values.dtype == np.float32 else values.astype(np.float32)


def _finite(values: Array) -> Array:
    return np.where(np.isfinite(values), values, values.dtype.type(0))


def _lowest_exponent(dtype: Dtype) -> int:
    """Return the exponent of the smallest normal number."""
    return int(cast(Any, ml_dtypes.finfo)(dtype).minexp)


def _exponents(values: Array, lowest: int) -> NDArray[np.int16]:
    """The exponents of finite numbers, of 1.0 it is 0; that of the type for subnormal ones; far below for zeros."""
    found: NDArray[np.int16] = np.frexp(values)[1].astype(np.int16)
    found -= 1
    np.maximum(found, lowest, out=found)
    found[values == 0] = _NO_EXPONENT
    return found


def _aligned(
    a: NDArray[np.float32],
    b: NDArray[np.float32],
    c: Array | None,
    result: Dtype,
    bits: int,
    lowest: int,
) -> Array:
    """The products and `c`, finite, truncated to a common exponent and added; some rows of the result at a time."""
    m, n = a.shape[-2], b.shape[-1]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    out = np.empty((*batch, m, n), result)
    # Along K first: what one step of the loop takes lies together.
    a, b = (np.ascontiguousarray(np.moveaxis(each, axis, 0)) for each, axis in ((a, -1), (b, -2)))
    of_a, of_b = _exponents(a, lowest), _exponents(b, lowest)
    rows = max(1, _BLOCK // (n * max(1, prod(batch))))
    for start in range(0, m, rows):
        part = slice(start, start + rows)
        old = None if c is None else c[..., part, :]
        common = _common(of_a[..., part], of_b, old)
        total = _sum(a[..., part], b, old, common, bits)
        out[..., part, :] = _rounded(total, result, bits)
    return out


def _common(of_a: NDArray[np.int16], of_b: NDArray[np.int16], c: Array | None) -> NDArray[np.int16]:
    """E of each element of the result, [..., rows, N]; `_ALL_ZERO` where all is zero."""
    common = of_a[0][..., :, None] + of_b[0][..., None, :]
    room = np.empty_like(common)
    for k in range(1, len(of_a)):
        np.add(of_a[k][..., :, None], of_b[k][..., None, :], out=room)
        np.maximum(common, room, out=common)
    if c is not None:
        np.maximum(common, _exponents(c, _lowest_exponent(c.dtype)), out=common)
    return np.where(common > _ALL_ZERO, np.maximum(common, _LOWEST), np.int16(_ALL_ZERO))


def _sum(
    a: NDArray[np.float32],
    b: NDArray[np.float32],
    c: Array | None,
    common: NDArray[np.int16],
    bits: int,
) -> NDArray[np.float64]:
    """The exact sum of `c` and of the products, truncated to multiples of 2**(E - bits); `a` [K, ..., rows]."""
    scale = _power(bits - common.astype(np.int64))
    total = np.zeros(common.shape, np.float64) if c is None else np.trunc(c * scale)
    # Products of 11 bits by 11 are exact in f32, and so is scaling by a power of 2; the exponents fit, too, if none of
    # E is extreme: what is too small for f32 then is truncated to 0 anyway.
    is_extreme = ((common <= -_SAFE) & (common != _ALL_ZERO)) | (common >= _SAFE)
    work = np.float64 if is_extreme.any() else np.float32
    factor = np.where(common == _ALL_ZERO, 0, scale).astype(work)
    product = np.empty(common.shape, work)
    for k in range(len(a)):
        np.multiply(a[k][..., :, None], b[k][..., None, :], out=product, dtype=work)
        np.multiply(product, factor, out=product)
        np.trunc(product, out=product)
        np.add(total, product, out=total)
    total /= scale
    return total


def _rounded(total: NDArray[np.float64], result: Dtype, bits: int) -> Array:
    with np.errstate(over="ignore"):
        if result != np.float32:
            # What is too small for f16 is 0 without a sign.
            return total.astype(result) + result.type(0)
        if bits == _BITS_OF_FP8:
            total = (total.view(np.int64) & ~np.int64((1 << (52 - _BITS_OF_FP8)) - 1)).view(np.float64)
        nearest = total.astype(np.float32)
    # Numbers of either sign are one closer to zero when their bits are one less.
    nearest.view(np.int32)[...] -= np.abs(nearest) > np.abs(total)
    return nearest


def _power(exponents: Integers) -> NDArray[np.float64]:
    return ((exponents + 1023) << 52).view(np.float64)
