"""Threads that are at the same place and run together, as one axis of numpy arrays.

A cohort holds threads of any warps and CTAs of a wave. Where a branch parts them it becomes two; threads of one warp
that part meet again where all ways from the branch meet. Those that wait at the same place are joined by the scheduler.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.numerics.arrays import Array, Booleans, Integers, distinct

from .flow import EXIT
from .memory.surroundings import Surroundings, Trap


class Awaited(Protocol):
    """A barrier of any kind."""

    def passed(self, phase: int) -> bool:
        """Return whether a phase, by its number or its parity, is complete."""
        ...

    def describe(self, phase: int) -> str:
        """Say what is waited for, and what it lacks."""
        ...


@dataclass(frozen=True, slots=True)
class Item:
    """Some threads of a cohort wait for a phase of a barrier."""

    mask: Booleans
    barrier: Awaited
    phase: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Barriers for which threads of a cohort wait; those in no item do not wait."""

    items: tuple[Item, ...]

    def blocked(self) -> Booleans | None:
        """The threads that have to wait still; None if there are none."""
        found: Booleans | None = None
        for item in self.items:
            if not item.barrier.passed(item.phase):
                found = item.mask if found is None else found | item.mask
        return found

    def of(self, mask: Booleans) -> Wait:
        """Return what some of the threads wait for."""
        items = ((item, item.mask[mask]) for item in self.items)
        return Wait(tuple(Item(kept, item.barrier, item.phase) for item, kept in items if kept.any()))


LANES = 32
"""Threads of a warp."""
_spread: dict[tuple[int, int], Array] = {}
_MOST_SPREAD = 20_000


@dataclass(eq=False, slots=True)
class Meeting:
    """Place at which threads of a warp that have parted go on together."""

    block: int
    expected: int
    """Threads that have not ended."""
    parked: list[Cohort] = field(default_factory=list["Cohort"])


