"""Operands of block-scaled products: small floats, packed or not, and the scales of their blocks (OCP MX 1.0)."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.dialects.tt.enums import ScaleDotElemType
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.numerics.arrays import Array, is_float
from tlx_xdsl.numerics.rounding import round_to

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
"""The values of the 16 codes."""
_DTYPES: dict[ScaleDotElemType, Any] = {
    ScaleDotElemType.E4M3: ml_dtypes.float8_e4m3fn,
    ScaleDotElemType.E5M2: ml_dtypes.float8_e5m2,
    ScaleDotElemType.E2M3: ml_dtypes.float6_e2m3fn,
    ScaleDotElemType.E3M2: ml_dtypes.float6_e3m2fn,
    ScaleDotElemType.BF16: ml_dtypes.bfloat16,
    ScaleDotElemType.FP16: np.float16,
}


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
    return (values if is_float(values.dtype) else values.view(_DTYPES[kind])).astype(np.float32)


def multiply_scaled(
    a: Array, a_scale: Array | None, b: Array, b_scale: Array | None, c: Array, dtype: np.dtype[Any]
) -> Array:
    """`(a * a_scale) @ (b * b_scale) + c`, in f64 and rounded once.

    A scale holds for a group of elements along K: `a_scale` has the shape [..., M, K / group], and `b_scale` has the
    shape [..., N, K / group].
    """
    a, b = a.astype(np.float64), b.astype(np.float64)
    if a_scale is not None:
        a = a * np.repeat(a_scale, a.shape[-1] // a_scale.shape[-1], -1)
    if b_scale is not None:
        b = b * np.swapaxes(np.repeat(b_scale, b.shape[-2] // b_scale.shape[-1], -1), -1, -2)
    return round_to(np.matmul(a, b) + c.astype(np.float64), dtype)


def scaled_operand(op: Operation, values: Array, scales: Array, kind: ScaleDotElemType, rows: int) -> Array:
    """A matrix of `rows` x K, each element times the scale of its block along K, as f32.

    fp4 may be packed along K or along the rows.
    Raises Fault when K is no multiple of the number of scales.
    """
    numbers = decode(values, kind, 1 if values.shape[0] == rows else 0)
    size, count = numbers.shape[1], scales.shape[1]
    if scales.shape[0] != rows or count == 0 or size % count:
        raise fault_at(op, f"{list(scales.shape)} scales do not fit a matrix of {list(numbers.shape)} elements")
    return numbers * np.repeat(decode_scales(scales), size // count, axis=1)
