"""Global memory as one multiprocessor of a launch sees it: its way to the L2 cache, and its shares of L2 and DRAM.

Only a few CTAs are replayed, so what the caches hold is estimated for the launch as a whole: how many bytes all of its
CTAs ask for, how many of them DRAM must give at least once, and how many CTAs ask for the same bytes at about the same
time. A multiprocessor then has its share of both bandwidths, and each access the mean latency.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from tlx_xdsl.layouts.global_access import SECTOR_BYTES

from .accesses import PAGE_BITS
from .chips import Chip
from .trace import Event, Launch, Trace

_CTAS = 1 << 20
"""More than a replay has."""
_PAGE = 1 << PAGE_BITS
"""Bytes of a page of `Event.lines`."""
_READS = frozenset(("load", "tma_load", "copy"))
_WRITES = frozenset(("store", "tma_store"))


class Server:
    """A server of one request after the other."""

    __slots__ = ("busy", "free")

    def __init__(self):
        self.free = 0.0
        self.busy = 0.0
        """Cycles for which it has served."""

    def take(self, now: float, cycles: float) -> float:
        """Serve a request of so many cycles, and return when it is done."""
        self.free = free = (self.free if self.free > now else now) + cycles
        self.busy += cycles
        return free


@dataclass(frozen=True)
class Caching:
    """The parts of a launch's bytes that the L2 cache does not have."""

    missed: float = 1.0
    """Of the bytes that are read, the part that DRAM gives."""
    slow: float = 1.0
    """Of the loads, the part that waits for DRAM, whether another CTA has asked for the same bytes before or not."""
    common: float = 0.0
    """Of the bytes that are read, the part that another CTA reads at about the same time, too."""
    written: float = 1.0
    """Of the bytes that are written, the part that goes to DRAM before the launch ends."""
    read_bytes: float = 0.0
    """That DRAM gives to the launch."""
    written_bytes: float = 0.0
    """That DRAM gets of the launch."""


def longer_than_its_steps(trace: Trace) -> float:
    """Return how many times as much the CTAs of a trace do as their steps say: 1 for a trace that is whole."""
    if trace.whole:
        return 1.0
    warp = max(trace.warps, key=lambda each: len(each.steps))
    return max(1.0, warp.ran / max(1, len(warp.steps)))


def _pages(lines: Sequence[int]) -> Iterable[int]:
    for first, last in zip(lines[::2], lines[1::2], strict=True):
        yield from range(first, last + 1)


def caching(traces: Sequence[Trace], launch: Launch, chip: Chip, resident: int, beside: int = 1) -> Caching:
    """Estimate what the L2 cache does, from sampled CTAs; `resident` run at once, `beside` on a multiprocessor.

    DRAM gives each byte at least once. Where the cache cannot hold all of them, each wave of CTAs reads its own again:
    CTAs that compute neighbouring tiles of a matrix share its rows and columns, so a wave of W of them reads about
    sqrt(W) times what one does.
    """
    sampled = sum(len(trace.ctas) for trace in traces)
    read = written = alone = 0.0
    read_pages: set[int] = set()
    written_pages: set[int] = set()
    for trace in traces:
        of_trace: set[int] = set()
        asked = put = 0.0
        for event in trace.events:
            if event.kind in _READS:
                asked += event.size
                of_trace.update(_pages(event.lines))
            elif event.kind in _WRITES:
                put += event.sectors * SECTOR_BYTES or event.size
                written_pages.update(_pages(event.lines))
        # What a CTA reads again its L1 cache may still have.
        own = len(of_trace) * _PAGE
        if own * beside <= chip.l1_bytes:
            asked = min(asked, own)
        longer = longer_than_its_steps(trace)
        read += asked * longer
        written += put * longer
        alone += min(asked, own) * longer
        read_pages |= of_trace
    if not sampled:
        return Caching()
    ctas = prod(launch.grid)
    requested, stored, unique = (each * ctas / sampled for each in (read, written, alone))
    arrays = float(sum(launch.array_bytes)) or unique
    in_place = bool(read_pages & written_pages)
    least = min(unique, max(arrays if in_place else arrays - stored, min(alone, arrays)))
    resident = max(1, min(resident, ctas))
    waves = ctas / resident
    of_one = unique / ctas
    of_wave = min(resident * of_one, max(resident * of_one * least / max(unique, 1.0), resident**0.5 * of_one))
    again = max(0.0, min(waves * of_wave, unique) - least)
    given = least + again * max(0.0, 1.0 - chip.l2_bytes / max(least, 1.0))
    missed = min(1.0, given / requested) if requested else 0.0
    sharers = max(1.0, resident * of_one / max(of_wave, 1.0))
    slow = min(1.0, missed * sharers)
    kept = chip.l2_bytes / 2
    # What is written again, as sums are, is in the cache.
    gone = max(0.0, min(stored, arrays) - kept)
    return Caching(missed, slow, 1.0 - 1.0 / sharers, gone / stored if stored else 0.0, given, gone)


