"""Effects of arrivals, bytes and waits on barriers, and the order that makes them the same in every schedule.

The rules are those of the interpreter (`interpreter/mbarrier.py`). If none is broken in one schedule, no schedule
breaks one, and all of them give each wait and each arrival the same phase: the arrivals of a phase are ordered after
the phase before, a wait after the phase before the one that it waits for, and before the end of the phase after it.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from .state import Barrier, Clock, Event, Named, State, Task, join


class BrokenError(Exception):
    """A rule is broken at an operation."""

    def __init__(self, op: Operation, message: str, notes: Sequence[tuple[str, Operation]] = ()):
        super().__init__(message)
        self.op = op
        self.message = message
        self.notes = tuple(notes)


def arrive(barrier: Barrier, event: Event, count: int, knows: Clock, released: Clock) -> None:
    """Arrive `count` times; who arrives knows `knows` and releases `released`."""
    if count > barrier.pending:
        raise BrokenError(
            event.op,
            f"too many arrivals on '{barrier.name}': {count} where its phase waits for {barrier.pending} of "
            f"{barrier.count}",
            [("has got", each.op) for each in barrier.arrived],
        )
    _check_order(barrier, event, knows)
    barrier.pending -= count
    barrier.arrived += (event,)
    join(barrier.gathering, released)
    _complete(barrier, event.op)


def deliver(barrier: Barrier, event: Event, size: int, knows: Clock, released: Clock) -> None:
    """Complete `size` bytes."""
    _check_order(barrier, event, knows)
    barrier.bytes -= size
    barrier.arrived += (event,)
    join(barrier.gathering, released)
    _complete(barrier, event.op)


def _check_order(barrier: Barrier, event: Event, knows: Clock) -> None:
    for other in barrier.before:
        if not other.is_known_to(knows):
            raise BrokenError(
                event.op,
                f"nothing orders this arrival on '{barrier.name}' after the phase before: it may count for that phase",
                [("that phase is completed by what arrives", other.op)],
            )


def _complete(barrier: Barrier, op: Operation) -> None:
    if barrier.pending:
        return
    if barrier.bytes < 0:
        raise BrokenError(op, f"{-barrier.bytes} bytes more arrive on '{barrier.name}' than were expected")
    if barrier.bytes:
        return
    for wait in barrier.passed:
        if not wait.is_known_to(barrier.gathering):
            raise BrokenError(
                wait.op,
                f"nothing orders this wait for a phase of '{barrier.name}' before the next phase completes, whose "
                "parity is the other one: a wait that comes later waits for one more",
                [("the next phase is completed", op)],
            )
    barrier.parity ^= 1
    barrier.pending = barrier.count
    barrier.completed, barrier.gathering = barrier.gathering, {}
    barrier.earlier, barrier.before, barrier.arrived, barrier.passed = barrier.before, barrier.arrived, (), ()


def passes(barrier: Barrier, task: Task, op: Operation, parity: int) -> bool:
    """Wait for the phase of a parity; says whether it is complete."""
    if barrier.parity == parity:
        return False
    for other in barrier.earlier:
        if not other.is_known_to(task.clock):
            raise BrokenError(
                op,
                f"nothing orders this wait for a phase of '{barrier.name}' after the phase before: a wait that comes "
                "sooner passes at once, since the phase two before has the same parity",
                [("the phase before is completed by what arrives", other.op)],
            )
    event = task.event(task.marks, op)
    barrier.passed = (*(each for each in barrier.passed if each.agent != event.agent), event)
    join(task.clock, barrier.completed)
    return True


def unfinished(state: State) -> BrokenError | None:
    """Return what the kernel leaves undone at its end: phases that are not complete, operations that are in flight."""
    for barrier in state.barriers.values():
        if lack := barrier.lack:
            return BrokenError(barrier.op, f"'{barrier.name}' ends in the middle of a phase, which lacks {lack}")
    for number, named in state.named.items():
        if named.arrived:
            message = f"named barrier {number} ends with {named.arrived} of {named.threads} threads arrived"
            return BrokenError(named.events[-1].op, message)
    for uses in state.buffers.values():
        for event in (*uses.reads, *([uses.write] if uses.write is not None else ())):
            if event.agent[0] == "queue" and not any(event.is_known_to(task.clock) for task in state.tasks):
                return BrokenError(event.op, "nothing waits for the end of this before the kernel ends")
    return None


def arrive_named(barrier: Named, task: Task, op: Operation, number: int, expected: int) -> None:
    """All threads of a task arrive at a named barrier."""
    threads = 32 * task.code.warps
    if barrier.arrived and barrier.threads != expected:
        raise BrokenError(
            op,
            f"named barrier {number} is used for {expected} threads here, and for {barrier.threads} elsewhere",
            [("elsewhere", each.op) for each in barrier.events],
        )
    for other in barrier.before:
        if not other.is_known_to(task.clock):
            raise BrokenError(
                op,
                f"nothing orders this arrival at named barrier {number} after the phase before: it may count for that "
                "phase",
                [("that phase had got", other.op)],
            )
    event = task.event(task.marks, op)
    if any(each.agent == event.agent for each in barrier.events):
        raise BrokenError(
            op,
            f"a task arrives twice in one phase of named barrier {number}, for which others are still to arrive",
            [("has got", each.op) for each in barrier.events],
        )
    barrier.threads = expected
    barrier.arrived += threads
    if barrier.arrived > expected:
        raise BrokenError(op, f"{barrier.arrived} threads arrive at named barrier {number}, which waits for {expected}")
    barrier.events += (event,)
    join(barrier.gathering, task.release())
    if barrier.arrived == expected:
        barrier.arrived = barrier.threads = 0
        barrier.before, barrier.events = barrier.events, ()
        completed, barrier.gathering = barrier.gathering, {}
        barrier.passed.update(dict.fromkeys(barrier.waiting, completed))
        barrier.waiting = frozenset()
