"""Products of matrices as `linalg.matmul` and `linalg.batch_matmul`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith as scalar, math
from xdsl.dialects.builtin import Float32Type, Float64Type, IntegerType, bf16, f16, f32, i32
from xdsl.ir import Attribute, SSAValue

from tlx_xdsl.dialects import arith, linalg, tt
from tlx_xdsl.dialects.base.tensors import attribute_of, element_bits, scalar_type, shape_of_tensor
from tlx_xdsl.dialects.tt.enums import InputPrecision, ScaleDotElemType
from tlx_xdsl.element_types import BY_FORMAT
from tlx_xdsl.text.diagnostics import report_remark

from .elementwise import cast_bits
from .emitter import Emitter, Options, like, lowers, refused

_Narrow = Callable[[Emitter, SSAValue], SSAValue]
"""Computes an f32 with fewer bits of another."""


@lowers(tt.DotOp)
def dot(emit: Emitter, op: tt.DotOp, options: Options) -> Sequence[SSAValue]:
    """The accumulator is the output, to whose type elements of operands are converted before they are multiplied.

    A narrow accumulator is added in f32 and rounded once.
    """
    element = scalar_type(op.d.type)
    if not isinstance(element, Float32Type | Float64Type) and element != i32:
        if isinstance(element, IntegerType):
            raise refused(op, f"integers are accumulated in i32, not in {element}")
        wide = _widened(emit, op.c)
        narrow = product(emit, op.a, op.b, wide)
        return [emit.mapped([narrow], element, lambda inner, values: inner.result(arith.TruncFOp(values[0], element)))]
    precision = InputPrecision(op.input_precision.value.data)
    if op.max_num_imprecise_acc.value.data and _is_byte(op):
        report_remark(op, "maxNumImpreciseAcc is for tensor cores: linalg.matmul adds in the type of the accumulator")
    if scalar_type(op.a.type) != f32 or precision is InputPrecision.IEEE:
        return [product(emit, op.a, op.b, op.c)]
    if precision is not InputPrecision.TF32:
        return [_split_product(emit, op, precision)]
    if not options.truncates_tf32:
        report_remark(op, "inputPrecision = tf32 is for tensor cores: linalg.matmul multiplies all bits of f32")
        return [product(emit, op.a, op.b, op.c)]
    a, b = (emit.mapped([value], f32, lambda inner, values: _tf32(inner, values[0])) for value in (op.a, op.b))
    return [product(emit, a, b, op.c)]


def _is_byte(op: tt.DotOp) -> bool:
    element = scalar_type(op.a.type)
    return not isinstance(element, IntegerType) and str(element).startswith("f8")


def product(emit: Emitter, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
    """`c + a * b` of matrices, or of stacks of them."""
    made = linalg.MatmulOp if len(shape_of_tensor(a.type)) == 2 else linalg.BatchMatmulOp
    return emit.result(made([a, b], [c]))


def _widened(emit: Emitter, value: SSAValue) -> SSAValue:
    return emit.mapped([value], f32, lambda inner, values: inner.result(arith.ExtFOp(values[0], f32)))


# Operands of f32 as several of fewer bits ----------------------------------------------------------------------------


def _bits(emit: Emitter, value: SSAValue) -> SSAValue:
    return emit.result(scalar.BitcastOp(value, i32))


def _float(emit: Emitter, bits: SSAValue) -> SSAValue:
    return emit.result(scalar.BitcastOp(bits, f32))


_TF32_BITS = -(1 << 13)
"""The bits of an f32 that tensor cores look at for tf32."""


def _tf32(emit: Emitter, value: SSAValue) -> SSAValue:
    """`value` as tensor cores read it: the low 13 bits of the mantissa play no part."""
    return _float(emit, emit.result(scalar.AndIOp(_bits(emit, value), emit.constant(_TF32_BITS, i32))))


def _nearest_tf32(emit: Emitter, value: SSAValue) -> SSAValue:
    """Rounded to the 10 bits of a tf32 mantissa, ties away from zero (PTX: cvt.rna.tf32.f32)."""
    half = emit.result(scalar.AddiOp(_bits(emit, value), emit.constant(0x1000, i32)))
    rounded = _float(emit, emit.result(scalar.AndIOp(half, emit.constant(_TF32_BITS, i32))))
    size = emit.result(math.AbsFOp(value))
    is_finite = emit.result(arith.CmpfOp("olt", size, emit.constant(float("inf"), f32)))
    return emit.result(arith.SelectOp(is_finite, rounded, value))


def _nearest_bf16(emit: Emitter, value: SSAValue) -> SSAValue:
    return emit.result(arith.ExtFOp(emit.result(arith.TruncFOp(value, bf16)), f32))


def _split_product(emit: Emitter, op: tt.DotOp, precision: InputPrecision) -> SSAValue:
    """The sum of products of parts with fewer bits, the small ones first; those too small to matter are left out.

    A small product that is NaN, as for an infinity, counts as 0.
    """
    narrow = _nearest_tf32 if precision is InputPrecision.TF32x3 else _nearest_bf16
    count = 3 if precision is InputPrecision.BF16x6 else 2
    left, right = _parts(emit, op.a, narrow, count), _parts(emit, op.b, narrow, count)
    total = emit.filled(emit.constant(0, f32), op.d.type)
    for rank in range(count - 1, 0, -1):
        for number in range(rank + 1):
            total = product(emit, left[number], right[rank - number], total)
    total = emit.mapped([total], f32, lambda inner, values: _without_nan(inner, values[0]))
    total = product(emit, left[0], right[0], total)
    return emit.mapped([total, op.c], f32, lambda inner, values: inner.result(scalar.AddfOp(values[0], values[1])))


def _parts(emit: Emitter, value: SSAValue, narrow: _Narrow, count: int) -> list[SSAValue]:
    parts: list[SSAValue] = []
    for number in range(count):
        parts.append(emit.mapped([value], f32, lambda inner, values: narrow(inner, values[0])))
        if number + 1 < count:
            value = emit.mapped(
                [value, parts[-1]], f32, lambda inner, values: inner.result(scalar.SubfOp(values[0], values[1]))
            )
    return parts


def _without_nan(emit: Emitter, value: SSAValue) -> SSAValue:
    is_nan = emit.result(arith.CmpfOp("uno", value, value))
    return emit.result(arith.SelectOp(is_nan, emit.constant(0, f32), value))


# Block-scaled products: elements of 4 to 16 bits become f32, times their scales, and are multiplied as such.
#
# Formats: OCP Microscaling Formats (MX) 1.0. As upstream Triton takes such a product apart, elements, scales and their
# products are rounded to bf16, or to f16 where one of the operands is.


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
