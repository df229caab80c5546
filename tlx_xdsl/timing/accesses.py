"""Accesses of warps to memory as the clock counts them: wavefronts of shared memory, sectors and pages of global one.

A loop asks for the same pattern again and again, moved by whole stages of a ring or rows of a matrix. Patterns are kept
by their addresses relative to the first one, so each is worked out once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tlx_xdsl.layouts.global_access import SECTOR_BYTES
from tlx_xdsl.layouts.shared_access import lanes_per_pass
from tlx_xdsl.numerics.arrays import Integers, distinct
from tlx_xdsl.ptx.cohort import LANES, Cohort
from tlx_xdsl.ptx.traffic import by_pass

PAGE_BITS = 11
"""Pages of 2,048 bytes, the grain in which the model of the L2 cache remembers what was touched."""
BANK_BYTES = 128
"""Bytes of shared memory that one wavefront moves."""
_PASS_OF_ROWS = 8
"""Rows of 16 bytes that ldmatrix and stmatrix move together."""
_MOST = 4096
"""Patterns that are kept."""


class Patterns:
    """Patterns of accesses that were worked out."""

    def __init__(self) -> None:
        self._found: dict[Any, Any] = {}

    def _kept(self, key: Any, make: Any) -> Any:
        if (found := self._found.get(key)) is None:
            if len(self._found) > _MOST:
                self._found.clear()
            found = self._found[key] = make()
        return found

    def shared(self, cohort: Cohort, mask: Any, places: Integers, size: int) -> list[tuple[int, int, int]]:
        """The warps that access shared memory, each with its wavefronts and bytes."""

        def make() -> list[tuple[int, int, int]]:
            warps, lanes = (each if mask is None else each[mask] for each in (cohort.warp_of, cohort.lane))
            per_warp = LANES // lanes_per_pass(size)
            numbers, times = by_pass(warps * per_warp + lanes // lanes_per_pass(size), places - base, size)
            return _sums(numbers // per_warp, times, warps, size)

        base = int(places.min()) // BANK_BYTES * BANK_BYTES
        return self._kept(("shared", size, _who(cohort, mask), (places - base).tobytes()), make)

    def rows(self, cohort: Cohort, mask: Any, places: Integers, rows: int, size: int) -> list[tuple[int, int, int]]:
        """The warps that access so many rows each, with their wavefronts and bytes."""

        def make() -> list[tuple[int, int, int]]:
            running = cohort.warps if mask is None else cohort.warps[mask.reshape(-1, LANES)[:, 0]]
            numbers, times = by_pass(np.arange(len(places)) // _PASS_OF_ROWS, places - base, size)
            return _sums(running[numbers * _PASS_OF_ROWS // rows], times, np.repeat(running, rows), size)

        base = int(places.min()) // BANK_BYTES * BANK_BYTES
        return self._kept(("rows", rows, _who(cohort, mask), (places - base).tobytes()), make)

    def of_global(
        self, cohort: Cohort, mask: Any, addresses: Any, size: int
    ) -> list[tuple[int, int, int, tuple[int, ...]]]:
        """The warps that access global memory, each with its bytes, its sectors, and its runs of pages."""
        places = addresses.astype(np.int64)
        first = int(places.min()) >> PAGE_BITS
        places -= first << PAGE_BITS

        def make() -> list[tuple[int, int, int, tuple[int, ...]]]:
            warps = cohort.warp_of if mask is None else cohort.warp_of[mask]
            found: list[tuple[int, int, int, tuple[int, ...]]] = []
            starts = np.flatnonzero(np.diff(warps, prepend=-1))
            for part in np.split(np.arange(len(warps)), starts[1:]):
                own = places[part]
                ends = np.concatenate([own, own + (size - 1)])
                count = len(distinct(ends // SECTOR_BYTES))
                found.append((int(warps[part[0]]), len(own) * size, count, runs(ends >> PAGE_BITS)))
            return found

        kept = self._kept(("global", size, _who(cohort, mask), places.tobytes()), make)
        return [(warp, moved, count, tuple(page + first for page in pages)) for warp, moved, count, pages in kept]

    def units(self, addresses: Integers) -> tuple[int, tuple[int, ...]]:
        """The sectors that a bulk copy of units of at most 16 bytes touches, and its runs of pages."""
        first = int(addresses[0]) >> PAGE_BITS
        places = addresses - (first << PAGE_BITS)

        def make() -> tuple[int, Integers]:
            # Units of a sector follow each other.
            sectors = 1 + int(np.count_nonzero(np.diff(places // SECTOR_BYTES)))
            return sectors, np.array(runs(places >> PAGE_BITS), dtype=np.int64)

        sectors, pages = self._kept(places.tobytes(), make)
        return sectors, tuple((pages + first).tolist())


def _who(cohort: Cohort, mask: Any) -> tuple[Any, ...]:
    threads = cohort.warps if cohort.whole else cohort.threads
    return threads.tobytes(), None if mask is None else mask.tobytes()


def _sums(warps: Integers, times: Integers, all_warps: Integers, size: int) -> list[tuple[int, int, int]]:
    """The wavefronts and the bytes of each warp."""
    numbers, counts = np.unique(all_warps, return_counts=True)
    totals = np.bincount(np.searchsorted(numbers, warps), weights=times, minlength=len(numbers))
    return [
        (warp, int(total), count * size)
        for warp, total, count in zip(numbers.tolist(), totals.tolist(), counts.tolist(), strict=True)
    ]


def runs(pages: Integers) -> tuple[int, ...]:
    """The first and the last page of each run of pages."""
    found = pages[np.flatnonzero(np.diff(pages, prepend=-1))]
    if len(found) == 1:
        return int(found[0]), int(found[0])
    found = distinct(found)
    breaks = np.flatnonzero(np.diff(found) > 1)
    firsts = found[np.concatenate([[0], breaks + 1])]
    lasts = found[np.concatenate([breaks, [len(found) - 1]])]
    return tuple(np.stack([firsts, lasts], 1).ravel().tolist())
