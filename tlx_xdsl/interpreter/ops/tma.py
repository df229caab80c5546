"""Copies by TMA between global and shared memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Operation

from tlx_xdsl.dialects import tlx, tt, ttng
from tlx_xdsl.dialects.base.tensors import shape_of_tensor
from tlx_xdsl.dialects.tt.enums import DescriptorReduceKind, PaddingOption
from tlx_xdsl.dialects.tt.types import descriptor_type
from tlx_xdsl.interpreter.descriptor import Descriptor
from tlx_xdsl.interpreter.engine import Queue, Transfer
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.interpreter.machine import Task
from tlx_xdsl.interpreter.memory import View
from tlx_xdsl.interpreter.numbers import dtype_of
from tlx_xdsl.interpreter.ops.barriers import barrier_of, deliver, touch
from tlx_xdsl.interpreter.registry import Coroutine, Run, action, effect, pure, step
from tlx_xdsl.numerics.arrays import Array, unsigned, where

# Loads ---------------------------------------------------------------------------------------------------------------


@step(ttng.AsyncTMACopyGlobalToLocalOp)
def copy_to_local(op: ttng.AsyncTMACopyGlobalToLocalOp) -> Run:
    """The block arrives some time, and its bytes complete on the barrier."""
    rank = len(op.coord)

    def run(task: Task, desc: Descriptor, *rest: Any) -> Coroutine:
        corner = [int(at) for at in rest[:rank]]
        barrier, target, pred = rest[-3:]
        yield None
        if pred:
            start_load(task, op, desc, target, barrier, lambda: desc.load(op, task.block.cluster.launch.memory, corner))

    return run


def start_load(
    task: Task, op: Operation, desc: Descriptor, target: View, barrier: View, fetch: Callable[[], Array]
) -> None:
    """Issue a copy of what `fetch` gives to `target`, whose bytes complete on `barrier`."""
    check_tile(op, target)
    desc.check(op)
    touch(task, op, barrier)
    barrier_of(op, barrier)
    queue = load_queue(task, barrier)
    target.cell.overwrite(queue.actor(op), queue.knowledge(task.clock), target.name)

    def finish(transfer: Transfer) -> None:
        target.write(fetch().reshape(target.shape).view(target.dtype))
        deliver(task, transfer, barrier, target.size)

    task.issue(queue, op, finish)


def load_queue(task: Task, barrier: View) -> Queue:
    """The queue of the loads of a task that complete on one barrier: they come in any order."""
    return task.queue(
        "TMA load",
        in_order=False,
        key=f"TMA load {barrier.memory.rank} {barrier.address}",
        over=f"it is over when its phase of '{barrier.name}' is complete",
    )


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
    op: ttng.AsyncTMAGatherOp,
    task: Task,
    desc: Descriptor,
    rows: Array,
    column: np.int32,
    barrier: View,
    target: View,
    pred: np.bool_,
) -> None:
    """Rows at any numbers; those outside of the tensor are zeros."""
    if pred:
        start_load(task, op, desc, target, barrier, lambda: gather_rows(task, op, desc, rows, int(column)))


def gather_rows(task: Task, op: Operation, desc: Descriptor, rows: Array, column: int) -> Array:
    """The rows of those numbers from a column on."""
    memory = task.block.cluster.launch.memory
    return np.concatenate([desc.load(op, memory, [int(row), column]) for row in rows])


# Stores --------------------------------------------------------------------------------------------------------------


def store_queue(task: Task) -> Queue:
    """The bulk groups of a task; they complete in any order, but are waited for in the order of their issue."""
    return task.queue("TMA store", in_order=False)


def start_store(task: Task, op: Operation, source: View, put: Callable[[Array], None]) -> None:
    """Issue a copy of `source`, which `put` takes."""
    check_tile(op, source)
    queue = store_queue(task)
    source.cell.read(queue.actor(op), queue.knowledge(task.clock), source.name)
    task.issue(queue, op, lambda _transfer: put(source.read(op)))


@step(ttng.AsyncTMACopyLocalToGlobalOp)
def copy_to_global(op: ttng.AsyncTMACopyLocalToGlobalOp) -> Run:
    """The buffer is read some time."""

    def run(task: Task, desc: Descriptor, *rest: Any) -> Coroutine:
        *corner, source = rest
        yield None
        desc.check(op)
        place, memory = [int(at) for at in corner], task.block.cluster.launch.memory
        start_store(task, op, source, lambda values: desc.store(op, memory, place, values.view(desc.dtype)))

    return run


@action(ttng.AsyncTMAScatterOp)
def scatter(
    task: Task, op: ttng.AsyncTMAScatterOp, desc: Descriptor, rows: Array, column: np.int32, source: View
) -> None:
    """Rows to any numbers."""
    desc.check(op)
    start_store(task, op, source, lambda values: scatter_rows(task, op, desc, rows, int(column), values))


def scatter_rows(task: Task, op: Operation, desc: Descriptor, rows: Array, column: int, values: Array) -> None:
    """Write the rows of those numbers from a column on."""
    memory = task.block.cluster.launch.memory
    for row, line in zip(rows.tolist(), values, strict=True):
        desc.store(op, memory, [row, column], line.view(desc.dtype))


@step(ttng.AsyncTMAReduceOp)
def reduce(op: ttng.AsyncTMAReduceOp) -> Run:
    """The block is combined with what is in memory."""
    kind = op.kind.value.data

    def run(task: Task, desc: Descriptor, *rest: Any) -> Coroutine:
        *corner, source = rest
        yield None
        desc.check(op)
        place = [int(at) for at in corner]
        start_store(task, op, source, lambda values: reduce_block(task, op, desc, place, values, kind))

    return run


def _increment(old: Any, limit: Any) -> Array:
    return where(old >= limit, old.dtype.type(0), old + old.dtype.type(1))


def _decrement(old: Any, limit: Any) -> Array:
    return where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


_REDUCTIONS: dict[DescriptorReduceKind, Callable[[Array, Array], Array]] = {
    DescriptorReduceKind.ADD: np.add,
    DescriptorReduceKind.MIN: np.minimum,
    DescriptorReduceKind.MAX: np.maximum,
    DescriptorReduceKind.INC: _increment,
    DescriptorReduceKind.DEC: _decrement,
    DescriptorReduceKind.AND: np.bitwise_and,
    DescriptorReduceKind.OR: np.bitwise_or,
    DescriptorReduceKind.XOR: np.bitwise_xor,
}


def reduce_block(task: Task, op: Operation, desc: Descriptor, corner: list[int], values: Array, kind: int) -> None:
    """Combine a block with what is in memory; float additions round in the type of the elements.

    The descriptor's type knows the sign of integers.
    """
    function, memory = _REDUCTIONS[DescriptorReduceKind(kind)], task.block.cluster.launch.memory
    held = desc.dtype
    element = descriptor_type(op.operands[0].type).element_type
    if isinstance(element, IntegerType) and cast(Any, element).signedness.data is Signedness.UNSIGNED:
        held = unsigned(held)
    with memory.exclusive:
        found = desc.window(op, memory, corner)
        if found is not None:
            inside, target = found
            target = target.view(held)
            target[...] = function(target, values.view(held).reshape(desc.block)[inside])


@step(ttng.AsyncTMAStoreWaitOp)
def store_wait(op: ttng.AsyncTMAStoreWaitOp) -> Run:
    """Until at most `pendings` of the stores of this task are in flight."""
    pendings = op.pendings.value.data

    def run(task: Task) -> Coroutine:
        queue = store_queue(task)
        yield from task.wait_for(queue, max(queue.issued - pendings, 0), op)

    return run


# Hints ---------------------------------------------------------------------------------------------------------------


@effect(tlx.AsyncTMAPrefetchOp, tlx.PrefetchOp, tlx.PrefetchTensormapOp)
def prefetch(_op: Operation) -> Run:
    """A hint changes nothing."""
    return lambda *_: None


# Loads and stores of blocks through descriptors, before the passes that give them buffers and barriers ---------------


@pure(tt.MakeTensorDescOp)
def make_descriptor(op: tt.MakeTensorDescOp) -> Run:
    """A descriptor of a tensor in memory."""
    type_, count = op.result.type, len(op.shape)
    dtype, is_nan = dtype_of(type_.element_type), PaddingOption(op.padding.value.data) is PaddingOption.PAD_NAN
    block = tuple(type_.shape)

    def run(base: np.int64, *extents: Any) -> Descriptor:
        numbers = tuple(int(extent) for extent in extents)
        return Descriptor(int(base), numbers[:count], numbers[count:], block, dtype, is_nan)

    return run


@effect(tt.DescriptorLoadOp)
def descriptor_load(op: tt.DescriptorLoadOp) -> Run:
    """What is outside of the tensor is 0, or NaN.

    Raises Fault for a tensor that TMA cannot address.
    """
    shape, dtype = shape_of_tensor(op.result.type), dtype_of(op.result.type)

    def run(task: Task, desc: Descriptor, *corner: Any) -> Array:
        desc.check(op)
        values = desc.load(op, task.block.cluster.launch.memory, [int(at) for at in corner])
        return values.reshape(shape).view(dtype)

    return run


@effect(tt.DescriptorStoreOp)
def descriptor_store(op: tt.DescriptorStoreOp) -> Run:
    """What is outside of the tensor is dropped."""

    def run(task: Task, desc: Descriptor, values: Array, *corner: Any) -> None:
        desc.check(op)
        place = [int(at) for at in corner]
        desc.store(op, task.block.cluster.launch.memory, place, np.ascontiguousarray(values).view(desc.dtype))

    return run


@effect(tt.DescriptorReduceOp)
def descriptor_reduce(op: tt.DescriptorReduceOp) -> Run:
    """The block is combined with what is in memory."""
    kind = op.kind.value.data

    def run(task: Task, desc: Descriptor, values: Array, *corner: Any) -> None:
        desc.check(op)
        reduce_block(task, op, desc, [int(at) for at in corner], np.ascontiguousarray(values), kind)

    return run


@effect(tt.DescriptorGatherOp)
def descriptor_gather(op: tt.DescriptorGatherOp) -> Run:
    """Rows at any numbers; those outside of the tensor are zeros."""
    dtype = dtype_of(op.result.type)

    def run(task: Task, desc: Descriptor, rows: Array, column: np.int32) -> Array:
        desc.check(op)
        return gather_rows(task, op, desc, rows, int(column)).view(dtype)

    return run


@effect(tt.DescriptorScatterOp)
def descriptor_scatter(op: tt.DescriptorScatterOp) -> Run:
    """Rows to any numbers; those outside of the tensor are dropped."""

    def run(task: Task, desc: Descriptor, rows: Array, column: np.int32, values: Array) -> None:
        desc.check(op)
        scatter_rows(task, op, desc, rows, int(column), np.ascontiguousarray(values))

    return run
