"""Costs of a run beside its instructions, by the instruction that asks for them: wavefronts of shared memory, sectors
of global memory, waits, bytes that TMA moves, operations of the tensor cores.

Shared memory is counted as `layouts.shared_access` says it works, global memory as `layouts.global_access` does: that
derives the numbers from layouts, this takes the addresses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.layouts.global_access import SECTOR_BYTES
from tlx_xdsl.layouts.shared_access import BANKS, WORD_BYTES, lanes_per_pass
from tlx_xdsl.numerics.arrays import Integers, distinct

from .cohort import LANES, Cohort

_ROWS_PER_PASS = 8
"""Rows of 16 bytes that ldmatrix and stmatrix move together."""


@dataclass(slots=True)
class Cost:
    """Cost of accesses of warps to a memory."""

    requests: int = 0
    """Accesses of warps."""
    taken: int = 0
    """Wavefronts, or sectors, that they take."""
    least: int = 0
    """Those that as many bytes take at least, by accesses of the same width."""

    def add(self, requests: int, taken: int, least: int) -> None:
        """Count more."""
        self.requests += requests
        self.taken += taken
        self.least += least


@dataclass(slots=True)
class LineTraffic:
    """Traffic of a line, or of an instruction."""

    shared: Cost = field(default_factory=Cost)
    """Its wavefronts: passes through the banks of shared memory."""
    sectors: Cost = field(default_factory=Cost)
    """Its sectors of 32 bytes of global memory."""
    waits: int = 0
    """How often a warp found that it had to wait, in the order that this machine runs warps in."""
    copied: int = 0
    """Bytes that copies by TMA have moved to or from shared memory."""
    products: int = 0
    """Multiplications and additions of the tensor cores."""

    def add(self, other: LineTraffic) -> None:
        """Count what another has taken, too."""
        self.shared.add(other.shared.requests, other.shared.taken, other.shared.least)
        self.sectors.add(other.sectors.requests, other.sectors.taken, other.sectors.least)
        self.waits += other.waits
        self.copied += other.copied
        self.products += other.products


class Traffic:
    """Counts by the number of the instruction."""

    def __init__(self) -> None:
        self._found: dict[int, LineTraffic] = {}

    @property
    def by_instruction(self) -> Mapping[int, LineTraffic]:
        """Return what each instruction has taken."""
        return self._found

    def _at(self, cohort: Cohort) -> LineTraffic:
        return self._found.setdefault(cohort.at, LineTraffic())

    def shared_access(self, cohort: Cohort, mask: Any, places: Integers, size: int) -> None:
        """The threads of a mask access `size` bytes of shared memory each."""
        warps, lanes = (each if mask is None else each[mask] for each in (cohort.warp_of, cohort.lane))
        passes = warps * LANES + lanes // lanes_per_pass(size)
        self._at(cohort).shared.add(len(distinct(warps)), *wavefronts(passes, places, size))

    def shared_rows(self, cohort: Cohort, places: Integers, rows: int, size: int) -> None:
        """Each warp accesses so many rows of a matrix."""
        passes = np.arange(len(places)) // _ROWS_PER_PASS
        self._at(cohort).shared.add(len(places) // rows, *wavefronts(passes, places, size))

    def global_access(self, cohort: Cohort, mask: Any, addresses: NDArray[np.uint64], size: int) -> None:
        """The threads of a mask access `size` bytes of global memory each."""
        warps = cohort.warp_of if mask is None else cohort.warp_of[mask]
        self._at(cohort).sectors.add(*sectors(warps, addresses.astype(np.int64), size))

    def wait(self, cohort: Cohort, threads: NDArray[np.bool_]) -> None:
        """Threads have to wait."""
        self._at(cohort).waits += len(distinct(cohort.warp_of[threads]))

    def copy(self, cohort: Cohort, size: int) -> None:
        """TMA moves bytes."""
        self._at(cohort).copied += size

    def product(self, cohort: Cohort, count: int, m: int, n: int, k: int) -> None:
        """The tensor cores multiply matrices of [m, k] and [k, n], so many times."""
        self._at(cohort).products += 2 * count * m * n * k


def wavefronts(passes: Integers, places: Integers, size: int) -> tuple[int, int]:
    """The wavefronts of accesses of `size` bytes, those of one number in `passes` served together; and the passes."""
    numbers, times = by_pass(passes, places, size)
    return int(times.sum()), len(numbers)


def by_pass(passes: Integers, places: Integers, size: int) -> tuple[Integers, Integers]:
    """The number of each pass, and the wavefronts that it takes.

    A pass takes as many wavefronts as its busiest bank has to give different words.
    """
    if not len(places):
        return passes, passes
    words = places[:, None] // WORD_BYTES + np.arange(-(-size // WORD_BYTES))
    count = int(words.max()) + 1
    asked = distinct((passes[:, None] * count + words).ravel())
    numbers, banks = asked // count, asked % count % BANKS
    pairs, times = np.unique(numbers * BANKS + banks, return_counts=True)
    first = np.flatnonzero(np.diff(pairs // BANKS, prepend=-1))
    return pairs[first] // BANKS, np.maximum.reduceat(times, first)


def sectors(warps: Integers, addresses: Integers, size: int) -> tuple[int, int, int]:
    """The requests of accesses of `size` bytes, one for each warp; the sectors that they touch, and at least would.

    At the least the different bytes of a request lie in as few sectors as hold them.
    """
    if not len(addresses):
        return 0, 0, 0
    order = np.lexsort((addresses, warps))
    warps, addresses = warps[order], addresses[order]
    requests, starts = np.unique(warps, return_index=True)
    moves = np.diff(warps, prepend=-1) != 0
    different = moves | (np.diff(addresses, prepend=-1) != 0)
    least = -(-np.add.reduceat(different.astype(np.int64), starts) * size // SECTOR_BYTES)
    touched = 0
    # An access that is wider than a sector touches several.
    for part in range(0, size, SECTOR_BYTES):
        numbers = (addresses + part) // SECTOR_BYTES
        touched += int((moves | (np.diff(numbers, prepend=-1) != 0)).sum())
    return len(requests), touched, int(least.sum())
