"""Products of matrices as `linalg.matmul` and `linalg.batch_matmul`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith as scalar, math
from xdsl.dialects.builtin import Float32Type, Float64Type, IntegerType, bf16, f32, i32
from xdsl.ir import SSAValue

from tlx_xdsl.dialects import arith, linalg, tt
from tlx_xdsl.dialects.base.tensors import scalar_type, shape_of_tensor
from tlx_xdsl.dialects.tt.enums import InputPrecision
from tlx_xdsl.text.diagnostics import report_remark

from .emitter import Emitter
from .registry import Options, lowers, refused

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
