"""Lowering of the views of buffers: other shapes, parts and element types of the same memory."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation

from tlx_xdsl.dialects import tlx as dialect, ttg, ttng
from tlx_xdsl.dialects.base import layout_attr, layout_of, like
from tlx_xdsl.dialects.ttg import MemDescType, memdesc_type
from tlx_xdsl.errors import InputError
from tlx_xdsl.layouts.buffer_views import transposed_buffer_layout
from tlx_xdsl.layouts.encodings import (
    Ints,
    NvmmaSharedLayout,
    PaddedSharedLayout,
    SharedLayout,
    SharedLinearLayout,
    SwizzledSharedLayout,
)
from tlx_xdsl.layouts.shared import bytes_of
from tlx_xdsl.targets import Feature

from ..attributes import view
from ..builder import Operand
from ..calls import Call, lowers
from ..types import ir_type
from ..values import (
    BufferedTensor,
    ClcResponses,
    Constexpr,
    DescriptorRoom,
    MBarriers,
    Value,
)
from .tlx_common import (
    in_tensor_memory,
    one_buffer,
    reshaped,
    shared_buffer,
    tensor_memory_buffer,
)
from .tlx_encodings import chosen, shared_encoding, tmem_encoding


@lowers("tlx.local_view")
def _local_view(call: Call) -> Value:
    buffers = call.args["local_allocated_buffers"]
    if not isinstance(buffers, BufferedTensor | MBarriers | ClcResponses | DescriptorRoom):
        call.expected("local_allocated_buffers", "an array of buffers or mbarriers")
    return view(call.visitor, call.node, buffers, call.args["buffer_idx"])


# --- parts ----------------------------------------------------------------------------------------------------------


@lowers("tlx.subslice")
def _subslice(call: Call) -> Value:
    call.require(Feature.TENSOR_MEMORY)
    buffer = tensor_memory_buffer(call, "local_allocated_buffer")
    offset, size = call.integer("offset", minimum=0), call.integer("size", minimum=1)
    return tmem_part(call, buffer, len(buffer.shape) - 1, offset, size)


def tmem_part(call: Call, buffer: BufferedTensor, dim: int, offset: int, size: int) -> BufferedTensor:
    """Elements `offset` and following of dimension `dim` of a buffer in tensor memory."""
    source = memdesc_type(buffer.ssa.type)
    shape = (*buffer.shape[:dim], size, *buffer.shape[dim + 1 :])
    result = _part_type(source, shape)
    return _viewed(call, buffer, shape, result, ttng.TMEMSubSliceOp, offset=offset, dim=dim)


def _viewed(
    call: Call,
    buffer: BufferedTensor,
    shape: Ints,
    result: MemDescType,
    op: type[IRDLOperation],
    *operands: Operand,
    **properties: Any,
) -> BufferedTensor:
    """The view of `buffer` that `op` makes, of another shape and type."""
    made = call.emit(op, buffer, *operands, results=[result], **properties)
    return replace(buffer, ssa=made.results[0], shape=shape)


def _part_type(
    source: MemDescType,
    shape: Ints,
    allocated: Ints | None = None,
    encoding: Attribute | None = None,
) -> MemDescType:
    return MemDescType.get(
        shape,
        source.element_type,
        encoding or source.encoding,
        source.memory_space,
        mutable=source.is_mutable,
        alloc_shape=allocated or source.alloc_shape,
    )


@lowers("tlx.local_slice")
def _local_slice(call: Call) -> Value:
    buffer, shape = one_buffer(call, "buffer"), call.shape()
    if len(shape) != len(buffer.shape):
        call.fail("shape", f"'shape' must have the {len(buffer.shape)} dimensions of the buffer, found {list(shape)}")
    offsets = call.items("offset", f"a tuple of {len(shape)} offsets")
    if len(offsets) != len(shape):
        call.expected("offset", f"a tuple of {len(shape)} offsets")
    known = [item.value for item in offsets if isinstance(item, Constexpr) and isinstance(item.value, int)]
    if in_tensor_memory(buffer):
        if len(known) != len(shape):
            call.fail("offset", "a part of a buffer in tensor memory has constexpr offsets")
        for dim, (offset, size) in enumerate(zip(known, shape, strict=True)):
            if size != buffer.shape[dim] or offset:
                buffer = tmem_part(call, buffer, dim, offset, size)
        return buffer
    result = _part_type(memdesc_type(buffer.ssa.type), shape)
    if len(known) == len(shape):
        return _viewed(call, buffer, shape, result, ttg.MemDescSubsliceOp, offsets=known)
    return _viewed(
        call, buffer, shape, result, dialect.MemDescDynamicSubsliceOp, call.coordinates("offset", len(shape))
    )


# --- other shapes ---------------------------------------------------------------------------------------------------


@lowers("tlx.local_trans")
def _local_trans(call: Call) -> Value:
    buffer = shared_buffer(call, "input")
    order = call.integers("dims")
    if sorted(order) != list(range(len(buffer.shape))):
        call.fail("dims", f"'dims' must be a permutation of the {len(buffer.shape)} dimensions, found {list(order)}")
    shape = tuple(buffer.shape[dim] for dim in order)
    source = memdesc_type(buffer.ssa.type)
    try:
        layout = transposed_buffer_layout(_shared_layout(source), order)
    except InputError as error:
        call.fail("dims", str(error))
    # A part stays one: the extents of its allocation are permuted with its own. Those before them count buffers.
    count = len(source.alloc_shape) - len(shape)
    allocated = (*source.alloc_shape[:count], *(source.alloc_shape[count + dim] for dim in order))
    result = _part_type(source, shape, allocated, like(source.encoding, layout_attr(layout)))
    return _viewed(call, buffer, shape, result, ttg.MemDescTransOp, order=order)


def _shared_layout(buffer: MemDescType) -> SharedLayout:
    layout = layout_of(buffer.encoding)
    assert isinstance(layout, SwizzledSharedLayout | NvmmaSharedLayout | PaddedSharedLayout | SharedLinearLayout)
    return layout


@lowers("tlx.local_reshape")
def _local_reshape(call: Call) -> Value:
    buffer, shape = shared_buffer(call, "src"), call.shape()
    if prod(shape) != prod(buffer.shape):
        call.fail("shape", f"cannot reshape {list(buffer.shape)} to {list(shape)}: the number of elements must stay")
    return reshaped(call, "src", buffer, shape)


@lowers("tlx.local_reinterpret")
def _local_reinterpret(call: Call) -> Value:
    # All buffers of an array are contiguous: together they are one buffer.
    buffer, element = call.of("src", BufferedTensor, "a buffer"), call.dtype()
    if not call.given("shape"):
        buffer = one_buffer(call, "src")
    shape = call.shape() if call.given("shape") else buffer.shape
    num = call.integer("num")
    if num < 0:
        call.fail("num", f"'num' must not be negative, found {num}")
    source = memdesc_type(buffer.ssa.type)
    have = bytes_of(max(buffer.num, 1) * prod(buffer.shape), buffer.dtype.primitive_bitwidth)
    need = bytes_of(max(num, 1) * prod(shape), element.primitive_bitwidth)
    if need > have:
        what = "buffers have" if buffer.num > 1 else "buffer has"
        wanted = f"{element}[{', '.join(map(str, shape))}]"
        wanted = f"{num} of {wanted} take" if num else f"{wanted} takes"
        call.fail("src", f"the {what} {have} bytes, {wanted} {need}")
    if num and in_tensor_memory(buffer):
        call.fail("num", "an array of buffers is a view of shared memory only")
    if in_tensor_memory(buffer):
        encoding = tmem_encoding(call, "layout", shape, element)
    else:
        encoding = shared_encoding(call, "layout", shape, element)
    result = MemDescType.get(
        (num, *shape) if num else shape,
        ir_type(element),
        chosen(call, "layout", encoding) if call.flag("pin") else encoding,
        source.memory_space,
        mutable=source.is_mutable,
    )
    return BufferedTensor(call.emit(ttg.MemDescReinterpretOp, buffer, results=[result]).result, element, shape, num)
