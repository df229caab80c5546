"""The state of a thread block between two steps: tasks, barriers, and who has used which buffer.

Happens-before is kept as in the interpreter: a clock holds for each agent the last of its steps that is known to be
over. An agent is a task (its accesses, and its marks: what it did at barriers) or a queue of asynchronous operations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from .code import Code
from .facts import Facts
from .values import Atom, Value, View

Agent: TypeAlias = tuple[Any, ...]
Clock: TypeAlias = dict[Agent, int]


@dataclass(frozen=True)
class Event:
    """One step of an agent, and the operation that made it."""

    agent: Agent
    step: int
    op: Operation

    def is_known_to(self, clock: Clock) -> bool:
        """Return whether it is over for who has this clock."""
        return clock.get(self.agent, 0) >= self.step


def join(clock: Clock, other: Clock) -> None:
    """Take over all that the other clock knows."""
    for agent, step in other.items():
        if clock.get(agent, 0) < step:
            clock[agent] = step


@dataclass(frozen=True)
class Turn:
    """A loop that a task is in, and the number of the turn: the induction variable is `base + stride * (origin + at)`,
    and it goes on while `origin + at` is below `limit`.
    """

    loop: scf.ForOp
    origin: Atom | None
    """None where all bounds are numbers."""
    at: int
    by: int
    base: Value
    stride: Value
    limit: Value


@dataclass
class Task:
    """A task."""

    code: Code
    number: int
    at: int = 0
    known: dict[SSAValue, Any] = field(default_factory=dict[SSAValue, Any])
    turns: tuple[Turn, ...] = ()
    clock: Clock = field(default_factory=Clock)
    step: int = 1
    issued: dict[Agent, int] = field(default_factory=dict[Agent, int])
    """Operations in each of its queues."""
    groups: tuple[int, ...] = ()
    """The number of the last copy in each of the last groups of cp.async."""
    left: dict[Atom, int] = field(default_factory=dict[Atom, int])
    """The loops that it has been in, by origin: how often."""
    has_started: bool = False
    named: int | None = None
    """The named barrier at which it has arrived and waits."""

    @property
    def has_ended(self) -> bool:
        """Return whether it has run all of its code."""
        return self.has_started and self.at >= len(self.code.steps)

    @property
    def accesses(self) -> Agent:
        """The agent of what it does to buffers."""
        return ("accesses", self.number)

    @property
    def marks(self) -> Agent:
        """The agent of what it does at barriers."""
        return ("marks", self.number)

    def copy(self) -> Task:
        """The same, to be changed."""
        return Task(
            self.code, self.number, self.at, self.known.copy(), self.turns, self.clock.copy(), self.step,
            self.issued.copy(), self.groups, self.left.copy(), self.has_started, self.named,
        )  # fmt: skip

    def event(self, agent: Agent, op: Operation) -> Event:
        """Return what it does now."""
        self.clock[agent] = self.step
        return Event(agent, self.step, op)

    def release(self) -> Clock:
        """Return what it knows, for others; what it does from now on is not in it."""
        self.clock[self.accesses] = self.clock[self.marks] = self.step
        released = self.clock.copy()
        self.step += 1
        return released


@dataclass
class Barrier:
    """An mbarrier."""

    name: str
    op: Operation
    count: int
    pending: int
    bytes: int = 0
    parity: int = 0
    arrived: tuple[Event, ...] = ()
    before: tuple[Event, ...] = ()
    """The arrivals of the phase before."""
    earlier: tuple[Event, ...] = ()
    """Those of the phase before that one."""
    passed: tuple[Event, ...] = ()
    """The waits for the phase before the current one, the last of each task."""
    gathering: Clock = field(default_factory=Clock)
    completed: Clock = field(default_factory=Clock)

    @property
    def lack(self) -> str:
        """Return what a phase that has begun waits for; empty for one that has not."""
        has_begun = self.pending < self.count or self.bytes
        lacks = [f"{self.pending} of {self.count} arrivals"] if self.pending and has_begun else []
        return " and ".join([*lacks, *([f"{self.bytes} bytes"] if self.bytes > 0 else [])])

    def copy(self) -> Barrier:
        """The same, to be changed."""
        return Barrier(
            self.name, self.op, self.count, self.pending, self.bytes, self.parity, self.arrived, self.before,
            self.earlier, self.passed, self.gathering.copy(), self.completed,
        )  # fmt: skip


@dataclass
class Named:
    """A named barrier."""

    threads: int = 0
    arrived: int = 0
    waiting: frozenset[int] = frozenset()
    """The tasks that wait for the current phase."""
    passed: dict[int, Clock] = field(default_factory=dict[int, Clock])
    """For tasks whose phase is complete, and that have not gone on yet, what they acquire."""
    events: tuple[Event, ...] = ()
    before: tuple[Event, ...] = ()
    gathering: Clock = field(default_factory=Clock)

    def copy(self) -> Named:
        """The same, to be changed."""
        return Named(
            self.threads, self.arrived, self.waiting, self.passed.copy(), self.events, self.before,
            self.gathering.copy(),
        )  # fmt: skip


@dataclass(frozen=True)
class Uses:
    """The last write of a part of a buffer, and the reads since."""

    write: Event | None = None
    reads: tuple[Event, ...] = ()
    lost: Operation | None = None
    """What has overwritten that since, through another array in the same memory."""


@dataclass
class State:
    """The state of a thread block on one path."""

    facts: Facts
    tasks: list[Task]
    barriers: dict[tuple[int, int | None], Barrier] = field(default_factory=dict[tuple[int, "int | None"], Barrier])
    """By allocation and number in it."""
    named: dict[int, Named] = field(default_factory=dict[int, Named])
    buffers: dict[View, Uses] = field(default_factory=dict[View, Uses])
    shifted: frozenset[Atom] = frozenset()
    """The origins of loops whose first turns are over: no task may enter them any more."""

    def copy(self) -> State:
        """The same, to be changed."""
        return State(
            self.facts.copy(),
            [task.copy() for task in self.tasks],
            {key: barrier.copy() for key, barrier in self.barriers.items()},
            {key: barrier.copy() for key, barrier in self.named.items()},
            self.buffers.copy(),
            self.shifted,
        )
