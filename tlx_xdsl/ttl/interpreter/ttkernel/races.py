"""Happens-before between the threads of a grid, by vector clocks, and accesses to pages that it does not order.

A thread counts its epochs: one ends where it gives something on. What it gives (a push, a pop, a change of a semaphore)
carries the moment: its own epoch, and the epochs of others that it knew then. Who waits for it knows them, too.

    core (0, 0): writes page 0, barrier, increments s      epoch 1 ends with the increment
    core (1, 0): waits for s >= 1, writes page 0           knows epoch 1 of core (0, 0): the writes are ordered

A transfer reads or writes at any time from its begin to its barrier. So an access comes after another one if, when it
began, its thread knew the epoch in which the other one ended. Only the changes that let a wait go on are known by it:
`wait_min(1)` after two increments knows the first one alone, for the second one may come later.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from xdsl.ir import Operation

from tlx_xdsl.interpreter.faults import Fault, Race, fault_at, location_of, remedy

from ...tiles import TILE

if TYPE_CHECKING:
    from .machine import CoreThread, Tensor


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

    thread: CoreThread
    op: Operation
    epoch: int
    """In which it has."""


@dataclass
class PageAccesses:
    """The last write of a page, and the reads since."""

    write: Access | None = None
    reads: dict[int, Access] = field(default_factory=dict[int, Access])
    """The last one of each thread, by its number."""


def note_read(op: Operation, thread: CoreThread, tensor: Tensor, page: int, begun: Moment) -> None:
    """Note that a read of a page, which has `begun` some time ago, has landed.

    Raises Race where a write is not ordered before it.
    """
    found = tensor.accesses.setdefault(page, PageAccesses())
    if (earlier := found.write) is not None and thread.machine.checks and not _is_before(earlier, begun):
        raise _race(op, thread, "reads", tensor, page, earlier, "writes")
    found.reads[thread.agent] = Access(thread, op, thread.clock.epoch)
    tensor.reads.setdefault(page, []).append((thread, op))


def note_write(op: Operation, thread: CoreThread, tensor: Tensor, page: int, begun: Moment) -> None:
    """Note that a write to a page, which has `begun` some time ago, has landed.

    Raises Race where another thread's write, or any read, is not ordered before it. Writes of one thread to one page
    arrive in their order.
    """
    found = tensor.accesses.setdefault(page, PageAccesses())
    earlier = found.write
    if thread.machine.checks:
        if earlier is not None and earlier.thread is not thread and not _is_before(earlier, begun):
            raise _race(op, thread, "writes", tensor, page, earlier, "writes")
        for read in found.reads.values():
            if not _is_before(read, begun):
                raise _race(op, thread, "writes", tensor, page, read, "reads")
    if earlier is not None and earlier.thread is thread and not found.reads:
        tensor.overwritten[page] = (earlier.op, op)
    found.write = Access(thread, op, thread.clock.epoch)
    found.reads.clear()
    tensor.written.add(page)


def _is_before(earlier: Access, begun: Moment) -> bool:
    """Return whether an access has ended before another one began."""
    agent = earlier.thread.agent
    if agent == begun.agent:
        return earlier.epoch < begun.epoch
    return begun.known.get(agent, 0) >= earlier.epoch


def _race(op: Operation, thread: CoreThread, verb: str, tensor: Tensor, page: int, earlier: Access, did: str) -> Fault:
    other = earlier.thread
    if other is thread:
        advice = "wait for the first transfer before the second one begins"
        who = "the same thread"
    else:
        advice = "wait for the transfer, then increment a semaphore that the other thread waits for before it begins"
        who = other.label
    return fault_at(
        op,
        f"race: {thread.label} {verb} {place_of_page(tensor, page)}, which {who} {did}, and nothing orders them",
        [f"{location_of(earlier.op)}: {who} {did} it here", remedy(advice)],
        Race,
    )


def place_of_page(tensor: Tensor, page: int) -> str:
    """`page 5 of tensor 'a' (tile row 1, column 1)`."""
    layout, words = tensor.layout, f"page {page} of tensor '{tensor.name}'"
    columns = layout.padded(tensor.shape)[-1] // TILE
    match layout.kind:
        case "interleaved":
            return f"{words} (row {page})"
        case "sharded":
            height, width = layout.tiles_per_shard
            shard, tile = divmod(page, height * width)
            row = shard // layout.grid[1] * height + tile // width
            column = shard % layout.grid[1] * width + tile % width
        case _:
            row, column = divmod(page, columns)
    return f"{words} (tile row {row}, column {column})"
