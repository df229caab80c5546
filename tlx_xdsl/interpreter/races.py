"""Accesses to bytes that nothing orders.

Each access is checked against earlier ones to the same bytes with the clock of who makes it: a read must be ordered
after the last write, a write after the last write and all reads since. An asynchronous access counts from the moment
that it is issued, since nothing keeps the hardware from making it then. So a missing wait is found even where this
schedule happens to run things in the right order.

Accesses are kept per footprint, the set of bytes of a view. There are few different ones in a kernel, so an access
costs as much as footprints overlap, and not as much as bytes do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from xdsl.ir import Operation

from tlx_xdsl.numerics.arrays import Integers, distinct

from .clocks import Clock
from .faults import Race, fault_at, place_note, remedy


@dataclass(frozen=True, slots=True)
class Footprint:
    """A set of bytes: intervals from a first byte to the one after the last, in ascending order."""

    intervals: tuple[tuple[int, int], ...]

    @staticmethod
    def of(offsets: Integers, size: int) -> Footprint:
        """The bytes of elements of `size` bytes that begin at `offsets`."""
        starts = distinct(offsets)
        gaps = np.flatnonzero(np.diff(starts) > size)
        firsts = starts[np.concatenate(([0], gaps + 1))]
        ends = starts[np.concatenate((gaps, [len(starts) - 1]))] + size
        return Footprint(tuple(zip(firsts.tolist(), ends.tolist(), strict=True)))

    @property
    def start(self) -> int:
        """The lowest byte."""
        return self.intervals[0][0]

    @property
    def end(self) -> int:
        """The byte after the highest."""
        return self.intervals[-1][1]

    def overlaps(self, other: Footprint) -> bool:
        """Return whether a byte is in both."""
        if self.start >= other.end or other.start >= self.end:
            return False
        if len(self.intervals) == 1 == len(other.intervals):
            return True
        mine, theirs = np.array(self.intervals), np.array(other.intervals)
        # Of our intervals, the first that ends after the start of each of theirs.
        at = np.searchsorted(mine[:, 1], theirs[:, 0], side="right")
        inside = at < len(mine)
        return bool((mine[at[inside], 0] < theirs[inside, 1]).any())


class Source(Protocol):
    """The queue that an asynchronous access comes from."""

    hint: str
    """A note for a race between two accesses of this queue."""

    def end(self) -> str:
        """Describe by what a task knows that an access is over, and for which it has waited."""
        ...


@dataclass(frozen=True, slots=True)
class Actor:
    """The agent of an access: a task itself, or an asynchronous operation for it."""

    agent: int
    step: int
    op: Operation
    what: str
    """Its name in reports, such as `partition 0` or `TMA load of the default task`."""
    is_async: bool = False
    """True if it goes through the async proxy."""
    queue: Source | None = None
    """The queue of an asynchronous operation."""


@dataclass(slots=True)
class Cell:
    """The accesses to one footprint."""

    footprint: Footprint
    write: Actor | None = None
    reads: dict[int, Actor] = field(default_factory=dict[int, Actor])
    neighbours: list[Cell] = field(default_factory=list["Cell"])
    """The cells with a byte of this one, itself included."""
    written_as: tuple[int, Integers] | None = None
    """The number of the last write, and the byte of each element that was written."""

    def read(self, actor: Actor, clock: Clock, name: str) -> None:
        """Note a read of the bytes, which belong to `name`.

        Raises Fault when a write is not ordered before it.
        """
        for cell in self.neighbours:
            if (write := cell.write) is not None:
                _check(write, actor, clock, name, "reads", "written")
        self.reads[actor.agent] = actor

    def overwrite(self, actor: Actor, clock: Clock, name: str) -> None:
        """Note a write of the bytes, which belong to `name`.

        Raises Fault when an earlier access is not ordered before it.
        """
        for cell in self.neighbours:
            if (write := cell.write) is not None:
                _check(write, actor, clock, name, "writes", "written")
            for read in cell.reads.values():
                _check(read, actor, clock, name, "writes", "read")
        self.write = actor
        self.reads.clear()

    def end(self, actor: Actor, clock: Clock, name: str) -> None:
        """Check that nothing uses the bytes any more, which belong to `name`.

        Raises Fault when an earlier access is not known to be over.
        """
        for cell in self.neighbours:
            if (write := cell.write) is not None:
                _check(write, actor, clock, name, "frees", "written")
            for read in cell.reads.values():
                _check(read, actor, clock, name, "frees", "read")


class Races:
    """The accesses to one memory."""

    def __init__(self) -> None:
        self._cells: dict[Footprint, Cell] = {}

    def cell(self, footprint: Footprint) -> Cell:
        """The cell of a footprint, made when it is first met."""
        if (cell := self._cells.get(footprint)) is None:
            cell = Cell(footprint)
            for other in self._cells.values():
                if footprint.overlaps(other.footprint):
                    cell.neighbours.append(other)
                    other.neighbours.append(cell)
            cell.neighbours.append(cell)
            self._cells[footprint] = cell
        return cell

    def clear(self) -> None:
        """Forget all accesses."""
        for cell in self._cells.values():
            cell.write = cell.written_as = None
            cell.reads.clear()

    def __iter__(self) -> Iterator[Cell]:
        """Iterate over all cells."""
        return iter(self._cells.values())


def _check(before: Actor, now: Actor, clock: Clock, name: str, verb: str, past: str) -> None:
    if clock.seen.get(before.agent, 0) < before.step:
        raise _race(before, now, name, verb, past)
    if now.is_async and past == "written" and not before.is_async and clock.fenced.get(before.agent, 0) < before.step:
        raise fault_at(
            now.op,
            f"{now.what} {verb} '{name}', which {before.what} has written without a proxy fence in between: "
            "the write need not be visible to the async proxy",
            (
                place_note("written at", before.op),
                remedy("put tlx.fence_async_shared() after the write, before the operation that releases it to others"),
            ),
        )


def _race(before: Actor, now: Actor, name: str, verb: str, past: str) -> Race:
    if before.agent == now.agent:
        message = f"{now.what} {verb} '{name}' while an earlier one may still be in flight"
    else:
        message = f"{now.what} {verb} '{name}', and nothing orders it after {before.what}, by which it is {past}"
    notes = [place_note(f"{past} at", before.op)]
    if before.queue is not None:
        notes.append(remedy(f"{before.queue.end()}; this line must come after that"))
        if before.queue is now.queue and before.queue.hint:
            notes.append(remedy(before.queue.hint))
    else:
        notes.append(
            remedy(f"a barrier must order them: {before.what} arrives at it after that line, this one waits for it")
        )
    race = fault_at(now.op, message, notes, Race)
    assert isinstance(race, Race)
    race.before = before
    return race
