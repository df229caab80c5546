"""Shared memory of other thread blocks of the cluster (PTX ISA, "mapa", "st.async", "cp.async.bulk").

A thread block must be known to have started before its memory is used, and the use must be known to be over before it
ends: the barrier of the cluster orders both, the second one also an mbarrier that the block waits at.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.dialects import nvvm, tlx, ttng
from tlx_xdsl.numerics.arrays import Array

from ..descriptor import Descriptor
from ..engine import Queue, Transfer
from ..faults import fault_at
from ..machine import Cluster, Task
from ..memory import View
from ..registry import Coroutine, Unary, Waiting, action, blocking, effect, immediate
from .barriers import deliver, usable_barrier
from .tma import barrier_queue, check_tile


def visit(task: Task, op: Operation, view: View, queue: Queue | None = None) -> None:
    """Note a use of another thread block's memory by the task, or by the transfer that is issued next to `queue`."""
    if queue is None:
        actor = task.actor(op, view)
        task.reach(op, view, actor.agent, actor.step)
    else:
        task.reach(op, view, queue.agent, queue.issued + 1)


@immediate(tlx.MapToRemoteOp)
def map_to_remote(task: Task, op: tlx.MapToRemoteOp, view: View, rank: np.int32) -> View:
    """The same place in another thread block."""
    blocks = task.cluster.blocks
    if not 0 <= rank < len(blocks):
        raise fault_at(op, f"there is no CTA {rank} in a cluster of {len(blocks)}")
    return view.elsewhere(blocks[rank].shared)


@action(tlx.RemoteStoreOp)
def remote_store(task: Task, op: tlx.RemoteStoreOp, values: Array, view: View) -> None:
    """Write a whole buffer; nothing releases it to the other thread block."""
    visit(task, op, view)
    task.write(op, view, values)


@action(tlx.AsyncRemoteStoreOp, ttng.AsyncSharedStoreOp)
def start_store(task: Task, op: Operation, values: Array, view: View, barrier: View) -> None:
    """Issue a store of `values` to another thread block, whose bytes complete on `barrier` (PTX ISA, "st.async").

    The registers are read at once, and arrive some time.
    """
    queue = barrier_queue(task, "remote store", barrier)
    _check_target(task, op, view, barrier, queue)
    # It is no operation of the async proxy.
    view.cell.overwrite(replace(queue.actor(op), is_async=False), queue.knowledge(task.clock), view.name)

    def finish(transfer: Transfer) -> None:
        view.write(values)
        deliver(task, transfer, barrier, view.size)

    task.issue(queue, op, finish)


@action(tlx.AsyncRemoteCopyOp)
def start_copy(task: Task, op: Operation, source: View, view: View, barrier: View) -> None:
    """Issue a copy of `source` to another thread block, whose bytes complete on `barrier`.

    The source is read some time, and may not be written before the other thread block releases it.
    """
    check_tile(op, source)
    queue = barrier_queue(task, "remote copy", barrier)
    _check_target(task, op, view, barrier, queue)
    actor, clock = queue.actor(op), queue.knowledge(task.clock)
    source.cell.read(actor, clock, source.name)
    view.cell.overwrite(actor, clock, view.name)

    def finish(transfer: Transfer) -> None:
        view.write(source.read(op))
        deliver(task, transfer, barrier, view.size)

    task.issue(queue, op, finish)


def _check_target(task: Task, op: Operation, view: View, barrier: View, queue: Queue) -> None:
    """Check what an asynchronous write to another thread block needs there."""
    if barrier.memory is not view.memory:
        raise fault_at(
            op,
            f"'{view.name}' is written in CTA {view.memory.rank}, but its bytes complete in CTA {barrier.memory.rank}",
        )
    visit(task, op, view, queue)
    usable_barrier(task, op, barrier)


# TMA loads for several thread blocks of a cluster (PTX ISA, "cp.async.bulk.tensor", .multicast::cluster) -------------


@action(tlx.AsyncTMALoadOp)
def async_tma_load(task: Task, op: tlx.AsyncTMALoadOp, desc: Descriptor, *rest: Any) -> None:
    """The block goes to the same place in each thread block of the mask, and its bytes to the barrier there.

    With `two_ctas` they complete on the barrier of the even thread block of each pair.
    """
    rank, multicasts, pairs = len(op.coord), op.multicast is not None, op.two_ctas is not None
    corner = [int(at) for at in rest[:rank]]
    barrier, target, pred, *mask = rest[rank:]
    if not pred:
        return
    bits = int(mask[0]) if multicasts else None
    if pairs:
        # The bytes complete in the even thread block of the pair.
        here = task.block.rank if multicasts else barrier.memory.rank
        barrier = barrier.elsewhere(task.cluster.blocks[here & ~1].shared)
    start_load(task, op, desc, corner, places_of(task, op, target, barrier, bits, pairs=pairs))


