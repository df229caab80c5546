"""Operations of `ttkernel` as methods of objects: the form that TT-Metalium calls Device 2.0.

Circular buffers, semaphores and the thread's network are objects. A place on the network is no number there but an
endpoint with coordinates, which a transfer is given. What has no method is a call as in the other form.
"""

from __future__ import annotations

from functools import singledispatch

from xdsl.ir import SSAValue

from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import constant_integer
from tlx_xdsl.ttl.dialects import ttkernel
from tlx_xdsl.ttl.dialects.emitc.structure import VerbatimOp
from tlx_xdsl.ttl.dialects.ttkernel.base import TTKernelOp

from .calls import convert_call
from .conversion import ADDRESS, Conversion, opaque, opaque_value

_IN_L1 = "CoreLocalMem<uint32_t>({})"
_WITH_SOURCE = "<NocOptions::MCAST_INCL_SRC>"


@singledispatch
def convert_object(op: TTKernelOp, to: Conversion) -> None:
    """Emit the methods or calls that an operation is."""
    convert_call(op, to)


def emit_network(to: Conversion) -> None:
    """Make the object of the thread's network."""
    to.network = to.result("Noc", [], opaque("const Noc"))
    to.network.name_hint = "noc"


def _network(to: Conversion) -> SSAValue:
    assert to.network is not None, "a data movement thread has a network"
    return to.network


# --- circular buffers


@convert_object.register
def _buffer(op: ttkernel.GetCompileTimeArgValOp, to: Conversion) -> None:
    """In compute threads a buffer has a number, too: functions on tiles take it."""
    if to.has(op.result):
        return
    type_, callee = opaque("CircularBuffer"), "CircularBuffer"
    if to.is_compute:
        convert_call(op, to)
        number = to.value(op.result)
        steps = any(isinstance(use.operation, _STEPS) for use in op.result.uses)
        if steps:
            to.objects[op.result] = to.result(callee, [number], type_)
            to.objects[op.result].name_hint = f"{to.buffer_name(op)}_buffer"
        return
    number = opaque_value(f"get_compile_time_arg_val({op.index.value.data})")
    value = to.result(callee, [], type_, arguments=[number])
    value.name_hint = to.buffer_name(op)
    to.set(op.result, value)


_STEPS = (ttkernel.CBReserveBackOp, ttkernel.CBPushBackOp, ttkernel.CBWaitFrontOp, ttkernel.CBPopFrontOp)


@convert_object.register(ttkernel.CBReserveBackOp)
@convert_object.register(ttkernel.CBPushBackOp)
@convert_object.register(ttkernel.CBWaitFrontOp)
@convert_object.register(ttkernel.CBPopFrontOp)
def _step(op: TTKernelOp, to: Conversion) -> None:
    cb, pages = op.operands
    buffer = to.objects.get(cb) or to.value(cb)
    to.call(f".{op.name.removeprefix('ttkernel.cb_')}", [buffer, to.value(pages)])


@convert_object.register(ttkernel.GetReadPtrOp)
@convert_object.register(ttkernel.GetWritePtrOp)
def _pointer(op: ttkernel.GetReadPtrOp | ttkernel.GetWritePtrOp, to: Conversion) -> None:
    buffer = to.value(op.cb)
    way = op.name.removeprefix("ttkernel.get_")
    value = to.result(f".get_{way}", [buffer], ADDRESS)
    value.name_hint = op.result.name_hint or f"{buffer.name_hint}_{way}"
    to.set(op.result, value)


# --- transfers


def _statement(to: Conversion, text: str, *values: SSAValue) -> None:
    to.emit(VerbatimOp(text, [to.value(value) if to.has(value) else value for value in values]))


def _page(id_: SSAValue, offset: SSAValue | None) -> tuple[str, list[SSAValue]]:
    """The place of a page, and of bytes within it."""
    if offset is None or constant_integer(offset) == 0:
        return "{{uint32_t({})}", [id_]
    return "{{uint32_t({}), uint32_t({})}", [id_, offset]


@convert_object.register(ttkernel.NocAsyncReadPageOp)
@convert_object.register(ttkernel.NocAsyncReadTileOp)
def _read(op: ttkernel.NocAsyncReadPageOp | ttkernel.NocAsyncReadTileOp, to: Conversion) -> None:
    text, place = _page(op.id, op.offset if isinstance(op, ttkernel.NocAsyncReadPageOp) else None)
    text = f"{{}}.async_read({{}}, {_IN_L1}, {{}}.get_aligned_page_size(), {text}, {{{{}});"
    _statement(to, text, _network(to), op.accessor, op.l1_address, op.accessor, *place)


@convert_object.register(ttkernel.NocAsyncWritePageOp)
@convert_object.register(ttkernel.NocAsyncWriteTileOp)
def _write(op: ttkernel.NocAsyncWritePageOp | ttkernel.NocAsyncWriteTileOp, to: Conversion) -> None:
    text, place = _page(op.id, op.offset if isinstance(op, ttkernel.NocAsyncWritePageOp) else None)
    text = f"{{}}.async_write({_IN_L1}, {{}}, {{}}.get_aligned_page_size(), {{{{}}, {text});"
    _statement(to, text, _network(to), op.l1_address, op.accessor, op.accessor, *place)


