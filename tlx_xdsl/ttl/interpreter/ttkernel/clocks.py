"""Happens-before between the threads of a grid, by vector clocks.

A thread counts its epochs: one ends where it gives something on. What it gives (a push, a pop, a change of a semaphore)
carries the moment: its own epoch, and the epochs of others that it knew then. Who waits for it knows them, too.

    core (0, 0): writes page 0, barrier, increments s      epoch 1 ends with the increment
    core (1, 0): waits for s >= 1, writes page 0           knows epoch 1 of core (0, 0): the writes are ordered

Only the changes that let a wait go on are known by it: `wait_min(1)` after two increments knows the first one alone,
for the second one may come later.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from xdsl.ir import Operation

from .threads import Thread


class Moment(NamedTuple):
    """A time in the life of a thread."""

    agent: int
    """The thread's number."""
    epoch: int
    known: Mapping[int, int]
    """Epochs of other threads that are over by then."""
    time: float = 0.0
    """In cycles, where a run is timed (`ttl.cost`)."""


START = Moment(-1, 0, {})
"""Before everything."""


@dataclass
class Clock:
    """A thread's own time, and what it knows of others'."""

    agent: int
    epoch: int = 1
    known: Mapping[int, int] = field(default_factory=dict[int, int])
    """Never changed in place, as moments have it, too."""
    time: float = 0.0

    @property
    def now(self) -> Moment:
        """The present, with which an access begins."""
        return Moment(self.agent, self.epoch, self.known, self.time)

    def release(self) -> Moment:
        """End the epoch; what is done from now on is not a part of the moment."""
        moment = self.now
        self.epoch += 1
        return moment

    def acquire(self, moment: Moment) -> None:
        """Know what was over at a moment."""
        if moment.agent == self.agent or self.known.get(moment.agent, 0) >= moment.epoch:
            return
        known = dict(self.known)
        for agent, epoch in (*moment.known.items(), (moment.agent, moment.epoch)):
            if known.get(agent, 0) < epoch:
                known[agent] = epoch
        self.known = known
        self.time = max(self.time, moment.time)


@dataclass
class Trail:
    """Moments at which one thread has raised a count."""

    counts: list[int] = field(default_factory=list[int])
    moments: list[Moment] = field(default_factory=list[Moment])

    def add(self, count: int, moment: Moment) -> None:
        """Note that the count is so high from a moment on."""
        self.counts.append(count)
        self.moments.append(moment)

    def reached(self, count: int) -> Moment:
        """The moment from which on the count is at least so high."""
        return self.moments[bisect_left(self.counts, count)] if count > 0 else START


class Access(NamedTuple):
    """An access that has ended."""

    thread: Thread
    op: Operation
    epoch: int
    """In which it has."""


@dataclass
class PageAccesses:
    """The last write of a page, and the reads since."""

    write: Access | None = None
    reads: dict[int, Access] = field(default_factory=dict[int, Access])
    """The last one of each thread, by its number."""