class Cohort:
    """Threads of a wave, by their numbers in rising order, with their registers."""

    def __init__(self, wave: Surroundings, threads: Integers, registers: list[Any], pc: int):
        self.wave = wave
        self.pc = pc
        """The block that runs next."""
        self.at = 0
        """The instruction that has run last, of those with an effect."""
        self.waiting: Wait | None = None
        self.ticket: Wait | None = None
        """What it has arrived at, at the instruction where it waits."""
        self.meetings: tuple[Meeting, ...] = ()
        self.turn = 0
        """When it has run last."""
        self._set(threads, registers)

    def _set(self, threads: Integers, registers: list[Any]) -> None:
        self.threads = threads
        self.n = len(threads)
        self.R = registers
        for name in ("ctas", "tids", "warp_of", "warps", "whole", "first_lanes", "base", "cta_groups", "lane"):
            self.__dict__.pop(name, None)
        self._specials: dict[str, Any] = {}

    # What the threads are --------------------------------------------------------------------------------------------

    @cached_property
    def ctas(self) -> Integers:
        """The number of each thread's CTA in the wave."""
        return self.threads // self.wave.padded_threads

    @cached_property
    def tids(self) -> Integers:
        """The number of each thread in its CTA."""
        return self.threads % self.wave.padded_threads

    @cached_property
    def lane(self) -> Integers:
        """The number of each thread in its warp."""
        return self.threads % LANES

    @cached_property
    def warp_of(self) -> Integers:
        """The number of each thread's warp in the wave."""
        return self.threads // LANES

    @cached_property
    def whole(self) -> bool:
        """Return whether all threads of each warp are here."""
        return self.n % LANES == 0 and bool(
            (self.threads[LANES - 1 :: LANES] - self.threads[::LANES] == LANES - 1).all()
        )

    @cached_property
    def first_lanes(self) -> Integers:
        """The place in the cohort of the first thread of each warp that is here."""
        if self.whole:
            return np.arange(0, self.n, LANES)
        return np.unique(self.warp_of, return_index=True)[1]

    @cached_property
    def warps(self) -> Integers:
        """The warps that have threads here, by their numbers in the wave."""
        return self.warp_of[self.first_lanes]

    @cached_property
    def base(self) -> Integers:
        """The place of each thread's shared memory in that of the wave."""
        return self.ctas * self.wave.shared.stride

    @cached_property
    def cta_groups(self) -> list[tuple[int, slice]]:
        """The CTAs that have threads here, each with the range of its threads."""
        starts = np.flatnonzero(np.diff(self.ctas, prepend=-1))
        ends = [*starts[1:].tolist(), self.n]
        return [(int(self.ctas[start]), slice(int(start), int(end))) for start, end in zip(starts, ends, strict=True)]

    # What the generated code asks for --------------------------------------------------------------------------------

    def spread(self, value: Any) -> Array:
        """A constant for every thread."""
        key = (id(value), self.n)
        found = _spread.get(key)
        if found is None or found.dtype != value.dtype or found[0] != value:
            if len(_spread) > _MOST_SPREAD:
                _spread.clear()
            found = _spread[key] = np.full(self.n, value)
        return found

    def special(self, name: str) -> Array:
        """A special register."""
        found = self._specials.get(name)
        if found is None:
            found = self._specials[name] = self.wave.special(self, name)
        return found

    def shared_address(self, offset: int) -> NDArray[np.uint32]:
        """The shared address of a byte of each thread's CTA."""
        key = f"shared {offset}"
        found = self._specials.get(key)
        if found is None:
            found = self._specials[key] = self.wave.shared_address(self, offset)
        return found

    def part(self, mask: Booleans, yes: int, no: int, meets: int) -> int:
        """Part at a branch: the threads of the mask go to `yes`, which is returned, the others to `no`."""
        if meets != EXIT and self._parts_a_warp(mask):
            self.meetings = (*self.meetings, Meeting(meets, self.n))
        self.leave(~mask, no)
        live = self.wave.program.live_in(yes)
        self._set(self.threads[mask], [None if r is None or i not in live else r[mask] for i, r in enumerate(self.R)])
        return yes

    def table(self, index: NDArray[np.uint32], targets: tuple[int, ...], meets: int) -> int:
        """Go where a table says, by an index for each thread."""
        if int(index.max()) >= len(targets):
            raise Trap(f"the index {int(index.max())} is outside of the {len(targets)} branch targets")
        found = distinct(index)
        if len(found) == 1:
            return targets[int(found[0])]
        if meets != EXIT and any(self._parts_a_warp(index == each) for each in found):
            self.meetings = (*self.meetings, Meeting(meets, self.n))
        for each in found[1:]:
            self.leave(index == each, targets[int(each)])
        mask = index == found[0]
        target = targets[int(found[0])]
        live = self.wave.program.live_in(target)
        self._set(self.threads[mask], [None if r is None or i not in live else r[mask] for i, r in enumerate(self.R)])
        return target

    def _parts_a_warp(self, mask: Booleans) -> bool:
        if not self.whole:
            return bool(np.isin(self.warp_of[mask], self.warp_of[~mask]).any())
        counts = np.count_nonzero(mask.reshape(-1, LANES), axis=1)
        return bool(((counts != 0) & (counts != LANES)).any())

    def leave(self, mask: Booleans, pc: int) -> Cohort:
        """Make a cohort of some of the threads, which goes on elsewhere; they are still here, too."""
        live = self.wave.program.live_in(pc)
        registers = [None if r is None or i not in live else r[mask] for i, r in enumerate(self.R)]
        other = Cohort(self.wave, self.threads[mask], registers, pc)
        other.meetings = self.meetings
        other.turn = self.turn
        other.at = self.at
        self.wave.cohorts.append(other)
        return other

    def divide(self, mask: Booleans) -> Cohort:
        """Let the threads of the mask go on alone, at the same place; they are no longer here."""
        other = self.leave(mask, self.pc)
        rest = ~mask
        if self.ticket is not None:
            other.ticket = self.ticket.of(mask)
            self.ticket = self.ticket.of(rest)
        self._set(self.threads[rest], [None if r is None else r[rest] for r in self.R])
        self.waiting = None if self.ticket is None else self.ticket
        return other


def joined(cohorts: list[Cohort]) -> Cohort:
    """One cohort of several that are at the same place."""
    first = cohorts[0]
    threads = np.concatenate([each.threads for each in cohorts])
    order = np.argsort(threads)
    live = first.wave.program.live_in(first.pc)
    registers: list[Any] = [None] * len(first.R)
    for number in live:
        parts = [each.R[number] for each in cohorts]
        if all(part is not None for part in parts):
            registers[number] = np.concatenate(parts)[order]
    made = Cohort(first.wave, threads[order], registers, first.pc)
    made.meetings = first.meetings
    made.turn = min(each.turn for each in cohorts)
    made.at = first.at
    return made
