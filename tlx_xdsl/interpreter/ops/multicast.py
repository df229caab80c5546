"""TMA loads for several thread blocks of a cluster (PTX ISA, "cp.async.bulk.tensor", .multicast::cluster)."""

from __future__ import annotations

from typing import Any

from xdsl.ir import Operation

from tlx_xdsl.dialects import tlx
from tlx_xdsl.interpreter.descriptor import Descriptor
from tlx_xdsl.interpreter.engine import Transfer
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.interpreter.machine import Task
from tlx_xdsl.interpreter.memory import View
from tlx_xdsl.interpreter.ops.barriers import barrier_of, deliver, touch
from tlx_xdsl.interpreter.ops.cluster import visit
from tlx_xdsl.interpreter.ops.tma import check_tile
from tlx_xdsl.interpreter.registry import Coroutine, Run, step


@step(tlx.AsyncTMALoadOp)
def async_tma_load(op: tlx.AsyncTMALoadOp) -> Run:
    """The block goes to the same place in each thread block of the mask, and its bytes to the barrier there.

    With `two_ctas` they complete on the barrier of the even thread block of each pair.
    """
    rank, multicasts, pairs = len(op.coord), op.multicast is not None, op.two_ctas is not None

    def run(task: Task, desc: Descriptor, *rest: Any) -> Coroutine:
        yield None
        corner = [int(at) for at in rest[:rank]]
        barrier, target, pred, *mask = rest[rank:]
        if not pred:
            return
        bits = int(mask[0]) if multicasts else None
        if pairs:
            # The bytes complete in the even thread block of the pair.
            here = task.block.rank if multicasts else barrier.memory.rank
            barrier = barrier.elsewhere(task.block.cluster.blocks[here & ~1].shared)
        start_load(task, op, desc, corner, places_of(task, op, target, barrier, bits, pairs=pairs))

    return run


def places_of(
    task: Task, op: Operation, target: View, barrier: View, mask: int | None, *, pairs: bool
) -> list[tuple[View, View]]:
    """Return where a load writes, and the barriers on which its bytes complete: in each thread block of `mask`, if any.

    With `pairs` that is the thread block of each pair whose rank is as even or odd as that of `barrier`.
    Raises Fault where the mask names thread blocks that there are not.
    """
    if mask is None:
        return [(target, barrier)]
    blocks = task.block.cluster.blocks
    if not 0 < mask < 1 << len(blocks):
        raise fault_at(op, f"the mask {mask:#x} names CTAs that are not in the cluster of {len(blocks)}")
    places: list[tuple[View, View]] = []
    for number in (number for number in range(len(blocks)) if mask >> number & 1):
        holder = number & ~1 | barrier.memory.rank & 1 if pairs else number
        places.append((target.elsewhere(blocks[number].shared), barrier.elsewhere(blocks[holder].shared)))
    return places


def start_load(task: Task, op: Operation, desc: Descriptor, corner: list[int], places: list[tuple[View, View]]) -> None:
    """Issue a load of the block at `corner` to all places."""
    desc.check(op)
    # A barrier knows of a transfer when all before it in its queue are complete: they all go to the same places.
    key = " ".join(f"{target.memory.rank} {barrier.memory.rank}" for target, barrier in places)
    queue = task.queue(
        "TMA load",
        in_order=False,
        key=f"TMA load {places[0][1].address} to {key}",
        over=f"it is over when its phase of '{places[0][1].name}' is complete",
    )
    for target, barrier in places:
        check_tile(op, target)
        visit(task, op, target, queue)
        visit(task, op, barrier, queue)
        touch(task, op, barrier)
        barrier_of(op, barrier)
        target.cell.overwrite(queue.actor(op), queue.knowledge(task.clock), target.name)

    def finish(transfer: Transfer) -> None:
        block = desc.load(op, task.block.cluster.launch.memory, corner)
        for target, barrier in places:
            target.write(block.reshape(target.shape).view(target.dtype))
            deliver(task, transfer, barrier, target.size)

    task.issue(queue, op, finish)
