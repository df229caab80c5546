"""Lowering of loads from and stores to buffers.

A block has no layout in the frontend. Where a layout is asked for, or tensor memory dictates a family of them, the
block passes through `tlx.require_layout` or `tlx.release_layout`: the passes see the request there, and every other
operation stays free of layouts.
"""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from tlx_xdsl.dialects import tlx as dialect, ttg, ttng
from tlx_xdsl.language.core import dtype, int1
from tlx_xdsl.layouts.encodings import Ints
from tlx_xdsl.targets import Feature

from .. import semantic
from ..builder import unit
from ..calls import Call, lowers
from ..types import ir_type
from ..values import AsyncToken, BufferedTensor, Constexpr, Tensor, Value
from .tlx_common import (
    elements_like,
    in_tensor_memory,
    one_buffer,
    shared_buffer,
    tensor_memory_buffer,
)
from .tlx_encodings import dummy_register, python_layout, register_type
from .tlx_views import tmem_part


def required(call: Call, value: Tensor, type_: TensorType, *, pin: bool) -> SSAValue:
    """`value` in the layout of `type_`."""
    return call.emit(dialect.RequireLayoutOp, value, results=[type_], pin=unit(pin)).result


def released(call: Call, ssa: SSAValue, element: dtype, shape: Ints, *, pin: bool) -> Tensor:
    """A block with a layout as a value of the frontend; with `pin`, what computes with it keeps to that layout."""
    return call.emit_tensor(dialect.ReleaseLayoutOp, element, shape, ssa, pin=unit(pin))


def in_layout(call: Call, value: Tensor, *, pin: bool = True) -> Tensor:
    """`value` in the layout that the argument `layout` names; `value` itself when it is None."""
    layout = python_layout(call, "layout")
    if layout is None:
        return value
    assert isinstance(value.dtype, dtype)
    type_ = register_type(call, layout, value.shape, value.dtype)
    return released(call, required(call, value, type_, pin=pin), value.dtype, value.shape, pin=pin)


def _token(call: Call) -> SSAValue | None:
    return call.of("token", AsyncToken, "an async_token").ssa if call.given("token") else None


@lowers("tlx.local_load")
def _local_load(call: Call) -> Value:
    buffer, token = one_buffer(call, "src"), _token(call)
    for hint in ("relaxed", "rematerialize_coordinates"):
        call.flag(hint)
    if in_tensor_memory(buffer):
        if token is not None:
            call.fail("token", "a load from tensor memory waits for no copy group: wait for an mbarrier instead")
        return in_layout(call, _tmem_load(call, buffer))
    return in_layout(call, call.emit_tensor(ttg.LocalLoadOp, buffer.dtype, buffer.shape, buffer, token))


def _tmem_type(buffer: BufferedTensor) -> TensorType:
    """A block like `buffer`, in a layout that tensor memory can be loaded into and stored from."""
    encoding = dummy_register(buffer.shape, buffer.dtype, tmem_compatible=True)
    return TensorType(ir_type(buffer.dtype), buffer.shape, encoding)


def _tmem_load(call: Call, buffer: BufferedTensor) -> Tensor:
    op = call.emit(ttng.TMEMLoadOp, buffer, None, results=[_tmem_type(buffer), None, None])
    return released(call, op.result, buffer.dtype, buffer.shape, pin=False)


@lowers("tlx.local_store")
def _local_store(call: Call) -> None:
    buffer = one_buffer(call, "dst")
    source = elements_like(call, "src", buffer)
    if in_tensor_memory(buffer):
        block = required(call, source, _tmem_type(buffer), pin=False)
        always = call.as_scalar("dst", Constexpr(True), int1)
        call.emit(ttng.TMEMStoreOp, buffer, None, block, always, results=[None])
        return
    call.emit(ttg.LocalStoreOp, source, buffer)


def _indices(call: Call) -> Tensor:
    indices = call.block("indices", "a block of integers")
    if not isinstance(indices.dtype, dtype) or not indices.dtype.is_int():
        call.expected("indices", "a block of integers")
    return indices


@lowers("tlx.local_gather")
def _local_gather(call: Call) -> Value:
    buffer, indices = shared_buffer(call, "src"), _indices(call)
    return call.emit_tensor(
        ttg.LocalGatherOp,
        buffer.dtype,
        indices.shape,
        buffer,
        indices,
        _token(call),
        axis=call.integer("axis", minimum=0),
    )


@lowers("tlx.local_scatter")
def _local_scatter(call: Call) -> None:
    buffer, indices = shared_buffer(call, "dst"), _indices(call)
    source = call.block("src")
    call.emit(ttg.LocalScatterOp, buffer, source, indices, _token(call), axis=call.integer("axis", minimum=0))


@lowers("tlx.tmem_copy")
def _tmem_copy(call: Call) -> None:
    call.require(Feature.TENSOR_MEMORY)
    source, target = shared_buffer(call, "src"), tensor_memory_buffer(call, "dst")
    if source.dtype != target.dtype:
        call.fail("dst", f"'dst' must hold elements of type {source.dtype}, found {target.describe()}")
    if source.dtype.primitive_bitwidth == 8 and _is_image(source.shape, target.shape):
        # Each of the four warps gets all lines: they are the first scales of `dst`, a quarter of it.
        target = tmem_part(call, target, 1, 0, target.shape[1] // WARPS)
    call.emit(ttng.TMEMCopyOp, source, target)


@lowers("tlx.tmem_shift")
def _tmem_shift(call: Call) -> None:
    call.emit(dialect.TMEMShiftOp, tensor_memory_buffer(call, "src"))


WARPS = 4
"""That a copy of scales is for (PTX ISA, "tcgen05.cp", `.warpx4`)."""


def _is_image(lines: Ints, target: Ints) -> bool:
    """True if a buffer of 128 rows is as many bytes in tensor memory as `lines` of 16 bytes are, once for each warp."""
    if len(lines) != 2 or lines[1] != 16 or lines[0] % 32:
        return False
    return target == (128, lines[0] // 2)


@lowers("tlx.zeros")
def _zeros(call: Call) -> Value:
    return in_layout(call, semantic.full(call.builder, call.shape(), Constexpr(0), call.dtype()))
