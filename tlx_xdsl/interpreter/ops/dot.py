"""Matrix products of register tensors; see `matmul.py` for their numerics."""

from __future__ import annotations

from typing import Any

from tlx_xdsl.dialects import tt, ttg
from tlx_xdsl.dialects.base.tensors import scalar_type, shape_of_tensor
from tlx_xdsl.dialects.tt.enums import InputPrecision, ScaleDotElemType
from tlx_xdsl.interpreter.matmul import multiply, multiply_split
from tlx_xdsl.interpreter.numbers import dtype_of
from tlx_xdsl.interpreter.registry import Run, Ternary, Unary, pure
from tlx_xdsl.interpreter.scaled import decode, decode_scales, multiply_scaled, unpack_e2m1
from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.numerics.rounding import round_to


@pure(tt.DotOp)
def dot(op: tt.DotOp) -> Ternary:
    """One product, or one for each matrix of a stack; how f32 operands are rounded is up to `inputPrecision`."""
    dtype = dtype_of(op.d.type)
    precision = InputPrecision(op.input_precision.value.data)
    if dtype_of(op.a.type).name == "float32" and precision not in (InputPrecision.TF32, InputPrecision.IEEE):
        return lambda a, b, c: multiply_split(a, b, c, precision)
    tf32 = precision is InputPrecision.TF32
    return lambda a, b, c: multiply(a, b, c, dtype, tf32=tf32)


@pure(tt.DotScaledOp)
def dot_scaled(op: tt.DotScaledOp) -> Run:
    """Elements of 4 to 16 bits, with or without a scale for each group of them."""
    dtype, rank = dtype_of(op.d.type), len(shape_of_tensor(op.d.type))
    kinds = ScaleDotElemType(op.a_elem_type.value.data), ScaleDotElemType(op.b_elem_type.value.data)
    a_axis = rank - 1 if op.lhs_k_pack.value.data else rank - 2
    b_axis = rank - 2 if op.rhs_k_pack.value.data else rank - 1
    has_a_scale, has_b_scale = op.a_scale is not None, op.b_scale is not None

    def run(a: Array, b: Array, c: Array, *scales: Any) -> Array:
        a_scale = decode_scales(scales[0]) if has_a_scale else None
        b_scale = decode_scales(scales[-1]) if has_b_scale else None
        left, right = decode(a, kinds[0], a_axis), decode(b, kinds[1], b_axis)
        return multiply_scaled(left, a_scale, right, b_scale, c, dtype)

    return run


@pure(ttg.Fp4ToFpOp)
def unpack_pairs(op: ttg.Fp4ToFpOp) -> Unary:
    """Pairs of e2m1 numbers, all of which other types hold exactly."""
    axis, dtype = op.axis.value.data, dtype_of(scalar_type(op.result.type))
    return lambda value: round_to(unpack_e2m1(value, axis), dtype)
