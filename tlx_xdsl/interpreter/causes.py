"""Causes of races and deadlocks, where what is seen first is only the victim.

A buffer that is read too early is the victim of a barrier whose phase was complete too early: of copies that bring
more bytes than were expected, or of a wait that was for the phase before. Of the tasks of a deadlock most wait for each
other; one of them waits for what can never come, or for what another task has left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from xdsl.ir import Operation

from tlx_xdsl.dialects import ttng
from tlx_xdsl.dialects.base import THREADS, effects_of
from tlx_xdsl.errors import Note

from .engine import Queue
from .faults import Fault, Race, fault_at, location_of
from .machine import Cluster, Task
from .mbarrier import Mbarrier
from .races import Actor
from .users import arrivals, lines, named_barrier_users, task_of

# Races and reads of what was not written -----------------------------------------------------------------------------


def explained(fault: Fault, task: Task) -> Fault:
    """The report of a race, or of a read of uninitialized memory, by a task: with its cause first where that is known.

    The notes say at which barrier the task has waited last, and for which phase.
    """
    fault.notes = (*fault.notes, *_story(task))
    cause = _surplus(fault) or _repetition(fault, task)
    if cause is None:
        return fault
    victim = Note(f"{location_of_fault(fault)}: {fault.message}", fault.location)
    cause.notes = (*cause.notes, victim, *fault.notes)
    return cause


def location_of_fault(fault: Fault) -> str:
    """Return where a fault is, as a note says it."""
    return "elsewhere" if fault.location is None else str(fault.location)


def _story(task: Task) -> list[str]:
    """Return what a task has waited for last."""
    passed = task.passed
    if passed is None:
        return [f"{task.label} has waited at no barrier so far"]
    where = f"at {location_of(passed.op)}"
    if passed.phase is None:
        story = [f"{task.label} has last waited at {passed.barrier}, {where}; that phase had got:"]
    elif passed.phase < 0:
        return [
            f"{task.label} has last waited at '{passed.barrier}' for parity 1, {where}: its first phase was not "
            "complete, and such a wait passes at once"
        ]
    else:
        which = f"for parity {passed.parity}, phase {passed.phase}"
        story = [f"{task.label} has last waited at '{passed.barrier}' {which}, {where}; that phase had got:"]
    return [*story, *(line.after("    ") for line in lines(list(passed.arrivals)))]


def _surplus(fault: Fault) -> Fault | None:
    """Bytes of the access before that its barrier did not expect: its phase was complete without them."""
    before: Actor | None = fault.before if isinstance(fault, Race) else None
    if before is None or not isinstance(queue := before.queue, Queue):
        return None
    held: list[Mbarrier | None] = [view.memory.barriers.get(view.address) for view in queue.barriers]
    barriers = [each for each in held if each is not None and each.phase and each.bytes <= 0]
    if not barriers:
        return None
    try:
        # The run is over: what is in flight arrives.
        for transfer in [*queue.pending]:
            transfer.complete()
    except Fault as found:
        return found
    for barrier in barriers:
        if barrier.bytes < 0:
            return fault_at(before.op, barrier.surplus(-barrier.bytes, barrier.phase - 1), barrier.history())
    return None


def _repetition(fault: Fault, task: Task) -> Fault | None:
    """A wait for a phase that the task had waited for before."""
    passed = task.passed
    if passed is None or not passed.repeats:
        return None
    which = "which is complete from the start" if passed.phase == -1 else f"which is phase {passed.phase}"
    message = (
        f"{task.label} waits at '{passed.barrier}' for parity {passed.parity} twice in a row, {which} both times: "
        "the second wait passes at once and orders nothing"
    )
    return fault_at(passed.op, message, (), type(fault))


# Deadlocks -----------------------------------------------------------------------------------------------------------


class Rank(IntEnum):
    """Ranks of blocked waits as the cause of a deadlock: the lowest one is the likeliest, and reported first."""

    BYTES = 0
    """Its phase lacks bytes that are not in flight, or has got bytes that it does not expect."""
    NO_ARRIVAL = 1
    """Nothing arrives at its barrier, or only what it keeps from arriving itself."""
    MISCOUNTED = 2
    """Its task counts phases otherwise than the barrier does."""
    IN_PART = 3
    """Some have arrived, and others have not."""
    SKIPPED = 4
    """Another task has gone on without its arrival."""
    FIRST_ROUND = 5
    """It is for a slot to be free that no task has filled yet."""
    WAITS = 6
    """Nothing speaks for it."""
    TASKS = 7
    """It is for the end of other tasks."""


class Cause(NamedTuple):
    """Rank of a blocked wait as the cause of a deadlock, and the reason."""

    rank: Rank
    text: str = ""
    """Follows the description of the wait."""


def cause_of(task: Task, cluster: Cluster) -> Cause:
    """Return what speaks for a blocked task to wait for what can never come."""
    waiting = task.waiting
    if waiting is None or (waiting.barrier is None and waiting.named is None):
        return Cause(Rank.WAITS if waiting is not None and waiting.spins else Rank.TASKS)
    if waiting.named is not None:
        others = named_barrier_users(waiting.op, waiting.named)
        return _absence([task_of(op) for op in others], task, cluster, "no other line arrives at it") or Cause(
            Rank.WAITS
        )
    assert waiting.barrier is not None
    barrier = waiting.barrier.memory.barriers.get(waiting.barrier.address)
    if barrier is None:
        return Cause(Rank.WAITS)
    if barrier.bytes < 0:
        return Cause(Rank.BYTES)
    if barrier.bytes > 0 and not barrier.pending:
        came = barrier.expected - barrier.bytes
        return Cause(
            Rank.BYTES, f": it expects {barrier.expected} bytes, {came} have come, and no other copy is in flight"
        )
    ops = arrivals(barrier.allocation)
    by = [task_of(op) for op in ops]
    return (
        _absence(by, task, cluster, "no line arrives at it")
        or _miscount(task, barrier, waiting.parity)
        or (Cause(Rank.IN_PART) if barrier.is_armed else None)
        or _skipped(by, barrier, cluster)
        or _first_round(task, barrier, ops)
        or Cause(Rank.WAITS)
    )


def _absence(by: Sequence[str], task: Task, cluster: Cluster, without: str) -> Cause | None:
    """Say that the tasks that arrive, by their names, are not there to do so."""
    if not by:
        return Cause(Rank.NO_ARRIVAL, f", and {without}")
    alive = {other.name for other in cluster.tasks}
    names = {name or "the default task" for name in by}
    if not names & alive:
        return Cause(Rank.NO_ARRIVAL, f", and {_joined(names)}, which arrive there, have ended" if len(names) > 1 else
                     f", and {_joined(names)}, which arrives there, has ended")  # fmt: skip
    if names == {task.name} and len(cluster.blocks) == 1:
        return Cause(Rank.NO_ARRIVAL, ", and only this task arrives there")
    return None


def _miscount(task: Task, barrier: Mbarrier, parity: int) -> Cause | None:
    """The task has passed more waits than there are phases, or fewer, or waits for a parity again."""
    count, first, last = barrier.waits.get(task.mark, (0, 0, -1))
    if not count and parity and barrier.phase:
        text = ", and it is the first one of this task here: before phase 0 is complete, such a wait passes at once"
        return Cause(Rank.MISCOUNTED, text)
    if count and last & 1 == parity:
        text = f", and its wait before was for parity {parity}, too: the tasks count phases differently"
        return Cause(Rank.MISCOUNTED, text)
    if (meant := first + count) != barrier.phase:
        text = f", and its wait number {count + 1} is for phase {meant}: the tasks count phases differently"
        return Cause(Rank.MISCOUNTED, text)
    return None


def _skipped(by: Sequence[str], barrier: Mbarrier, cluster: Cluster) -> Cause | None:
    """A task that arrives has waited, where it waits now, more often than it has arrived."""
    for other in cluster.tasks:
        if other.name not in by and not (other.name == "the default task" and "" in by):
            continue
        for passed, where in _waits_of(other, barrier):
            if passed > barrier.phase:
                times = "once" if passed == 1 else f"{passed} times"
                arrived = f"{barrier.phase} phase{'' if barrier.phase == 1 else 's'} of '{barrier.name}'"
                text = f", and {other.label}, which arrives there, has waited at '{where}' {times} for {arrived}"
                return Cause(Rank.SKIPPED, text)
    return None


def _first_round(task: Task, barrier: Mbarrier, ops: Sequence[Operation]) -> Cause | None:
    """The task waits for the first phase of a barrier that threads arrive at, of which no data reports its end."""
    if barrier.phase or task.mark in barrier.waits or any(map(_brings_data, ops)):
        return None
    return Cause(Rank.FIRST_ROUND, ", the first one: where nothing is to be waited for yet, it takes parity 1")


def _brings_data(op: Operation) -> bool:
    """Return whether what arrives says that an asynchronous operation is over, or will be."""
    expects = isinstance(op, ttng.BarrierExpectOp)
    return expects or effects_of(op).by is not THREADS or effects_of(op).ends is not None


def _waits_of(task: Task, barrier: Mbarrier) -> Iterator[tuple[int, str]]:
    """Yield how often a blocked task has passed a wait at the slot of `barrier`, in the array that it waits at now."""
    view = None if task.waiting is None else task.waiting.barrier
    held = None if view is None else view.memory.barriers.get(view.address)
    if view is None or held is None:
        return
    slot = barrier.name.partition("[")[2]
    for each in view.memory.barriers.values():
        if each.allocation is held.allocation and each.name.partition("[")[2] == slot and task.mark in each.waits:
            yield each.waits[task.mark][0], each.name


def _joined(names: set[str]) -> str:
    return " and ".join(sorted(names))
