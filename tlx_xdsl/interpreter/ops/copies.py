"""Asynchronous copies by the threads themselves (PTX ISA, "cp.async").

What they write needs no proxy fence before the tensor cores read it: Triton 3.6 to 3.8 put none into their own kernels,
only 3.9 does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.dialects import tlx, ttg, ttng
from tlx_xdsl.dialects.tlx.copies import BULK_BYTES
from tlx_xdsl.interpreter.engine import Queue, Transfer
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.interpreter.machine import Task
from tlx_xdsl.interpreter.memory import View
from tlx_xdsl.interpreter.ops.barriers import arrive_later, barrier_of, deliver, touch
from tlx_xdsl.interpreter.ops.tma import load_queue, store_queue
from tlx_xdsl.interpreter.registry import Coroutine, Run, action, step
from tlx_xdsl.numerics.arrays import Array


def _queue(task: Task) -> Queue:
    return task.queue("cp.async", in_order=False)


def _groups(task: Task) -> list[int]:
    """For each group that the task has committed, the number of its last copy."""
    return task.groups


@step(ttg.AsyncCopyGlobalToLocalOp)
def async_copy(op: ttg.AsyncCopyGlobalToLocalOp) -> Run:
    """Addresses and mask are taken when it is issued, memory is read later. Masked elements become `other` or 0."""
    has_mask, has_other = op.mask is not None, op.other is not None

    def run(task: Task, addresses: Array, target: View, *rest: Any) -> Coroutine:
        yield None
        mask = rest[0] if has_mask else None
        other = rest[-1] if has_other else np.zeros((), target.dtype)
        memory = task.block.cluster.launch.memory
        # A wild address is reported at once.
        memory.load(op, addresses, target.dtype, mask, other)
        queue = _queue(task)
        actor = replace(queue.actor(op), is_async=False)
        target.cell.overwrite(actor, queue.knowledge(task.clock), target.name)
        task.issue(queue, op, lambda _transfer: target.write(memory.load(op, addresses, target.dtype, mask, other)))

    return run


@action(ttg.AsyncCommitGroupOp)
def commit_group(task: Task, op: ttg.AsyncCommitGroupOp, *_tokens: Any) -> None:
    """The copies since the last commit become a group."""
    _groups(task).append(_queue(task).issued)


@step(ttg.AsyncWaitOp)
def async_wait(op: ttg.AsyncWaitOp) -> Run:
    """Until at most `num` groups are in flight."""
    count = op.num.value.data

    def run(task: Task, *_tokens: Any) -> Coroutine:
        groups = _groups(task)
        if len(groups) > count:
            yield from task.wait_for(_queue(task), groups[len(groups) - count - 1], op)

    return run


@step(ttng.AsyncCopyMbarrierArriveOp)
def mbarrier_arrive(op: ttng.AsyncCopyMbarrierArriveOp) -> Run:
    """The threads arrive when their copies so far are complete, on top of the expected arrivals or as some of them."""
    increments = op.no_increment is None

    def run(task: Task, view: View) -> Coroutine:
        yield None
        touch(task, op, view)
        copies = _queue(task)
        number = copies.issued
        barrier = barrier_of(op, view)
        if increments:
            barrier.pending += task.threads
        queue = task.queue("arrival of cp.async", in_order=True)

        def finish(transfer: Transfer) -> None:
            # The copies must be over first.
            for copy in [copy for copy in copies.pending if copy.number <= number]:
                copy.complete()
            _forget(task, copies)
            barrier.gathering.observe(copies.agent, number)
            arrive_later(task, transfer, view, task.threads)

        task.issue(queue, op, finish)

    return run


def _forget(task: Task, queue: Queue) -> None:
    if not queue.pending:
        task.block.cluster.busy.pop(queue, None)


# Bulk copies of bytes that follow each other (PTX ISA, "cp.async.bulk") ----------------------------------------------


def _check(op: Operation, address: int, view: View, size: int) -> None:
    """Check the alignment and the size of a copy.

    Raises Fault where the hardware cannot make it.
    """
    for what, number in (("address", address), ("buffer's address", view.address), ("size", size)):
        if number % BULK_BYTES:
            raise fault_at(op, f"misaligned bulk copy: the {what} is {number}, no multiple of {BULK_BYTES} bytes")
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
    memory = task.block.cluster.launch.memory
    _check(op, start, target, count)
    # A wild address is reported at once.
    memory.bytes_at(op, start, count, "bulk load")
    touch(task, op, barrier)
    barrier_of(op, barrier)
    queue = load_queue(task, barrier)
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
    memory = task.block.cluster.launch.memory
    _check(op, start, source, count)
    memory.bytes_at(op, start, count, "bulk store")
    queue = store_queue(task)
    source.cell.read(queue.actor(op), queue.knowledge(task.clock), source.name)

    def finish(_transfer: Transfer) -> None:
        memory.bytes_at(op, start, count, "bulk store")[:] = source.raw(op, count)

    task.issue(queue, op, finish)
