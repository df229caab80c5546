"""The barrier of a cluster, and the fence that makes mbarriers known to it (PTX ISA, "barrier.cluster").

`barrier.cluster` waits for all threads of all thread blocks that have not exited. So inside of `ttg.warp_specialize`
every task arrives, the partitions as well as the default one; a partition that has ended arrives no more, since its
warps are idle but have not exited. Outside, the default task arrives for the warps of the partitions, too: they run
none of the user's code then, and it is for the compiler to have them arrive.
"""

from __future__ import annotations

from xdsl.ir import Operation

from tlx_xdsl.dialects import nvvm, tlx, ttng
from tlx_xdsl.interpreter.faults import fault_at
from tlx_xdsl.interpreter.machine import Cluster, Task
from tlx_xdsl.interpreter.registry import Coroutine, Run, Unary, Waiting, effect, step


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


@step(ttng.ClusterArriveOp, nvvm.ClusterArriveOp, nvvm.ClusterArriveRelaxedOp)
def arrive(op: Operation) -> Run:
    """Arrive only."""
    if isinstance(op, ttng.ClusterArriveOp):
        relaxed = op.relaxed is not None and bool(op.relaxed.value.data)
    else:
        relaxed = isinstance(op, nvvm.ClusterArriveRelaxedOp)

    def run(task: Task) -> Coroutine:
        yield None
        cluster_arrive(task, op, relaxed=relaxed)

    return run


@step(ttng.ClusterWaitOp, nvvm.ClusterWaitOp)
def wait(op: Operation) -> Run:
    """Wait only."""

    def run(task: Task) -> Coroutine:
        yield from cluster_wait(task, op)

    return run


@step(ttng.ClusterBarrierOp)
def barrier(op: ttng.ClusterBarrierOp) -> Run:
    """Arrive and wait."""
    relaxed = bool(op.relaxed.value.data)

    def run(task: Task) -> Coroutine:
        yield None
        yield from cluster_sync(task, op, relaxed=relaxed)

    return run


def release_initialised(task: Task) -> None:
    """Have the mbarriers that the task has initialised known to all who meet it at the cluster's barrier next."""
    task.init_fences += 1
    task.clock.observe(task.init_mark, task.init_fences)


@effect(tlx.FenceMBarrierInitClusterOp, ttng.FenceMBarrierInitReleaseClusterOp, nvvm.FenceMbarrierInitOp)
def fence_mbarrier_init(_op: Operation) -> Unary:
    """PTX: fence.mbarrier_init.release.cluster."""
    return release_initialised
