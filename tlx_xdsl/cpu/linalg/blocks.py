"""Blocks made of scalars and positions, as operations of `tt` before another one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith as upstream
from xdsl.dialects.builtin import IntegerAttr, IntegerType, TensorType, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.dialects.base import scalar_type, shape_of_tensor
from tlx_xdsl.layouts.encodings import Ints
from tlx_xdsl.transforms.rewriting import constant, insert_before


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


def wide(op: Operation, value: SSAValue) -> SSAValue:
    """An integer in 64 bits."""
    return value if value.type == i64 else insert_before(op, arith.ExtSIOp(value, i64)).result


@dataclass(frozen=True)
class Strided:
    """A tensor in memory."""

    base: SSAValue
    """A pointer."""
    shape: tuple[SSAValue, ...]
    """i32 or i64."""
    strides: tuple[SSAValue, ...]
    """i64, in elements."""


def elements(
    op: Operation,
    tensor: Strided,
    pointer: Attribute,
    places: Sequence[SSAValue],
    block: Ints,
    checked: Collection[int],
) -> tuple[SSAValue, SSAValue | None]:
    """The pointers to elements with these places (i64) along each dimension, and which are inside.

    Only along the dimensions `checked` some may be outside; without any there is no mask.
    """
    offset: SSAValue | None = None
    mask: SSAValue | None = None
    for dim, (place, size, stride) in enumerate(zip(places, tensor.shape, tensor.strides, strict=True)):
        extent = (block[dim],)
        if dim in checked:
            low = arith.CmpiOp("sge", place, insert_before(op, constant(0, TensorType(i64, extent))).result)
            high = arith.CmpiOp("slt", place, splat(op, wide(op, size), extent))
            inside = upstream.AndIOp(insert_before(op, low).result, insert_before(op, high).result)
            bits = spread(op, insert_before(op, inside).result, dim, block)
            mask = bits if mask is None else insert_before(op, upstream.AndIOp(mask, bits)).result
        moved = spread(op, insert_before(op, upstream.MuliOp(place, splat(op, stride, extent))).result, dim, block)
        offset = moved if offset is None else insert_before(op, upstream.AddiOp(offset, moved)).result
    assert offset is not None, "a block has dimensions"
    bases = splat_as(op, tensor.base, TensorType(pointer, block))
    return insert_before(op, tt.AddPtrOp(bases, offset)).result, mask


def block_places(op: Operation, firsts: Sequence[SSAValue], block: Ints) -> list[SSAValue]:
    """The places (i64) along each dimension of the block that begins at `firsts`."""
    return [
        insert_before(op, upstream.AddiOp(splat(op, wide(op, first), (size,)), positions(op, size, i64))).result
        for first, size in zip(firsts, block, strict=True)
    ]
