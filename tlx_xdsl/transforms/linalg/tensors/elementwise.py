"""Operations that compute each element on its own."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith as scalar, math
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, Operation, SSAValue

from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.dialects.base.tensors import element_bits, scalar_type
from tlx_xdsl.dialects.tt.enums import PropagateNan, RoundingMode
from tlx_xdsl.transforms.linalg.tensors.emitter import Emitter
from tlx_xdsl.transforms.linalg.tensors.registry import EXPANSIONS, expands


def lower_elementwise(emit: Emitter, op: Operation) -> Sequence[SSAValue]:
    """A `linalg.generic` whose body is `op` on scalars; a scalar operand is one of its inputs, too."""
    expand = EXPANSIONS.get(type(op))

    def body(inner: Emitter, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        if expand is not None:
            return [expand(inner, op, values)]
        on_scalars = type(op).create(
            operands=values,
            result_types=[scalar_type(type_) for type_ in op.result_types],
            properties=op.properties.copy(),
            attributes=op.attributes.copy(),
        )
        return inner.add(on_scalars).results

    return emit.generic(op.operands, op.result_types, body)


# Operations of tt on one element -------------------------------------------------------------------------------------


@expands(tt.BitcastOp)
def bitcast(emit: Emitter, op: tt.BitcastOp, values: Sequence[SSAValue]) -> SSAValue:
    """`arith.bitcast`; nothing where the type stays."""
    return cast_bits(emit, values[0], scalar_type(op.result.type))


def cast_bits(emit: Emitter, value: SSAValue, type_: Attribute) -> SSAValue:
    """The same bits as another type."""
    return value if value.type == type_ else emit.result(scalar.BitcastOp(value, type_))


_FP8_LARGEST = {"f8E5M2": 57344.0, "f8E4M3FN": 448.0, "f8E4M3FNUZ": 240.0, "f8E5M2FNUZ": 57344.0}
"""The largest finite numbers of the 8-bit floats of Triton."""


@expands(tt.FpToFpOp)
def convert_float(emit: Emitter, op: tt.FpToFpOp, values: Sequence[SSAValue]) -> SSAValue:
    """`arith.extf` or `arith.truncf`; by way of f32 between types of one width.

    8-bit results stop at their largest finite number (PTX ISA, "cvt", `.satfinite`), so the operand is limited first.
    """
    target, value = scalar_type(op.result.type), values[0]
    if value.type == target:
        return value
    to_zero = op.rounding is not None and RoundingMode(op.rounding.value.data) is RoundingMode.RTZ
    if element_bits(target) > element_bits(value.type):
        return emit.result(arith.ExtFOp(value, target))
    if element_bits(value.type) < 32:
        value = emit.result(arith.ExtFOp(value, f32))
    if to_zero:
        return emit.result(arith.TruncFOp(value, target, arith.RoundingMode.TOWARD_ZERO))
    if (limit := _FP8_LARGEST.get(str(target))) is not None:
        value = emit.result(scalar.MaximumfOp(value, emit.constant(-limit, value.type)))
        value = emit.result(scalar.MinimumfOp(value, emit.constant(limit, value.type)))
    return emit.result(arith.TruncFOp(value, target))


@expands(tt.ClampFOp)
def clamp(emit: Emitter, op: tt.ClampFOp, values: Sequence[SSAValue]) -> SSAValue:
    """The larger of `x` and the lower limit, then the smaller of that and the upper one."""
    x, low, high = values
    if PropagateNan(op.propagate_nan.value.data) is PropagateNan.ALL:
        return emit.result(scalar.MinimumfOp(emit.result(scalar.MaximumfOp(x, low)), high))
    return emit.result(scalar.MinnumfOp(emit.result(scalar.MaxnumfOp(x, low)), high))


@expands(tt.PreciseSqrtOp)
def precise_sqrt(emit: Emitter, _op: tt.PreciseSqrtOp, values: Sequence[SSAValue]) -> SSAValue:
    """`math.sqrt`, which rounds correctly."""
    return emit.result(math.SqrtOp(values[0]))


@expands(tt.PreciseDivFOp, tt.ApproxDivFOp)
def divide(emit: Emitter, _op: Operation, values: Sequence[SSAValue]) -> SSAValue:
    """`arith.divf`, which rounds correctly."""
    return emit.result(scalar.DivfOp(values[0], values[1]))


@expands(tt.MulhiUIOp)
def multiply_high(emit: Emitter, _op: tt.MulhiUIOp, values: Sequence[SSAValue]) -> SSAValue:
    """The second result of `arith.mului_extended`."""
    return emit.add(scalar.MulUIExtendedOp(values[0], values[1])).results[1]
