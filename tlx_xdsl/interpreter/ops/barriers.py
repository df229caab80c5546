"""mbarriers, named barriers and fences."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.dialects import nvvm, tlx, ttng
from tlx_xdsl.dialects.tlx.barriers import FenceScope

from ..clocks import Clock
from ..endings import check_barrier
from ..engine import Transfer
from ..faults import fault_at
from ..machine import Task
from ..mbarrier import Mbarrier, Passage
from ..memory import View
from ..registry import Coroutine, Run, Unary, Waiting, action, blocking, effect, step
from ..touches import Touch

# mbarriers -------------------------------------------------------------------------------------------------------


def barrier_of(op: Operation, view: View) -> Mbarrier:
    """The live mbarrier of a view.

    Raises Fault when there is none, or its bytes were overwritten.
    """
    if (barrier := view.memory.barriers.get(view.address)) is None:
        raise fault_at(op, f"'{view.name}' is used as an mbarrier, but it was not initialised, or its life has ended")
    view.check_written(op)
    return barrier


def arrive(task: Task, op: Operation, view: View, count: int) -> None:
    """Arrive at an mbarrier, and notify observers when that completes its phase."""
    touch(task, op, view)
    task.note()
    arrive_with(task, op, view, count, task.release(), task.mark)


def arrive_in_cluster(task: Task, op: Operation, view: View, count: int, releases: tlx.Releases) -> None:
    """Arrive at an mbarrier of any thread block; `SHARED` is a relaxed arrival: it passes on what fences have released.

    To others, a release to the own thread block passes on only what is performed.
    Raises Fault as `arrive` does, and when nothing says that the other thread block has started.
    """
    # Who knows of the arrival knows that it is over.
    task.reach(op, view, task.mark, task.notes + 1)
    touch(task, op, view)
    task.note()
    is_own = view.memory.rank == task.block.rank
    if releases is tlx.Releases.CLUSTER or (releases is tlx.Releases.CTA and is_own):
        released = task.release()
    else:
        released = task.release_performed()
        if releases is tlx.Releases.SHARED:
            released.join(task.fenced)
    arrive_with(task, op, view, count, released, task.mark)


def arrive_with(task: Task, op: Operation, view: View, count: int, clock: Clock, mark: int) -> None:
    """Arrive for `task` with the knowledge `clock`; `mark` is the agent that counts what arrives."""
    barrier = barrier_of(op, view)
    if barrier.arrive(op, count, clock, mark):
        _flipped(task, view, barrier)


def arrive_later(task: Task, transfer: Transfer, view: View, count: int) -> None:
    """Arrive for a transfer."""
    barrier = barrier_of(transfer.op, view)
    if barrier.arrive_later(transfer, count):
        _flipped(task, view, barrier)


def deliver(task: Task, transfer: Transfer, view: View, size: int) -> None:
    """Count `size` bytes that a transfer has written."""
    barrier = barrier_of(transfer.op, view)
    if barrier.deliver(transfer, size):
        _flipped(task, view, barrier)


def _flipped(task: Task, view: View, barrier: Mbarrier) -> None:
    cluster = task.cluster
    if cluster.observer is not None:
        # The barrier may be another thread block's.
        cluster.observer.flipped(barrier, cluster.blocks[view.memory.rank])


@action(ttng.InitBarrierOp)
def init_barrier(task: Task, op: ttng.InitBarrierOp, view: View) -> None:
    """The first phase waits for `count` arrivals."""
    count = op.count.value.data
    if count < 1:
        raise fault_at(op, f"'{view.name}' is initialised for {count} arrivals, but no phase completes without one")
    if (old := view.memory.barriers.get(view.address)) is not None and old.is_armed:
        raise fault_at(op, f"'{view.name}' is initialised anew while its phase {old.phase} is under way")
    task.write(op, view, np.zeros(view.shape, view.dtype))
    announced = (task.init_mark, task.init_fences + 1)
    alone = len(task.cluster.blocks) == 1
    name = view.name if alone else f"{view.name} of CTA {task.block.rank}"
    view.memory.barriers[view.address] = Mbarrier(name, op, view.family.op, count, announced=announced)


@action(ttng.InvalBarrierOp)
def inval_barrier(task: Task, op: ttng.InvalBarrierOp, view: View) -> None:
    """The memory may hold something else from now on."""
    barrier = barrier_of(op, view)
    check_barrier(task.cluster, barrier)
    view.cell.overwrite(task.actor(op, view), task.clock, view.name)
    del view.memory.barriers[view.address]
    view.memory.ended = op


@step(ttng.BarrierExpectOp)
def barrier_expect(op: ttng.BarrierExpectOp) -> Run:
    """Expect bytes, and arrive once."""
    size = op.size.value.data

    def run(task: Task, view: View, pred: np.bool_) -> Coroutine:
        yield None
        if pred:
            usable_barrier(task, op, view).expect(size)
            arrive(task, op, view, 1)

    return run


@step(ttng.ArriveBarrierOp)
def arrive_barrier(op: ttng.ArriveBarrierOp) -> Run:
    """One thread arrives for all of the task, after all that they have done."""
    count = op.count.value.data

    def run(task: Task, view: View, pred: Any = True) -> Coroutine:
        yield None
        if pred:
            arrive(task, op, view, count)

    return run


@action(tlx.ArriveRemoteOp)
def arrive_remote(task: Task, op: tlx.ArriveRemoteOp, view: View, pred: Any = True) -> None:
    """The same in another thread block, with what it releases."""
    if pred:
        if op.released is tlx.Releases.SHARED:
            task.fence_cluster(shared_only=True)
        arrive_in_cluster(task, op, view, op.count.value.data, op.released)


@action(tlx.ArrivePerThreadOp)
def arrive_per_thread(task: Task, op: tlx.ArrivePerThreadOp, view: View, pred: Any = True) -> None:
    """Every thread of the task arrives."""
    if pred:
        arrive(task, op, view, task.threads)


@step(ttng.WaitBarrierOp)
def wait_barrier(op: ttng.WaitBarrierOp) -> Run:
    """Wait for the phase of the given parity, and acquire what those have released that completed it."""
    has_predicate = op.pred is not None

    def run(task: Task, view: View, number: np.int32, *rest: Any) -> Coroutine:
        if not has_predicate or rest[0]:
            yield from _wait(task, op, view, number)

    return run


def _wait(task: Task, op: Operation, view: View, number: np.int32) -> Coroutine:
    barrier = usable_barrier(task, op, view)
    # Stock's warp specialisation extends the parity by its sign.
    parity = 1 if number == -1 else int(number)
    if parity not in (0, 1):
        raise fault_at(op, f"the parity of a phase is 0 or 1, found {parity}")

    def reason() -> str:
        return (
            f"waits at '{barrier.name}' for parity {parity}, while its phase {barrier.phase}, of parity "
            f"{barrier.phase & 1}, lacks {barrier.missing}"
        )

    yield Waiting(op, lambda: barrier.done(parity), reason, view, parity=parity)
    task.note()
    task.passed = barrier.pass_wait(op, task.mark, task.clock)


def touch(task: Task, op: Operation, view: View) -> None:
    """Check that the initialisation of a barrier is ordered before its use."""
    write = view.cell.write
    if write is None or task.clock.knows(write.agent, write.step):
        return
    barrier = view.memory.barriers.get(view.address)
    if barrier is None or not task.clock.knows(*barrier.announced):
        raise fault_at(op, f"'{view.name}' is used, but nothing orders its initialisation before that")


def usable_barrier(task: Task, op: Operation, view: View) -> Mbarrier:
    """The live mbarrier of a view, whose initialisation is ordered before this use.

    Raises Fault as `touch` and `barrier_of` do.
    """
    touch(task, op, view)
    return barrier_of(op, view)


# Named barriers ------------------------------------------------------------------------------------------------------


def named_arrive(task: Task, op: Operation, number: int, threads: int) -> None:
    """Arrive with all threads of the task."""
    if not 0 <= number < 16:
        raise fault_at(op, f"there are named barriers 0 to 15, found {number}")
    barrier = task.block.named_barrier(number)
    phase = barrier.phase
    barrier.arrive(op, task.threads, threads, task.release(), task.agent)
    if task.order is not None:
        task.order.touch(Touch(("named barrier", task.program, number), phase, is_last=barrier.phase != phase))


def named_sync(task: Task, op: Operation, number: int, threads: int) -> Coroutine:
    """Arrive, and wait for all others."""
    named_arrive_phase = task.block.named_barrier(number).phase
    named_arrive(task, op, number, threads)
    barrier = task.block.named_barrier(number)
    yield Waiting(
        op,
        lambda: barrier.phase > named_arrive_phase,
        lambda: (
            f"waits at named barrier {number}, at which {barrier.arrived} of {barrier.threads} threads have arrived"
        ),
        named=number,
    )
    task.passed = Passage(op, barrier.name, arrivals=tuple(arrival.op for arrival in barrier.before))
    task.acquire(barrier.completed)


@blocking(tlx.NamedBarrierWaitOp)
def named_barrier_wait(task: Task, op: tlx.NamedBarrierWaitOp, number: np.int32) -> Coroutine:
    """PTX: bar.sync."""
    yield None
    yield from named_sync(task, op, int(number), op.threads.value.data)


@action(tlx.NamedBarrierArriveOp)
def named_barrier_arrive(task: Task, op: tlx.NamedBarrierArriveOp, number: np.int32) -> None:
    """PTX: bar.arrive."""
    named_arrive(task, op, int(number), op.threads.value.data)


# Fences --------------------------------------------------------------------------------------------------------------


@effect(ttng.FenceAsyncSharedOp)
def fence_async_shared(_op: Operation) -> Unary:
    """Make everything that happens before the fence visible to the async proxy in shared memory."""
    return lambda task: task.fence()


@effect(nvvm.FenceProxyOp)
def fence_proxy(op: nvvm.FenceProxyOp) -> Unary:
    """The same in the memory that the fence names; those of other proxies order nothing that is followed here."""
    in_shared, in_global = op.orders_shared, op.orders_global
    return lambda task: task.fence(in_shared=in_shared, in_global=in_global)


@effect(tlx.FenceOp)
def fence(op: tlx.FenceOp) -> Unary:
    """Let later relaxed arrivals release everything that happens before the fence; global memory has no caches here."""
    system = FenceScope(op.scope.value.data) is FenceScope.SYS
    return lambda task: task.fence_cluster(system=system)