def places_of(
    task: Task, op: Operation, target: View, barrier: View, mask: int | None, *, pairs: bool
) -> list[tuple[View, View]]:
    """Return where a load writes, and the barriers on which its bytes complete: in each thread block of `mask`, if any.

    With `pairs` that is the thread block of each pair whose rank is as even or odd as that of `barrier`.
    Raises Fault where the mask names thread blocks that there are not.
    """
    if mask is None:
        return [(target, barrier)]
    blocks = task.cluster.blocks
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
    desc.check_start(op, corner)
    # A barrier knows of a transfer when all before it in its queue are complete: they all go to the same places.
    key = " ".join(f"{target.memory.rank} {barrier.memory.rank}" for target, barrier in places)
    queue = task.queue(
        "TMA load",
        in_order=False,
        key=f"TMA load {places[0][1].address} to {key}",
        over=f"it is over when its phase of '{places[0][1].name}' is complete",
    )
    queue.barriers = tuple(barrier for _, barrier in places)
    memory = task.global_memory.issued(queue.actor(op), task.clock)
    for target, barrier in places:
        check_tile(op, target)
        visit(task, op, target, queue)
        visit(task, op, barrier, queue)
        usable_barrier(task, op, barrier)
        target.cell.overwrite(queue.actor(op), queue.knowledge(task.clock), target.name)

    def finish(transfer: Transfer) -> None:
        block = desc.load(op, memory, corner)
        for target, barrier in places:
            target.write(block.reshape(target.shape).view(target.dtype))
            deliver(task, transfer, barrier, target.size)

    task.issue(queue, op, finish)


# The barrier of a cluster, and the fence that makes mbarriers known to it (PTX ISA, "barrier.cluster") ---------------
#
# `barrier.cluster` waits for all threads of all thread blocks that have not exited. So inside of `ttg.warp_specialize`
# every task arrives, the partitions as well as the default one; a partition that has ended arrives no more, since its
# warps are idle but have not exited. Outside, the default task arrives for the warps of the partitions, too: they run
# none of the user's code then, and it is for the compiler to have them arrive.


def _missing(cluster: Cluster) -> list[Task]:
    """The tasks that have not arrived in the current phase."""
    arrived = cluster.barrier.arrived
    alive = [block for block in cluster.blocks if block.main is not None and not block.main.ended]
    return [task for block in alive for task in block.crew if task.agent not in arrived]


def _is_over(cluster: Cluster, phase: int) -> bool:
    """Return whether that phase is complete."""
    if cluster.barrier.phase == phase and not _missing(cluster):
        cluster.barrier.complete()
    return cluster.barrier.phase > phase


def cluster_arrive(task: Task, op: Operation, *, relaxed: bool) -> None:
    """Arrive; a relaxed arrival orders no memory, but releases that the thread block lives, and fenced mbarriers.

    Raises Fault for a second arrival without a wait.
    """
    cluster = task.cluster
    if task.cluster_phase is not None:
        raise fault_at(op, f"{task.label} arrives at the cluster's barrier again without having waited there")
    barrier = cluster.barrier
    barrier.arrived[task.agent] = op
    task.cluster_phase = barrier.phase
    barrier.gathering.join(task.clock.only(cluster.marks) if relaxed else task.release())


@blocking(ttng.ClusterWaitOp, nvvm.ClusterWaitOp)
def cluster_wait(task: Task, op: Operation) -> Coroutine:
    """Wait for the phase of the last arrival.

    Raises Fault where there was none.
    """
    cluster, phase = task.cluster, task.cluster_phase
    if phase is None:
        raise fault_at(op, f"{task.label} waits at the cluster's barrier without having arrived there")

    def reason() -> str:
        names = ", ".join(other.label for other in _missing(cluster))
        return f"waits at the barrier of the cluster, at which {names} must still arrive"

    yield Waiting(op, lambda: _is_over(cluster, phase), reason)
    task.cluster_phase = None
    task.acquire(cluster.barrier.completed)


def cluster_sync(task: Task, op: Operation, *, relaxed: bool = False) -> Coroutine:
    """Arrive and wait."""
    cluster_arrive(task, op, relaxed=relaxed)
    yield from cluster_wait(task, op)


@action(ttng.ClusterArriveOp, nvvm.ClusterArriveOp, nvvm.ClusterArriveRelaxedOp)
def arrive(task: Task, op: Operation) -> None:
    """Arrive only."""
    if isinstance(op, ttng.ClusterArriveOp):
        relaxed = op.relaxed is not None and bool(op.relaxed.value.data)
    else:
        relaxed = isinstance(op, nvvm.ClusterArriveRelaxedOp)
    cluster_arrive(task, op, relaxed=relaxed)


@blocking(ttng.ClusterBarrierOp)
def barrier(task: Task, op: ttng.ClusterBarrierOp) -> Coroutine:
    """Arrive and wait."""
    relaxed = bool(op.relaxed.value.data)
    yield None
    yield from cluster_sync(task, op, relaxed=relaxed)


def release_initialised(task: Task) -> None:
    """Have the mbarriers that the task has initialised known to all who meet it at the cluster's barrier next."""
    task.init_fences += 1
    task.clock.observe(task.init_mark, task.init_fences)


@effect(tlx.FenceMBarrierInitClusterOp, ttng.FenceMBarrierInitReleaseClusterOp, nvvm.FenceMbarrierInitOp)
def fence_mbarrier_init(_op: Operation) -> Unary:
    """PTX: fence.mbarrier_init.release.cluster."""
    return release_initialised
