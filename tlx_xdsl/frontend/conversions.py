"""Conversions between element types, and the operations that they become.

Floats become integers towards zero and anything becomes an int1 by `!= 0`; widths of 16 bits go through float32 where
Triton does so.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation

from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.dialects.tt import RoundingMode
from tlx_xdsl.language.core import dtype, float16, float32, float64, int1, int64, pointer_type

from . import fp8e4b15
from .builder import Builder
from .numbers import constant
from .types import SemanticError, ir_type
from .values import Tensor

ROUNDINGS = {"rtne": RoundingMode.RTNE, "rtz": RoundingMode.RTZ}
"""Rounding modes of narrowing floats: to nearest even, towards zero."""


def cast(builder: Builder, value: Tensor, target: dtype | pointer_type, rounding: RoundingMode | None = None) -> Tensor:
    """Convert the elements of `value` to `target`; `rounding` is for floats that become narrower floats.

    Raises SemanticError when there is no such conversion.
    """
    source = value.dtype
    if source == target:
        return value
    narrows = _is_float(source) and _is_float(target) and source.primitive_bitwidth > target.primitive_bitwidth
    if rounding is not None and not narrows:
        raise SemanticError(
            f"a rounding mode is for narrower floats only, found a conversion from {source} to {target}"
        )
    if isinstance(source, pointer_type) or isinstance(target, pointer_type):
        return _cast_pointer(builder, value, target)
    if source.is_fp8e4b15() or target.is_fp8e4b15():
        return _cast_e4b15(builder, value, source, target, rounding)
    if source.is_floating() and target.is_floating():
        return _cast_float(builder, value, source, target, rounding)
    if source.is_fp8() or target.is_fp8():
        raise SemanticError(f"cannot convert {source} to {target} directly, go through fp32")
    if source.is_floating() and source.primitive_bitwidth < 32:
        return cast(builder, cast(builder, value, float32), target)
    if target == int1:
        return not_zero(builder, value)
    op = _integer_cast(source, target)
    if op is None:
        return Tensor(value.ssa, target, value.shape)
    return builder.value(op(value.ssa, ir_type(target)), target, value.shape)


def bitcast(builder: Builder, value: Tensor, target: dtype | pointer_type) -> Tensor:
    """The bits of `value` as elements of type `target`.

    Raises SemanticError when the widths differ.
    """
    source = value.dtype
    if source == target:
        return value
    if isinstance(source, pointer_type) or isinstance(target, pointer_type):
        return _cast_pointer(builder, value, target)
    have, want = source.primitive_bitwidth, target.primitive_bitwidth
    if have != want:
        raise SemanticError(f"a bitcast keeps the number of bits, found {have} bits of {source} for {want} of {target}")
    return _unary(builder, tt.BitcastOp, value, target)


def not_zero(builder: Builder, value: Tensor) -> Tensor:
    """Say whether each element of `value`, integers or floats of at least 32 bits, is not zero; NaN is not."""
    assert isinstance(value.dtype, dtype)
    zero = constant(builder, 0, value.dtype, value.shape)
    if value.dtype.is_floating():
        op: Operation = arith.CmpfOp("une", value.ssa, zero.ssa)
    else:
        op = arith.CmpiOp("ne", value.ssa, zero.ssa)
    return builder.value(op, int1, value.shape)


def _is_float(element: dtype | pointer_type) -> bool:
    return isinstance(element, dtype) and element.is_floating()


def _unary(builder: Builder, op: type[IRDLOperation], value: Tensor, target: dtype | pointer_type) -> Tensor:
    return builder.tensor(op, target, value.shape, value)


def _cast_pointer(builder: Builder, value: Tensor, target: dtype | pointer_type) -> Tensor:
    source = value.dtype
    if isinstance(source, pointer_type) and isinstance(target, pointer_type):
        return _unary(builder, tt.BitcastOp, value, target)
    if isinstance(target, pointer_type):
        if not isinstance(source, dtype) or not source.is_int() or source.primitive_bitwidth != 64:
            raise SemanticError(f"a pointer is made of an int64, found {value.describe()}")
        return _unary(builder, tt.IntToPtrOp, value, target)
    if target == int1:
        return not_zero(builder, _unary(builder, tt.PtrToIntOp, value, int64))
    if not target.is_int() or target.primitive_bitwidth != 64:
        raise SemanticError(f"a pointer becomes an int64, an int1 or another pointer, found {target}")
    return _unary(builder, tt.PtrToIntOp, value, target)


def _cast_e4b15(builder: Builder, value: Tensor, source: dtype, target: dtype, rounding: RoundingMode | None) -> Tensor:
    """Convert from or to fp8e4b15, by way of float16; float32 goes there towards zero, as in Triton."""
    if rounding is RoundingMode.RTNE:
        raise SemanticError(f"cannot convert {source} to {target} with a rounding mode: there is one way")
    other = target if source.is_fp8e4b15() else source
    if other not in (float16, float32):
        raise SemanticError(f"cannot convert {source} to {target} directly, go through fp16 or fp32")
    if source.is_fp8e4b15():
        return cast(builder, fp8e4b15.to_float16(builder, value), target)
    half = value if source == float16 else cast(builder, value, float16, RoundingMode.RTZ)
    return fp8e4b15.from_float16(builder, half)


def _cast_float(builder: Builder, value: Tensor, source: dtype, target: dtype, rounding: RoundingMode | None) -> Tensor:
    have, want = source.primitive_bitwidth, target.primitive_bitwidth
    is_half = have == want == 16
    if source.is_fp8() or target.is_fp8() or is_half or rounding is RoundingMode.RTZ:
        if rounding is None and (is_half or have > want):
            rounding = RoundingMode.RTNE
        return builder.tensor(tt.FpToFpOp, target, value.shape, value, rounding=rounding)
    if have > want:
        op: Operation = arith.TruncFOp(value.ssa, ir_type(target))
    elif have == 16 and target == float64:
        return cast(builder, cast(builder, value, float32), float64)
    else:
        op = arith.ExtFOp(value.ssa, ir_type(target))
    return builder.value(op, target, value.shape)


def _integer_cast(source: dtype, target: dtype) -> Callable[..., Operation] | None:
    """The operation that converts where at least one side is an integer; None when the bits stay."""
    if source.is_floating():
        return arith.FPToSIOp if target.is_int_signed() else arith.FPToUIOp
    if target.is_floating():
        return arith.SIToFPOp if source.is_int_signed() else arith.UIToFPOp
    if source.primitive_bitwidth == target.primitive_bitwidth:
        return None
    if target.primitive_bitwidth < source.primitive_bitwidth:
        return arith.TruncIOp
    return arith.ExtSIOp if source.is_int_signed() else arith.ExtUIOp