@convert_object.register(ttkernel.NocAsyncReadBarrierOp)
@convert_object.register(ttkernel.NocAsyncWriteBarrierOp)
@convert_object.register(ttkernel.NocAsyncAtomicBarrierOp)
def _barrier(op: TTKernelOp, to: Conversion) -> None:
    to.call(f".{op.name.removeprefix('ttkernel.noc_')}", [_network(to)])


@convert_object.register(ttkernel.GetNocAddrOp)
@convert_object.register(ttkernel.GetNocMulticastAddrOp)
def _no_address(op: TTKernelOp, to: Conversion) -> None:
    """Emit nothing: transfers say where to."""


def _core(address: SSAValue, at: TTKernelOp) -> ttkernel.GetNocAddrOp:
    if not isinstance(address.owner, ttkernel.GetNocAddrOp):
        raise error_at(at, f"{at.name} with objects wants an address of ttkernel.get_noc_addr")
    return address.owner


def _cores(address: SSAValue, at: TTKernelOp) -> tuple[ttkernel.GetNocMulticastAddrOp, list[SSAValue]]:
    owner = address.owner
    if not isinstance(owner, ttkernel.GetNocMulticastAddrOp):
        raise error_at(at, f"{at.name} with objects wants an address of ttkernel.get_noc_multicast_addr")
    return owner, [owner.x_start, owner.y_start, owner.x_end, owner.y_end]


def _braces(count: int) -> str:
    return f"{{{{{', '.join(['uint32_t({})'] * count)}}}"


@convert_object.register
def _send(op: ttkernel.NocAsyncWriteOp, to: Conversion) -> None:
    there = _core(op.destination, op)
    text = f"{{}}.async_write({_IN_L1}, UnicastEndpoint(), {{}}, {{{{}}, {_braces(3)});"
    _statement(to, text, _network(to), op.source, op.bytes, there.x, there.y, there.l1_address)


@convert_object.register(ttkernel.NocAsyncWriteMulticastOp)
@convert_object.register(ttkernel.NocAsyncWriteMulticastLoopbackSrcOp)
def _multicast(
    op: ttkernel.NocAsyncWriteMulticastOp | ttkernel.NocAsyncWriteMulticastLoopbackSrcOp, to: Conversion
) -> None:
    there, corners = _cores(op.destination, op)
    template = _WITH_SOURCE if isinstance(op, ttkernel.NocAsyncWriteMulticastLoopbackSrcOp) else ""
    text = f"{{}}.async_write_multicast{template}({_IN_L1}, MulticastEndpoint(), {{}}, {{}}, {{{{}}, {_braces(5)});"
    _statement(to, text, _network(to), op.source, op.bytes, op.num_dests, *corners, there.l1_address)


# --- semaphores: their addresses and pointers are the objects


@convert_object.register
def _semaphore(op: ttkernel.GetSemaphoreOp, to: Conversion) -> None:
    number = opaque_value(str(op.index.value.data))
    value = to.result("Semaphore<>", [], opaque("Semaphore<>"), arguments=[number])
    value.name_hint = op.result.name_hint or f"semaphore{op.index.value.data}"
    to.set(op.result, value)


@convert_object.register(ttkernel.SemaphoreAddressOp)
@convert_object.register(ttkernel.CastToL1PtrOp)
def _same(op: ttkernel.SemaphoreAddressOp | ttkernel.CastToL1PtrOp, to: Conversion) -> None:
    to.set(op.result, to.value(op.semaphore))


@convert_object.register(ttkernel.NocSemaphoreSetOp)
@convert_object.register(ttkernel.NocSemaphoreWaitOp)
@convert_object.register(ttkernel.NocSemaphoreWaitMinOp)
def _local(op: TTKernelOp, to: Conversion) -> None:
    to.call(f".{op.name.removeprefix('ttkernel.noc_semaphore_')}", [to.value(each) for each in op.operands])


@convert_object.register
def _value(op: ttkernel.SemaphoreValueOp, to: Conversion) -> None:
    to.set(op.result, to.result(".value", [to.value(op.pointer)], ADDRESS))


@convert_object.register
def _increase(op: ttkernel.NocSemaphoreIncOp, to: Conversion) -> None:
    there = _core(op.address, op)
    where = [to.value(each) for each in (there.x, there.y, op.value)]
    to.call(".up", [to.value(there.l1_address), _network(to), *where])


@convert_object.register
def _relay(op: ttkernel.NocSemaphoreSetRemoteOp, to: Conversion) -> None:
    there = _core(op.address, op)
    operands = [to.value(each) for each in (there.l1_address, there.x, there.y)]
    to.call(".relay_unicast", [to.value(op.semaphore), _network(to), *operands])


@convert_object.register(ttkernel.NocSemaphoreSetMulticastOp)
@convert_object.register(ttkernel.NocSemaphoreSetMulticastLoopbackSrcOp)
def _relay_multicast(
    op: ttkernel.NocSemaphoreSetMulticastOp | ttkernel.NocSemaphoreSetMulticastLoopbackSrcOp, to: Conversion
) -> None:
    there, corners = _cores(op.address, op)
    loops = isinstance(op, ttkernel.NocSemaphoreSetMulticastLoopbackSrcOp)
    operands = [to.value(each) for each in (there.l1_address, *corners, op.num_dests)]
    template = [_WITH_SOURCE.strip("<>")] if loops else []
    to.call(".relay_multicast", [to.value(op.semaphore), _network(to), *operands], template=template)
