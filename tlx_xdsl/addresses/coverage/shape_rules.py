"""What operations make of shapes, pointers and descriptors, and where numbers come from (see `rules.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith as upstream
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr
from xdsl.ir import Operation

from tlx_xdsl.addresses.coverage.rules import Here, bits_of, bytes_of, of_bits, rule, shape_of
from tlx_xdsl.addresses.coverage.values import (
    Descriptor,
    Number,
    Pointer,
    Truth,
    Unknown,
    Value,
    constant,
    mapped,
    plus,
    times,
    wrapped,
)
from tlx_xdsl.dialects import tlx, tt, ttg
from tlx_xdsl.dialects.base.tensors import pointee_type

# --- where numbers come from -------------------------------------------------------------------------------------


@rule(upstream.ConstantOp)
def _constant(op: upstream.ConstantOp, _: Sequence[Any], __: Here) -> Value:
    type_, value = op.result.type, op.value
    bits = bits_of(type_)
    shape = shape_of(type_)
    if bits is None:
        return Unknown("it is computed with floats")
    if isinstance(value, IntegerAttr):
        numbers = [value.value.data]
    else:
        assert isinstance(value, DenseIntOrFPElementsAttr)
        numbers = [int(number) for number in cast(Any, value).get_values()]
    if len(numbers) == 1:
        array = np.full((1,) * (len(shape) + 1), numbers[0], np.int64)
    else:
        array = np.array(numbers, np.int64).reshape((1, *shape))
    return of_bits(array if bits == 1 else wrapped(array, bits), bits)


@rule(tt.GetProgramIdOp)
def _program_id(op: tt.GetProgramIdOp, _: Sequence[Any], here: Here) -> Value:
    return Number((here.programs.ids[op.axis.value.data],), 32)


@rule(tt.GetNumProgramsOp)
def _num_programs(op: tt.GetNumProgramsOp, _: Sequence[Any], here: Here) -> Value:
    return constant(here.programs.grid[op.axis.value.data], bits=32)


@rule(tt.MakeRangeOp)
def _make_range(op: tt.MakeRangeOp, _: Sequence[Any], __: Here) -> Value:
    return Number((np.arange(op.start.value.data, op.end.value.data, dtype=np.int64)[None],), 32)


# --- shapes ------------------------------------------------------------------------------------------------------


@rule(tt.SplatOp)
def _splat(op: tt.SplatOp, operands: Sequence[Any], _: Here) -> Value:
    ones = (1,) * len(shape_of(op.result.type))
    return mapped(operands[0], lambda array: array.reshape((-1, *ones)))


@rule(tt.UnsplatOp)
def _unsplat(_: tt.UnsplatOp, operands: Sequence[Any], __: Here) -> Value:
    return mapped(operands[0], lambda array: array.reshape(-1))


@rule(tt.ExpandDimsOp)
def _expand_dims(op: tt.ExpandDimsOp, operands: Sequence[Any], _: Here) -> Value:
    return mapped(operands[0], lambda array: np.expand_dims(array, op.axis.value.data + 1))


@rule(tt.BroadcastOp, ttg.ConvertLayoutOp)
def _same(_: Operation, operands: Sequence[Any], __: Here) -> Value:
    # What is equal along an axis has one element there anyway.
    return operands[0]


@rule(tt.TransOp)
def _trans(op: tt.TransOp, operands: Sequence[Any], _: Here) -> Value:
    order = (0, *(int(dim) + 1 for dim in op.order.get_values()))
    return mapped(operands[0], lambda array: array.transpose(order))


@rule(tt.ReshapeOp)
def _reshape(op: tt.ReshapeOp, operands: Sequence[Any], _: Here) -> Value:
    if op.allow_reorder is not None:
        return Unknown("it passes a reshape that may reorder elements")
    source, result = shape_of(op.src.type), shape_of(op.result.type)
    ones = (1,) * len(result)

    def reshaped(array: Any) -> Any:
        if all(size == 1 for size in array.shape[1:]):
            return array.reshape((-1, *ones))
        return np.broadcast_to(array, (len(array), *source)).reshape((len(array), *result))

    return mapped(operands[0], reshaped)


# --- pointers and descriptors ------------------------------------------------------------------------------------


@rule(tt.AddPtrOp)
def _addptr(op: tt.AddPtrOp, operands: Sequence[Any], _: Here) -> Value:
    pointer, index = operands
    if isinstance(index, Truth):
        return Unknown("a pointer is moved by a single bit")
    # The index is widened first: bytes do not wrap around in its type.
    size = constant(bytes_of(pointee_type(op.ptr.type)), index.parts[0].ndim - 1)
    wide = times(Number(index.parts, 64), size)
    offset = wide if isinstance(wide, Unknown) else plus(pointer.offset, wide)
    return offset if isinstance(offset, Unknown) else Pointer(pointer.base, offset)


@rule(tt.BitcastOp)
def _bitcast(_: tt.BitcastOp, operands: Sequence[Any], __: Here) -> Value:
    return operands[0] if isinstance(operands[0], Pointer) else Unknown("its bits are reinterpreted")


@rule(tt.MakeTensorDescOp)
def _describe(op: Any, operands: Sequence[Any], _: Here) -> Value:
    rank = len(op.shape)
    return Descriptor(operands[0], tuple(operands[1 : 1 + rank]), tuple(operands[1 + rank :]))


@rule(tlx.MakeTensorDescOp)
def _describe_there(op: Any, operands: Sequence[Any], here: Here) -> Value:
    return _describe(op, operands[1:], here)
