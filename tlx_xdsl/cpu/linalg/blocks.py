"""Blocks made of scalars and positions, as operations of `tt` before another one."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, IntegerType, TensorType, i32
from xdsl.ir import Attribute, Operation, SSAValue

from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.dialects.base import scalar_type, shape_of_tensor
from tlx_xdsl.layouts.encodings import Ints
from tlx_xdsl.transforms.rewriting import insert_before


def splat(op: Operation, value: SSAValue, shape: Ints) -> SSAValue:
    """A scalar in all elements."""
    return splat_as(op, value, TensorType(value.type, shape))


def splat_as(op: Operation, value: SSAValue, type_: Attribute) -> SSAValue:
    """A scalar in all elements of a tensor of that type, which may have a layout."""
    return insert_before(op, tt.SplatOp.create(operands=[value], result_types=[type_])).result


def positions(op: Operation, size: int, type_: IntegerType) -> SSAValue:
    """The numbers from 0 to `size - 1`."""
    bounds = {"start": IntegerAttr(0, i32), "end": IntegerAttr(size, i32)}
    numbers = insert_before(op, tt.MakeRangeOp.create(result_types=[TensorType(i32, [size])], properties=bounds)).result
    if type_ == i32:
        return numbers
    cast = arith.ExtSIOp if type_.width.data > i32.width.data else arith.TruncIOp
    return insert_before(op, cast(numbers, type_)).result


def spread(op: Operation, value: SSAValue, dim: int, block: Ints) -> SSAValue:
    """Values along one dimension as a block."""
    element = scalar_type(value.type)
    shape = [block[dim]]
    for axis in range(len(block)):
        if axis == dim:
            continue
        shape.insert(axis, 1)
        expanded = tt.ExpandDimsOp.create(
            operands=[value], result_types=[TensorType(element, shape)], properties={"axis": IntegerAttr(axis, i32)}
        )
        value = insert_before(op, expanded).result
    if tuple(shape) == block:
        return value
    spread = tt.BroadcastOp.create(operands=[value], result_types=[TensorType(element, block)])
    return insert_before(op, spread).result


def reshaped(op: Operation, value: SSAValue, shape: Ints) -> SSAValue:
    """The elements in another shape; the value itself where it has that."""
    if shape_of_tensor(value.type) == shape:
        return value
    type_ = TensorType(scalar_type(value.type), shape)
    return insert_before(op, tt.ReshapeOp.create(operands=[value], result_types=[type_])).result
