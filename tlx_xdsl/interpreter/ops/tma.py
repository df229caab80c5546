"""Copies by TMA between global and shared memory, and loads and stores of blocks through tensor descriptors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Operation

from tlx_xdsl.analysis.module_attrs import is_tile_copy
from tlx_xdsl.dialects import tt, ttng
from tlx_xdsl.dialects.base import is_set, shape_of_tensor
from tlx_xdsl.dialects.tt import DescriptorReduceKind, descriptor_type
from tlx_xdsl.numerics.arrays import Array, unsigned, where
from tlx_xdsl.numerics.elementwise import maximum, minimum

from ..descriptor import Descriptor
from ..engine import Queue, Transfer
from ..faults import fault_at
from ..global_memory import GlobalMemory
from ..machine import Task
from ..memory import View
from ..numbers import dtype_of
from ..registry import Coroutine, Run, action, blocking, immediate, step
from .barriers import deliver, usable_barrier

# Loads ---------------------------------------------------------------------------------------------------------------


@step(ttng.AsyncTMACopyGlobalToLocalOp)
def copy_to_local(op: ttng.AsyncTMACopyGlobalToLocalOp) -> Run:
    """The block arrives some time, and its bytes complete on the barrier."""
    rank = len(op.coord)

    def run(task: Task, desc: Descriptor, *rest: Any) -> Coroutine:
        yield None
        corner = [int(at) for at in rest[:rank]]
        barrier, target, pred = rest[-3:]
        if pred:
            desc.check_start(op, corner)
            start_load(task, op, desc, target, barrier, lambda memory: desc.load(op, memory, corner))

    return run


def start_load(
    task: Task, op: Operation, desc: Descriptor, target: View, barrier: View, fetch: Callable[[GlobalMemory], Array]
) -> None:
    """Issue a copy of what `fetch` gives to `target`, whose bytes complete on `barrier`."""
    check_tile(op, target)
    desc.check(op)
    usable_barrier(task, op, barrier)
    queue = barrier_queue(task, "TMA load", barrier)
    actor = queue.actor(op)
    target.cell.overwrite(actor, queue.knowledge(task.clock), target.name)
    memory = task.global_memory.issued(actor, task.clock)

    def finish(transfer: Transfer) -> None:
        target.write(fetch(memory).reshape(target.shape).view(target.dtype))
        deliver(task, transfer, barrier, target.size)

    task.issue(queue, op, finish)


def barrier_queue(task: Task, kind: str, barrier: View) -> Queue:
    """The queue of what a task issues that completes on one barrier of the cluster: in any order."""
    queue = task.queue(
        kind,
        in_order=False,
        key=f"{kind} {barrier.memory.rank} {barrier.address}",
        over=f"it is over when its phase of '{barrier.name}' is complete",
    )
    queue.barriers = (barrier,)
    return queue


def check_tile(op: Operation, view: View) -> None:
    """Check that a tile in shared memory is where TMA and the tensor cores can reach it.

    Raises Fault for a misaligned one.
    """
    if view.address % view.alignment:
        raise fault_at(
            op,
            f"misaligned buffer: '{view.name}' is at byte {view.address} of shared memory, which is no multiple of "
            f"the {view.alignment} bytes that its layout needs",
        )


@action(ttng.AsyncTMAGatherOp)
def gather(
    task: Task,
    op: ttng.AsyncTMAGatherOp,
    desc: Descriptor,
    rows: Array,
    column: np.int32,
    barrier: View,
    target: View,
    pred: np.bool_,
) -> None:
    """Rows at any numbers; those outside of the tensor are zeros."""
    if pred:
        start_load(task, op, desc, target, barrier, lambda memory: gather_rows(memory, op, desc, rows, int(column)))


def gather_rows(memory: GlobalMemory, op: Operation, desc: Descriptor, rows: Array, column: int) -> Array:
    """The rows of those numbers from a column on."""
    return np.concatenate([desc.load(op, memory, [int(row), column]) for row in rows])


# Stores --------------------------------------------------------------------------------------------------------------


def store_queue(task: Task) -> Queue:
    """The bulk groups of a task; they complete in any order, but are waited for in the order of their issue."""
    return task.queue("TMA store", in_order=False)


def start_store(task: Task, op: Operation, source: View, put: Callable[[GlobalMemory, Array], None]) -> None:
    """Issue a copy of `source`, which `put` takes."""
    check_tile(op, source)
    queue = store_queue(task)
    source.cell.read(queue.actor(op), queue.knowledge(task.clock), source.name)
    memory = memory_of_store(task, queue, op)
    task.issue(queue, op, lambda _transfer: put(memory, source.read(op)))


def memory_of_store(task: Task, queue: Queue, op: Operation) -> GlobalMemory:
    """Global memory as the bulk store that is issued next sees it: to have read is not to have written."""
    task.bulk_writes = queue.writes = task.bulk_writes or task.cluster.new_engine()
    return task.global_memory.issued(replace(queue.actor(op), agent=task.bulk_writes, queue=_Writes()), task.clock)


class _Writes:
    """Queue of bulk stores, as reports name the wait after which they have written."""

    hint = ""

    def end(self) -> str:
        """Say by what it is known."""
        return "it has written after tlx.async_descriptor_store_wait(0, read=False) of its task"


def written_tile(op: Operation, desc: Descriptor, corner: list[int]) -> Descriptor:
    """The descriptor of what the store of a tile at `corner` writes: by TMA whole units of each row.

    Raises Fault for what TMA cannot address.
    """
    desc.check(op)
    if not is_tile_copy(op):
        return desc
    desc.check_start(op, corner)
    return desc.in_units()


@action(ttng.AsyncTMACopyLocalToGlobalOp)
def copy_to_global(task: Task, op: ttng.AsyncTMACopyLocalToGlobalOp, desc: Descriptor, *rest: Any) -> None:
    """The buffer is read some time."""
    *corner, source = rest
    place = [int(at) for at in corner]
    written = written_tile(op, desc, place)
    start_store(task, op, source, lambda memory, values: written.store(op, memory, place, values.view(desc.dtype)))


@action(ttng.AsyncTMAScatterOp)
def scatter(
    task: Task, op: ttng.AsyncTMAScatterOp, desc: Descriptor, rows: Array, column: np.int32, source: View
) -> None:
    """Rows to any numbers."""
    desc.check(op)
    start_store(task, op, source, lambda memory, values: scatter_rows(memory, op, desc, rows, int(column), values))


def scatter_rows(
    memory: GlobalMemory, op: Operation, desc: Descriptor, rows: Array, column: int, values: Array
) -> None:
    """Write the rows of those numbers from a column on."""
    for row, line in zip(rows.tolist(), values, strict=True):
        desc.store(op, memory, [row, column], line.view(desc.dtype))


@action(ttng.AsyncTMAReduceOp)
def reduce(task: Task, op: ttng.AsyncTMAReduceOp, desc: Descriptor, *rest: Any) -> None:
    """The block is combined with what is in memory."""
    *corner, source = rest
    place = [int(at) for at in corner]
    written = written_tile(op, desc, place)
    start_store(task, op, source, lambda memory, values: _reduce_block(memory, op, written, place, values))


def _increment(old: Any, limit: Any) -> Array:
    return where(old >= limit, old.dtype.type(0), old + old.dtype.type(1))


def _decrement(old: Any, limit: Any) -> Array:
    return where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


_REDUCTIONS: dict[DescriptorReduceKind, Callable[[Array, Array], Array]] = {
    DescriptorReduceKind.ADD: np.add,
    DescriptorReduceKind.MIN: minimum,
    DescriptorReduceKind.MAX: maximum,
    DescriptorReduceKind.INC: _increment,
    DescriptorReduceKind.DEC: _decrement,
    DescriptorReduceKind.AND: np.bitwise_and,
    DescriptorReduceKind.OR: np.bitwise_or,
    DescriptorReduceKind.XOR: np.bitwise_xor,
}


def _reduce_block(
    memory: GlobalMemory, op: ttng.AsyncTMAReduceOp | tt.DescriptorReduceOp, desc: Descriptor, corner: list[int],
    values: Array,
) -> None:  # fmt: skip
    """Combine a block with what is in memory; float additions round in the type of the elements.

    The descriptor's type knows the sign of integers.
    """
    function = _REDUCTIONS[DescriptorReduceKind(op.kind.value.data)]
    held = desc.dtype
    element = descriptor_type(op.operands[0].type).element_type
    if isinstance(element, IntegerType) and cast(Any, element).signedness.data is Signedness.UNSIGNED:
        held = unsigned(held)
    with memory.exclusive:
        found = desc.window(op, memory, corner, "reduction")
        if found is not None:
            inside, target = found
            target = target.view(held)
            target[...] = function(target, values.view(held).reshape(desc.block)[inside])


@blocking(ttng.AsyncTMAStoreWaitOp)
def store_wait(task: Task, op: ttng.AsyncTMAStoreWaitOp) -> Coroutine:
    """Wait until at most `pendings` of the stores of this task are in flight."""
    yield from wait_for_stores(task, op, op.pendings.value.data, reads_only=is_set(op, "read_only"))


def wait_for_stores(task: Task, op: Operation, pendings: int, *, reads_only: bool) -> Coroutine:
    """Wait until at most so many stores of this task are in flight.

    Their reads and writes are one event here, but with `reads_only` the task does not know that they have written.
    """
    queue = store_queue(task)
    number = max(queue.issued - pendings, 0)
    yield from task.wait_for(queue, number, op)
    if not reads_only and task.bulk_writes:
        task.clock.observe(task.bulk_writes, number)


# Loads and stores of blocks through descriptors, before the passes that give them buffers and barriers ---------------


@immediate(tt.DescriptorLoadOp)
def descriptor_load(task: Task, op: tt.DescriptorLoadOp, desc: Descriptor, *corner: Any) -> Array:
    """Elements outside of the tensor are 0, or NaN.

    Raises Fault for a tensor that TMA cannot address.
    """
    desc.check(op)
    place = [int(at) for at in corner]
    if is_tile_copy(op):
        desc.check_start(op, place)
    values = desc.load(op, task.global_memory, place)
    return values.reshape(shape_of_tensor(op.result.type)).view(dtype_of(op.result.type))


@immediate(tt.DescriptorStoreOp)
def descriptor_store(task: Task, op: tt.DescriptorStoreOp, desc: Descriptor, values: Array, *corner: Any) -> None:
    """Elements outside of the tensor are dropped, but for the last unit of a row by TMA."""
    place = [int(at) for at in corner]
    written = written_tile(op, desc, place)
    written.store(op, task.global_memory, place, np.ascontiguousarray(values).view(desc.dtype))


@immediate(tt.DescriptorReduceOp)
def descriptor_reduce(task: Task, op: tt.DescriptorReduceOp, desc: Descriptor, values: Array, *corner: Any) -> None:
    """The block is combined with what is in memory."""
    place = [int(at) for at in corner]
    _reduce_block(task.global_memory, op, written_tile(op, desc, place), place, np.ascontiguousarray(values))


@immediate(tt.DescriptorGatherOp)
def descriptor_gather(task: Task, op: tt.DescriptorGatherOp, desc: Descriptor, rows: Array, column: np.int32) -> Array:
    """Rows at any numbers; those outside of the tensor are zeros."""
    desc.check(op)
    return gather_rows(task.global_memory, op, desc, rows, int(column)).view(dtype_of(op.result.type))


@immediate(tt.DescriptorScatterOp)
def descriptor_scatter(
    task: Task, op: tt.DescriptorScatterOp, desc: Descriptor, rows: Array, column: np.int32, values: Array
) -> None:
    """Rows to any numbers; those outside of the tensor are dropped."""
    desc.check(op)
    scatter_rows(task.global_memory, op, desc, rows, int(column), np.ascontiguousarray(values))
