"""Block-scaled products: elements of 4 to 16 bits become f32, times their scales, and are multiplied as such.

Formats: OCP Microscaling Formats (MX) 1.0. As upstream Triton takes such a product apart, elements, scales and their
products are rounded to bf16, or to f16 where one of the operands is.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith as scalar
from xdsl.dialects.builtin import Float32Type, IntegerType, bf16, f16, f32, i32
from xdsl.ir import Attribute, SSAValue

from tlx_xdsl.dialects import arith, linalg, tt
from tlx_xdsl.dialects.base.tensors import attribute_of, element_bits, scalar_type, shape_of_tensor
from tlx_xdsl.dialects.tt.enums import ScaleDotElemType
from tlx_xdsl.element_types import BY_FORMAT

from .dots import product
from .elementwise import cast_bits
from .emitter import Emitter, like
from .registry import Options, lowers


def _small(kind: ScaleDotElemType) -> tuple[int, int] | None:
    """Bits of exponent and mantissa of elements that are no type of arith's conversions everywhere."""
    element = BY_FORMAT[kind.keyword]
    return (element.bits - 1 - element.mantissa, element.mantissa) if element.bits < 8 else None


@lowers(tt.DotScaledOp)
def dot_scaled(emit: Emitter, op: tt.DotScaledOp, _options: Options) -> Sequence[SSAValue]:
    """Both operands in f32, and their product; an accumulator of another type is added in f32 and rounded once."""
    rank = len(shape_of_tensor(op.d.type))
    kinds = [ScaleDotElemType(kind.value.data) for kind in (op.a_elem_type, op.b_elem_type)]
    compute = f16 if ScaleDotElemType.FP16 in kinds else bf16
    a = _decoded(emit, op.a, kinds[0], rank - 1 if op.lhs_k_pack.value.data else rank - 2, compute)
    b = _decoded(emit, op.b, kinds[1], rank - 2 if op.rhs_k_pack.value.data else rank - 1, compute)
    if op.a_scale is not None:
        a = _scaled(emit, a, op.a_scale, rank - 1, compute)
    if op.b_scale is not None:
        b = _scaled(emit, b, op.b_scale, rank - 2, compute)
    element = scalar_type(op.d.type)
    if isinstance(element, Float32Type):
        return [product(emit, a, b, op.c)]
    grows = element_bits(element) < element_bits(f32)
    to, back = (arith.ExtFOp, arith.TruncFOp) if grows else (arith.TruncFOp, arith.ExtFOp)
    c = emit.mapped([op.c], f32, lambda inner, values: inner.result(to(values[0], f32)))
    d = product(emit, a, b, c)
    return [emit.mapped([d], element, lambda inner, values: inner.result(back(values[0], element)))]


def _held(emit: Emitter, value: SSAValue, compute: Attribute) -> SSAValue:
    """An f32 rounded to the type `compute`."""
    return emit.result(arith.ExtFOp(emit.result(arith.TruncFOp(value, compute)), f32))


def _decoded(emit: Emitter, value: SSAValue, kind: ScaleDotElemType, packed_axis: int, compute: Attribute) -> SSAValue:
    """The elements of an operand as f32; those of 4 bits are packed in pairs along an axis, the low half first."""
    if kind is ScaleDotElemType.E2M1:
        return _unpacked(emit, value, packed_axis)

    def body(inner: Emitter, values: Sequence[SSAValue]) -> SSAValue:
        if (bits := _small(kind)) is not None:
            return _small_float(inner, inner.result(arith.ExtUIOp(values[0], i32)), *bits)
        wide = inner.result(arith.ExtFOp(cast_bits(inner, values[0], attribute_of(BY_FORMAT[kind.keyword])), f32))
        # Elements of 8 bits are numbers of both types.
        return _held(inner, wide, compute) if kind is ScaleDotElemType.BF16 and compute == f16 else wide

    return emit.mapped([value], f32, body)


def _unpacked(emit: Emitter, value: SSAValue, axis: int) -> SSAValue:
    """Both halves of bytes, in a new dimension after `axis` that is merged with it."""
    shape = list(shape_of_tensor(value.type))
    pairs = [*shape[: axis + 1], 2, *shape[axis + 1 :]]
    dims = [dim for dim in range(len(pairs)) if dim != axis + 1]

    def body(inner: Emitter, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        half = inner.result(scalar.IndexCastOp(inner.result(linalg.IndexOp(axis + 1)), i32))
        shift = inner.result(scalar.MuliOp(half, inner.constant(4, i32)))
        byte = inner.result(arith.ExtUIOp(values[0], i32))
        return [_small_float(inner, inner.result(scalar.ShRUIOp(byte, shift)), 2, 1)]

    (halves,) = emit.generic([value], [like(f32, pairs)], body, [dims])
    shape[axis] *= 2
    return emit.reshaped(halves, shape)


def _small_float(emit: Emitter, code: SSAValue, exponent: int, mantissa: int) -> SSAValue:
    """The number that the low bits of an i32 are: sign, exponent and mantissa, with no infinity and no NaN.

    In the places of f32's exponent and mantissa they are the number times a power of two, of subnormal ones, too.
    """
    size = exponent + mantissa
    magnitude = emit.result(scalar.AndIOp(code, emit.constant((1 << size) - 1, i32)))
    moved = emit.result(scalar.ShLIOp(magnitude, emit.constant(23 - mantissa, i32)))
    factor = 2.0 ** (127 - ((1 << exponent - 1) - 1))
    number = emit.result(scalar.MulfOp(cast_bits(emit, moved, f32), emit.constant(factor, f32)))
    sign = emit.result(scalar.AndIOp(code, emit.constant(1 << size, i32)))
    high = emit.result(scalar.ShLIOp(sign, emit.constant(31 - size, i32)))
    return cast_bits(emit, emit.result(scalar.OrIOp(cast_bits(emit, number, i32), high)), f32)


def _scale(emit: Emitter, value: SSAValue) -> SSAValue:
    """A scale as f32: a float, or a byte that is an exponent with a bias of 127, where 255 is NaN (E8M0)."""
    if not isinstance(value.type, IntegerType):
        return emit.result(arith.ExtFOp(value, f32))
    byte = emit.result(arith.ExtUIOp(value, i32))
    bits = emit.result(scalar.ShLIOp(byte, emit.constant(23, i32)))
    for code, number in ((0, 1 << 22), (255, 0x7FC00000)):
        is_code = emit.result(arith.CmpiOp("eq", byte, emit.constant(code, i32)))
        bits = emit.result(arith.SelectOp(is_code, emit.constant(number, i32), bits))
    return cast_bits(emit, bits, f32)


def _scaled(emit: Emitter, value: SSAValue, scales: SSAValue, axis: int, compute: Attribute) -> SSAValue:
    """Elements times their scales: one for each group along `axis`, which is the last dimension of the scales."""
    shape = list(shape_of_tensor(value.type))
    groups = shape_of_tensor(scales.type)[-1]
    split = [*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :]]
    rank = len(split)
    others = [dim for dim in range(rank) if dim not in (axis, axis + 1)]

    def body(inner: Emitter, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        factor = _held(inner, _scale(inner, values[1]), compute)
        return [_held(inner, inner.result(scalar.MulfOp(values[0], factor)), compute)]

    maps = [range(rank), [*others, axis]]
    (result,) = emit.generic([emit.reshaped(value, split), scales], [like(f32, split)], body, maps)
    return emit.reshaped(result, shape)
