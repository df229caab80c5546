"""Matrix products whose precision and whose operands' kinds the IR names; `numerics/matmul.py` computes them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.dialects.tt import InputPrecision, ScaleDotElemType
from tlx_xdsl.element_types import BY_FORMAT
from tlx_xdsl.numerics.arrays import Array, is_float, numpy_type
from tlx_xdsl.numerics.matmul import decode_scales, unpack_e2m1
from tlx_xdsl.numerics.rounding import nearest_tf32

from .faults import fault_at


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


def decode(values: Array, kind: ScaleDotElemType, packed_axis: int) -> Array:
    """The numbers of an operand as f32; 4-bit ones are packed in pairs along an axis."""
    if kind is ScaleDotElemType.E2M1:
        return unpack_e2m1(values, packed_axis)
    return (values if is_float(values.dtype) else values.view(numpy_type(BY_FORMAT[kind.keyword]))).astype(np.float32)


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
