"""Bulk copies of bytes that follow each other (PTX ISA, "cp.async.bulk")."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.dialects import tlx
from tlx_xdsl.dialects.tlx.copies import BULK_BYTES
from tlx_xdsl.interpreter.engine import Transfer
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.interpreter.machine import Task
from tlx_xdsl.interpreter.memory import View
from tlx_xdsl.interpreter.ops.barriers import barrier_of, deliver, touch
from tlx_xdsl.interpreter.ops.tma import load_queue, store_queue
from tlx_xdsl.interpreter.registry import action


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
