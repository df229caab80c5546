"""Threads of cores, updates that are under way to them, and the scheduler that chooses who goes on.

A thread stops before each step at which others may notice it; a turn is that step and all that the thread does alone
after it. The policies are those of the TLX interpreter (`interpreter.scheduler`), which ask no more of a thread and of
an update than is here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Protocol, cast

from xdsl.ir import Operation

from tlx_xdsl.interpreter.faults import Deadlock, fault_at, location_of
from tlx_xdsl.interpreter.scheduler import make_policy

from .translate import Coroutine, Step, Touch


@dataclass(eq=False)
class Thread:
    """A thread of a core; machines add what it needs."""

    agent: int
    """Its number among all threads."""
    name: str
    x: int
    y: int
    coroutine: Coroutine | None = None
    step: Step | None = None
    """What it does next; none when it has ended."""
    operands: tuple[Any, ...] = ()
    turns: int = 0

    @property
    def label(self) -> str:
        """Return how messages call it."""
        return f"thread '{self.name}' of core ({self.x}, {self.y})"

    def is_ready(self) -> bool:
        """Return whether it can go on."""
        step = self.step
        return step is not None and (step.ready is None or step.ready(self, *self.operands))

    def resume(self, result: Any) -> None:
        """Let it go on to its next step."""
        assert self.coroutine is not None
        try:
            self.step, self.operands = self.coroutine.send(result)
        except StopIteration:
            self.step, self.operands = None, ()
            self.ended()

    def ended(self) -> None:
        """Check what it leaves; machines do."""


@dataclass(eq=False)
class Update:
    """An effect on another core, some time after the thread that began it has gone on."""

    serial: int
    op: Operation
    thread: Thread
    apply: Callable[[], None]
    touches: tuple[Touch, ...]


class Agents(Protocol):
    """A machine, as far as the scheduler uses it."""

    threads: list[Thread]
    updates: list[Update]

    def supplies(self, thread: Thread) -> Sequence[str]:
        """Lines on who could let a blocked thread go on."""
        ...


class Chooser(Protocol):
    """A policy."""

    def choose(self, tasks: Sequence[Any], transfers: Sequence[Any]) -> Any:
        """Choose a thread that can run or an update; there is at least one."""
        ...


@dataclass
class Replay:
    """Follows a list of choices, as a `Trace` has written it down, and then the first that can go on."""

    choices: Sequence[int]
    at: int = 0

    def choose(self, tasks: Sequence[Any], transfers: Sequence[Any]) -> Any:
        """The next choice of the list."""
        everything = [*tasks, *transfers]
        wanted = self.choices[self.at] if self.at < len(self.choices) else None
        self.at += 1
        return next((each for each in everything if identity(each) == wanted), everything[0])


def choices_text(choices: Sequence[int]) -> str:
    """A schedule as a word that `choices_of` reads: `0*3,1,-1` for 0 three times, 1, and the update -1."""
    runs = [(choice, sum(1 for _ in same)) for choice, same in groupby(choices)]
    return ",".join(f"{choice}*{count}" if count > 1 else str(choice) for choice, count in runs)


def choices_of(text: str) -> tuple[int, ...] | None:
    """The schedule that `choices_text` has written; None for another text."""
    runs = [re.fullmatch(r"(-?\d+)(?:\*(\d+))?", part) for part in text.split(",")]
    found = [run for run in runs if run is not None]
    if len(found) < len(runs):
        return None
    return tuple(int(run[1]) for run in found for _ in range(int(run[2] or 1)))


def identity(agent: Thread | Update) -> int:
    """A number that stays the same for the same choices: threads count from 0, updates down from -1."""
    return agent.agent if isinstance(agent, Thread) else -1 - agent.serial


@dataclass
class Schedule:
    """Policy by which a run chooses."""

    policy: Chooser
    patient: bool
    """Whether a thread goes on as far as it gets in one turn: that is enough for most runs, and quick."""


def make_schedule(schedule: str | Sequence[int], seed: int) -> Schedule:
    """The schedule of that name, or the one that follows a list of choices.

    Raises InputError for an unknown name.
    """
    if isinstance(schedule, str):
        return Schedule(cast(Chooser, make_policy(schedule, seed)), schedule != "random")
    return Schedule(Replay(schedule), False)


@dataclass
class Trace:
    """Choices that a run has made."""

    choices: list[int] = field(default_factory=list[int])


def run_threads(machine: Agents, schedule: Schedule, trace: Trace) -> None:
    """Run all threads to their ends, and then the updates that are left.

    Raises Fault for what they do wrong, and Deadlock when none can go on.
    """
    policy, patient, choices = schedule.policy, schedule.patient, trace.choices
    for thread in machine.threads:
        thread.resume(None)
    alive = [thread for thread in machine.threads if thread.step is not None]
    while alive or machine.updates:
        ready = [thread for thread in alive if thread.is_ready()]
        if not ready and not machine.updates:
            raise deadlock(machine, alive)
        chosen = policy.choose(ready, machine.updates)
        choices.append(identity(chosen))
        if isinstance(chosen, Update):
            machine.updates.remove(chosen)
            chosen.apply()
            continue
        give_turn(chosen)
        while patient and chosen.is_ready():
            choices.append(chosen.agent)
            give_turn(chosen)
        if chosen.step is None:
            alive.remove(chosen)


def give_turn(thread: Thread) -> None:
    """Do the step that a thread stands before, and go on to its next one."""
    step = thread.step
    assert step is not None
    thread.turns += 1
    thread.resume(step.run(thread, *thread.operands))


def deadlock(machine: Agents, blocked: Sequence[Thread]) -> Deadlock:
    """The report: what each thread waits for, those at one line for the same reason together.

    First is a thread that no other blocked one could let go on: there the others' waiting begins.
    """
    groups: dict[tuple[Operation, str], list[Thread]] = {}
    for thread in blocked:
        assert thread.step is not None
        reason = thread.step.waits_for(thread, *thread.operands) if thread.step.waits_for is not None else "waits"
        groups.setdefault((thread.step.op, reason), []).append(thread)
    supplies = {key: machine.supplies(threads[0]) for key, threads in groups.items()}
    cause = next((key for key, lines in supplies.items() if lines and not any(map(names_waiting, lines))), None)
    op, reason = cause if cause is not None else next(iter(groups))
    notes: list[str] = []
    for key in sorted(groups, key=lambda key: key != (op, reason)):
        notes.append(f"{location_of(key[0])}: {_labels(groups[key])} {key[1]}")
        notes.extend(f"    {line}" for line in supplies[key])
    notes.append("this is a deadlock of this schedule: nothing is under way that could let a thread go on")
    fault = fault_at(op, f"deadlock: {groups[op, reason][0].label} {reason}", notes, Deadlock)
    assert isinstance(fault, Deadlock)
    return fault


def state_of(thread: Thread) -> str:
    """Return where a thread is, for reports."""
    return "has ended" if thread.step is None else f"waits at {location_of(thread.step.op)}"


def names_waiting(line: str) -> bool:
    """Return whether a line on who could let a thread go on names a thread that waits itself."""
    return "waits at" in line


def _labels(threads: Sequence[Thread]) -> str:
    if len(threads) == 1:
        return threads[0].label
    cores = ", ".join(f"({each.x}, {each.y})" for each in threads[:4])
    more = f" and {len(threads) - 4} more" if len(threads) > 4 else ""
    return f"threads {', '.join(sorted({repr(each.name) for each in threads}))} of cores {cores}{more}:"
