"""Semaphores of the own core and of others: words at one address in the memories of all cores."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import i32
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.text.diagnostics import error_at

from ..dialects.ttkernel import noc
from ..dialects.ttkernel.base import L1AddressPointerType, NocAddressType, SemaphoreType
from ..dialects.ttl.pipes import (
    ADDRESS_UNIT,
    PUBLISHED,
    CreateSemaphoreOp,
    SemaphoreIncOp,
    SemaphoreOp,
    SemaphorePublishOp,
    SemaphoreSetOp,
    SemaphoreWaitEqOp,
    SemaphoreWaitMinOp,
    SemaphoreWaitPublishedOp,
)
from .coordinates import multicast_address, virtual_of
from .thread_function import Number, ThreadFunction, integer, known


def lower_semaphore(thread: ThreadFunction, op: SemaphoreOp) -> None:
    """Emit the calls for an operation on a semaphore, before it."""
    emit = thread.emitter(op)
    match op:
        case SemaphoreWaitEqOp():
            emit.add_op(noc.NocSemaphoreWaitOp(operands=[_own_word(thread, op), op.value]))
        case SemaphoreWaitMinOp():
            emit.add_op(noc.NocSemaphoreWaitMinOp(operands=[_own_word(thread, op), op.value]))
        case SemaphoreSetOp(coordinates=()):
            emit.add_op(noc.NocSemaphoreSetOp(operands=[_own_word(thread, op), op.value]))
        case SemaphoreSetOp():
            _set_others(thread, op)
            # The own word is what is copied: the thread may change it later.
            emit.add_op(noc.NocAsyncWriteBarrierOp())
        case SemaphoreIncOp():
            _increment(thread, op, op.value)
        case SemaphorePublishOp():
            units = emit.div(op.value, ADDRESS_UNIT, i32)
            _increment(thread, op, emit.i32(emit.add(units, PUBLISHED, i32)))
        case SemaphoreWaitPublishedOp():
            _wait_published(thread, op)
        case _:
            raise error_at(op, f"'{op.name}' can't be lowered: expected to wait for, to set or to increase a semaphore")


def _increment(thread: ThreadFunction, op: SemaphoreOp, value: SSAValue) -> None:
    emit = thread.emitter(op)
    core = [known(each) for each in op.coordinates]
    # The network on chip is the only one that adds, also to the own word.
    address = _address(thread, op, (core[0], core[1])) if core else _own_address(thread, op)
    emit.add_op(noc.NocSemaphoreIncOp(operands=[address, value]))
    # Nothing that the thread does later shall come before it.
    emit.add_op(noc.NocAsyncAtomicBarrierOp())


def _wait_published(thread: ThreadFunction, op: SemaphoreWaitPublishedOp) -> None:
    """Wait for the count in the upper bits; the mean of the lower ones is the address."""
    emit, word = thread.emitter(op), _own_word(thread, op)
    count = known(op.value)
    assert isinstance(count, int), "a pipe has a number of receivers"
    emit.add_op(noc.NocSemaphoreWaitMinOp(operands=[word, emit.i32(count * PUBLISHED)]))
    reported = emit.result(noc.SemaphoreValueOp(operands=[word], result_types=[i32]))
    emit.add_op(noc.NocSemaphoreSetOp(operands=[word, emit.i32(0)]))
    units = emit.div(emit.sub(reported, count * PUBLISHED, i32), count, i32)
    op.result.replace_all_uses_with(emit.index(emit.mul(units, ADDRESS_UNIT, i32)))


def _set_others(thread: ThreadFunction, op: SemaphoreSetOp) -> None:
    emit = thread.emitter(op)
    semaphore = _semaphore(thread, op)
    corners = [known(each) for each in op.coordinates]
    if len(corners) == 2 or corners[:2] == corners[2:]:
        # A multicast to one core may never end on the hardware.
        address = _address(thread, op, (corners[0], corners[1]))
        emit.add_op(noc.NocSemaphoreSetRemoteOp(operands=[semaphore, address]))
        return
    x0, y0, x1, y1 = corners
    address = multicast_address(thread, op, (x0, y0), (x1, y1), _word(thread, op))
    width, height = (emit.add(emit.sub(last, first), 1) for first, last in ((x0, x1), (y0, y1)))
    count = emit.i32(emit.mul(width, height))
    class_ = noc.NocSemaphoreSetMulticastOp if op.loopback is None else noc.NocSemaphoreSetMulticastLoopbackSrcOp
    emit.add_op(class_(operands=[semaphore, address, count]))


def _address(thread: ThreadFunction, op: SemaphoreOp, core: tuple[Number, Number]) -> SSAValue:
    """The address of the semaphore in the memory of a core."""
    operands = [*virtual_of(thread, op, core), _word(thread, op)]
    return thread.emitter(op).result(noc.GetNocAddrOp(operands=operands, result_types=[NocAddressType()]))


def _own_address(thread: ThreadFunction, op: SemaphoreOp) -> SSAValue:
    """The address of the core's own semaphore on the network on chip."""
    operands = [*thread.virtual(op), _word(thread, op)]
    return thread.emitter(op).result(noc.GetNocAddrOp(operands=operands, result_types=[NocAddressType()]))


def _index(thread: ThreadFunction, op: SemaphoreOp) -> int:
    create = thread.origin(op.semaphore).owner
    if not isinstance(create, CreateSemaphoreOp) or create.index is None:
        raise error_at(op, "expected a semaphore of the kernel: create it outside of the threads")
    return create.index.value.data


def _hoisted(thread: ThreadFunction, op: SemaphoreOp, what: str, make: Callable[[], Operation]) -> SSAValue:
    return thread.hoisted((what, _index(thread, op)), op, lambda emit: emit.result(make()))


def _semaphore(thread: ThreadFunction, op: SemaphoreOp) -> SSAValue:
    index = integer(_index(thread, op))
    make = lambda: noc.GetSemaphoreOp(properties={"index": index}, result_types=[SemaphoreType()])  # noqa: E731
    return _hoisted(thread, op, "semaphore", make)


def _own_word(thread: ThreadFunction, op: SemaphoreOp) -> SSAValue:
    semaphore = _semaphore(thread, op)
    make = lambda: noc.CastToL1PtrOp(operands=[semaphore], result_types=[L1AddressPointerType()])  # noqa: E731
    return _hoisted(thread, op, "pointer", make)


def _word(thread: ThreadFunction, op: SemaphoreOp) -> SSAValue:
    """The address of the word, which is the same on all cores."""
    semaphore = _semaphore(thread, op)
    make = lambda: noc.SemaphoreAddressOp(operands=[semaphore], result_types=[i32])  # noqa: E731
    return _hoisted(thread, op, "address", make)
