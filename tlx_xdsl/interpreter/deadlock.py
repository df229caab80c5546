"""The report of a deadlock: who waits for what, and who could have brought it about."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from tlx_xdsl.errors import Note
from tlx_xdsl.text.diagnostics import report_warning, users_place

from .causes import cause_of
from .faults import Deadlock, fault_at, location_of, place_note
from .grid import program_text
from .machine import Cluster, Task
from .mbarrier import Mbarrier
from .registry import Waiting
from .users import arrivals, lines, named_barrier_users


def deadlock(cluster: Cluster) -> Deadlock:
    """The report: first the task that most likely waits for what can never come, then all that are blocked.

    Tasks that wait at one line for the same are reported together, and after them the lines that could have released
    them.
    """
    blocked = [task for task in cluster.tasks if task.waiting is not None]
    causes = {task: cause_of(task, cluster) for task in blocked}
    first = min(blocked, key=lambda task: causes[task].rank)
    assert first.waiting is not None
    groups: dict[tuple[Operation | str, str], list[Task]] = {}
    for task in [first, *(task for task in blocked if task is not first)]:
        assert task.waiting is not None
        groups.setdefault((location_of(task.waiting.op), task.waiting.reason()), []).append(task)
    notes: list[str] = []
    reported: set[Operation] = set()
    for (where, reason), tasks in groups.items():
        assert tasks[0].waiting is not None
        text = f"{where}: {' and '.join(task.label for task in tasks)} {_plural(reason, len(tasks))}"
        notes.append(Note(text, users_place(tasks[0].waiting.op.location)))
        notes.extend(_releases(tasks[0].waiting, reported))
        notes.extend(changes(tasks[0].waiting, cluster))
    notes.append("this is a deadlock of this schedule: nothing is in flight any more that could release a task")
    of_rank = f" of program {program_text(first.program)}" if cluster.launch.of_ranks else ""
    message = f"deadlock: {first.label}{of_rank} {first.waiting.reason()}{causes[first].text}"
    fault = fault_at(first.waiting.op, message, notes, Deadlock)
    assert isinstance(fault, Deadlock)
    return fault


def waits(cluster: Cluster) -> list[str]:
    """Notes of what each task of another cluster waits for, in the same deadlock."""
    notes: list[str] = []
    for task in cluster.tasks:
        if (waiting := task.waiting) is not None:
            who = f"{task.label} of program {program_text(cluster.blocks[0].program)}"
            text = f"{location_of(waiting.op)}: {who} {waiting.reason()}"
            notes += [Note(text, users_place(waiting.op.location)), *changes(waiting, cluster)]
    return notes


def pass_time(clusters: Sequence[Cluster]) -> bool:
    """Let the time pass until the first limit of a wait is over, where nothing can move; False where none has one.

    Warns of each wait that gives up then: once for all programs of a GPU that wait at one line.
    """
    limited = [
        (cluster, task, task.waiting, task.waiting.deadline)
        for cluster in clusters
        for task in cluster.tasks
        if task.waiting is not None and task.waiting.deadline is not None
    ]
    if not limited:
        return False
    now = min(deadline for *_, deadline in limited)
    over: dict[tuple[int, Operation], list[tuple[Cluster, Task, Waiting]]] = {}
    for cluster, task, waiting, deadline in limited:
        if deadline <= now:
            over.setdefault((cluster.gpu, waiting.op), []).append((cluster, task, waiting))
    for group in over.values():
        cluster, task, waiting = group[0]
        others = {each.gpu: each for each in reversed(clusters) if each.gpu != cluster.gpu}
        notes = [*changes(waiting, cluster), *(note for gpu in sorted(others) for note in waits(others[gpu]))]
        if len(group) > 1:
            notes.append(f"{len(group) - 1} more programs of its GPU give up there at the same time")
        message = (
            f"{task.label} of program {program_text(task.program)} {waiting.reason()}: nothing can move any more, and "
            "its limit is over"
        )
        report_warning(waiting.op, message, (*notes, cluster.note))
    clusters[0].launch.time.now = now
    return True


MOST_CHANGES = 4
"""Changes of what is polled that a report lists."""


def changes(waiting: Waiting, cluster: Cluster) -> list[str]:
    """Notes of who has changed what a task polls, where accesses of programs are compared."""
    order = cluster.launch.order
    buffer = None if waiting.polled is None else cluster.launch.memory.find(waiting.polled)
    if order is None or buffer is None:
        return []
    assert waiting.polled is not None
    found = order.changes_at(buffer, waiting.polled - buffer.start)
    notes: list[str] = [
        place_note(f"    {each.who} has changed it, at", each.actor.op) for each in found[:MOST_CHANGES]
    ]
    if len(found) > MOST_CHANGES:
        notes.append(f"    and {len(found) - MOST_CHANGES} more")
    return notes or ["    no one has changed it"]


def _plural(reason: str, tasks: int) -> str:
    return reason if tasks == 1 else reason.replace("waits ", "wait ", 1)


def _releases(waiting: Waiting, reported: set[Operation]) -> Sequence[str]:
    """The lines that could have released a task; each allocation of barriers is reported once."""
    if waiting.named is not None:
        others = _indented("others arrive at", named_barrier_users(waiting.op, waiting.named))
        return others or [f"    no other line arrives at named barrier {waiting.named}"]
    if (view := waiting.barrier) is None or view.family.op in reported:
        return []
    reported.add(view.family.op)
    barrier = view.memory.barriers.get(view.address)
    return [] if barrier is None else barrier_notes(barrier)


def barrier_notes(barrier: Mbarrier) -> Sequence[str]:
    """Return what has been done to a barrier in its current phase, and every line that may complete it."""
    name = barrier.name.partition("[")[0]
    notes: list[str] = [*barrier.history()]
    arriving = _indented(f"'{name}' can be released by", arrivals(barrier.allocation))
    return notes + (arriving or [f"    no line arrives at '{name}'"])


def _indented(head: str, ops: Sequence[Operation]) -> list[Note]:
    return [line.after(f"    {head} ") for line in lines(ops)]