class _Near:
    """The L1 cache, by pages: as many bytes as a page has are fetched of it before it is taken to be there."""

    def __init__(self, capacity: float):
        self._most = max(1, int(capacity // _PAGE))
        self._fetched: OrderedDict[int, float] = OrderedDict()

    def missing(self, size: float, lines: Sequence[int], cta: int) -> float:
        """Return how many of the bytes that an access to pages wants are not there, and fetch them.

        A replay stands for CTAs with other bytes, so each of its CTAs has pages of its own.
        """
        pages = [page * _CTAS + cta for page in _pages(lines)]
        if not pages:
            return size
        part = size / len(pages)
        found, fetched = 0.0, self._fetched
        for page in pages:
            before = fetched.pop(page, 0.0)
            missing = min(part, max(0.0, _PAGE - before))
            found += missing
            fetched[page] = before + missing
        while len(fetched) > self._most:
            fetched.popitem(last=False)
        return found


class Memory:
    """The way of one multiprocessor to global memory, one of `sharers` that work."""

    __slots__ = (
        "_chip", "_latency", "_near", "_per_dram_byte", "_per_l2_byte", "_per_stored_byte", "_per_way_byte",
        "_read_part", "_tma_latency", "_written_part", "copies", "dram", "l1", "l2", "out", "tma", "way",
    )  # fmt: skip

    def __init__(self, chip: Chip, caching: Caching, sharers: int, shared_bytes: float = 0.0):
        """Prepare the way of a multiprocessor whose CTAs take so many bytes of shared memory of the L1 cache."""
        self._chip = chip
        self._near = _Near(chip.l1_bytes - shared_bytes)
        self.way, self.out, self.tma, self.l1 = Server(), Server(), Server(), Server()
        self.l2, self.dram, self.copies = Server(), Server(), Server()
        self._per_way_byte = 1.0 / chip.l1_bytes_per_cycle
        self._per_l2_byte = sharers / chip.l2_bytes_per_cycle / (1.0 + chip.l2_shared_gain * caching.common)
        self._per_stored_byte = sharers / chip.l2_store_bytes_per_cycle
        self._per_dram_byte = sharers / chip.dram_bytes_per_cycle
        self._read_part, self._written_part = caching.missed, caching.written
        self._latency = chip.l2_latency + caching.slow * (chip.dram_latency - chip.l2_latency)
        self._tma_latency = chip.tma_latency + caching.slow * (chip.tma_dram_latency - chip.tma_latency)

    def _read(self, now: float, size: float) -> float:
        done = self.way.take(now, size * self._per_way_byte)
        at_l2 = self.l2.take(now, size * self._per_l2_byte)
        at_dram = self.dram.take(now, size * self._read_part * self._per_dram_byte)
        return max(done, at_l2, at_dram)

    def load(self, now: float, event: Event, cta: int = 0) -> float:
        """Return when what threads of a CTA load is there.

        Lanes whose bytes lie apart look up more lines, but what they leave of a sector the next ones find in L1.
        """
        chip = self._chip
        is_scattered = event.sectors * SECTOR_BYTES > event.size
        lookups = event.sectors / chip.lookups_per_cycle if is_scattered else 0.0
        at_l1 = self.l1.take(now, max(event.size / chip.shared_bytes_per_cycle, lookups))
        missing = self._near.missing(event.size, event.lines, cta)
        if not missing:
            return at_l1 + chip.l1_latency
        return max(at_l1, self._read(now, missing)) + self._latency

    def bypass(self, now: float, size: float) -> float:
        """Return when what `cp.async` copies past the L1 cache is there."""
        done = self.copies.take(now, size / self._chip.copy_bytes_per_cycle)
        return max(done, self._read(now, size)) + self._latency

    def copy(self, now: float, size: float) -> float:
        """Return when bytes that TMA loads are there, from when its unit turns to them."""
        return self._read(now, size) + self._tma_latency

    def store(self, now: float, size: float) -> float:
        """Return when bytes have left the multiprocessor."""
        done = self.out.take(now, size / self._chip.store_bytes_per_cycle)
        at_l2 = self.l2.take(now, size * self._per_stored_byte)
        at_dram = self.dram.take(now, size * self._written_part * self._chip.dram_write_factor * self._per_dram_byte)
        return max(done, at_l2, at_dram)
