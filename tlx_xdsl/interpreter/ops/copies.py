"""Asynchronous copies by the threads themselves (PTX ISA, "cp.async").

They write through the generic proxy, so that TMA and the tensor cores need a proxy fence. Triton 3.6 to 3.8 put none
into their own kernels, only 3.9 does: it is asked for by `tlx check` alone (`Launch.fences_copies`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.dialects import tlx, ttg, ttng
from tlx_xdsl.numerics.arrays import Array

from ..engine import Queue, Transfer
from ..faults import fault_at
from ..machine import Task
from ..memory import View
from ..registry import Coroutine, action, blocking
from .barriers import arrive_later, deliver, usable_barrier
from .tma import barrier_queue, memory_of_store, store_queue


def _queue(task: Task) -> Queue:
    return task.queue("cp.async", in_order=False)


@action(ttg.AsyncCopyGlobalToLocalOp)
def async_copy(task: Task, op: ttg.AsyncCopyGlobalToLocalOp, addresses: Array, target: View, *rest: Any) -> None:
    """Addresses and mask are taken when it is issued, memory is read later. Masked elements become `other` or 0."""
    mask = None if op.mask is None else rest[0]
    other = np.zeros((), target.dtype) if op.other is None else rest[-1]
    # A wild address is reported at once.
    task.cluster.launch.memory.load(op, addresses, target.dtype, mask, other)
    queue = _queue(task)
    actor = replace(queue.actor(op), is_async=False)
    memory = task.global_memory.issued(actor, task.clock)
    target.cell.overwrite(actor, queue.knowledge(task.clock), target.name)
    task.issue(queue, op, lambda _transfer: target.write(memory.load(op, addresses, target.dtype, mask, other)))


@action(ttg.AsyncCommitGroupOp)
def commit_group(task: Task, op: ttg.AsyncCommitGroupOp, *_tokens: Any) -> None:
    """The copies since the last commit become a group."""
    task.groups.append(_queue(task).issued)


@blocking(ttg.AsyncWaitOp)
def async_wait(task: Task, op: ttg.AsyncWaitOp, *_tokens: Any) -> Coroutine:
    """Wait until at most `num` groups are in flight."""
    count = op.num.value.data
    if len(task.groups) > count:
        number, is_generic = task.groups[len(task.groups) - count - 1], task.cluster.launch.fences_copies
        yield from task.wait_for(_queue(task), number, op, is_generic=is_generic)


@action(ttng.AsyncCopyMbarrierArriveOp)
def mbarrier_arrive(task: Task, op: ttng.AsyncCopyMbarrierArriveOp, view: View) -> None:
    """The threads arrive when their copies so far are complete, on top of the expected arrivals or as some of them."""
    copies = _queue(task)
    number = copies.issued
    barrier = usable_barrier(task, op, view)
    if op.no_increment is None:
        barrier.pending += task.threads

    def finish(transfer: Transfer) -> None:
        # The copies must be over first.
        for copy in [copy for copy in copies.pending if copy.number <= number]:
            copy.complete()
        if not copies.pending:
            task.cluster.busy.pop(copies, None)
        observe = barrier.gathering.see if task.cluster.launch.fences_copies else barrier.gathering.observe
        observe(copies.agent, number)
        arrive_later(task, transfer, view, task.threads)

    task.issue(task.queue("arrival of cp.async", in_order=True), op, finish)


# Bulk copies of bytes that follow each other (PTX ISA, "cp.async.bulk") ----------------------------------------------


def _check(op: Operation, address: int, view: View, size: int) -> None:
    """Check the alignment and the size of a copy.

    Raises Fault where the hardware cannot make it.
    """
    for what, number in (("address", address), ("buffer's address", view.address), ("size", size)):
        if number % tlx.BULK_BYTES:
            raise fault_at(op, f"misaligned bulk copy: the {what} is {number}, no multiple of {tlx.BULK_BYTES} bytes")
    held = sum(end - start for start, end in view.footprint.intervals)
    if not 0 < size <= held:
        raise fault_at(op, f"a bulk copy of {size} bytes, the buffer '{view.name}' has {held}")


@action(tlx.AsyncBulkLoadOp)
def start_bulk_load(
    task: Task, op: Operation, address: np.int64 | int, target: View, size: np.int32 | int, barrier: View
) -> None:
    """Issue a copy of `size` bytes to `target`, which complete on `barrier`.

    They arrive some time, in the order of their addresses.
    """
    start, count = int(address), int(size)
    _check(op, start, target, count)
    # A wild address is reported at once.
    task.cluster.launch.memory.bytes_at(op, start, count, "bulk load")
    usable_barrier(task, op, barrier)
    queue = barrier_queue(task, "TMA load", barrier)
    memory = task.global_memory.issued(queue.actor(op), task.clock)
    target.cell.overwrite(queue.actor(op), queue.knowledge(task.clock), target.name)

    def finish(transfer: Transfer) -> None:
        target.write_raw(memory.bytes_at(op, start, count, "bulk load"))
        deliver(task, transfer, barrier, count)

    task.issue(queue, op, finish)


@action(tlx.AsyncBulkStoreOp)
def start_bulk_store(task: Task, op: Operation, source: View, address: np.int64 | int, size: np.int32 | int) -> None:
    """Issue a copy of the first `size` bytes of `source`.

    They are read some time; the waits for TMA stores count it.
    """
    start, count = int(address), int(size)
    _check(op, start, source, count)
    task.cluster.launch.memory.bytes_at(op, start, count, "bulk store")
    queue = store_queue(task)
    memory = memory_of_store(task, queue, op)
    source.cell.read(queue.actor(op), queue.knowledge(task.clock), source.name)

    def finish(_transfer: Transfer) -> None:
        memory.bytes_at(op, start, count, "bulk store")[:] = source.raw(op, count)

    task.issue(queue, op, finish)
