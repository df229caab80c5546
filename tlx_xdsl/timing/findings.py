"""Costs of a launch in time, at its lines: bank conflicts, waits for loads, tensor cores that an epilogue leaves idle.

A finding comes from a replay that keeps its marks, and its figure from the clock: where a cause can be taken away in
the traces, they are replayed without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal, TypeAlias

from tlx_xdsl.errors import SourceLocation

from .accesses import BANK_BYTES
from .engine import Mark
from .limits import MEMORIES
from .predict import Evidence
from .spans import Lines
from .trace import Event, Step, Trace, Warp

Kind: TypeAlias = Literal[
    "bank conflicts",
    "wait for loads",
    "epilogue",
    "prologue",
    "memory",
    "waves",
    "short programs",
    "occupancy",
    "latency",
]

CONFLICT = 1.5
"""Wavefronts for each that the bytes need, from which on accesses of a line count as conflicts."""
WORTH_A_WARNING = 0.05
"""The part of the launch's time from which on a finding is a warning."""
WORTH_A_WORD = 0.03
"""The part of the launch's time below which nothing is said."""
FULL = 0.75
"""The part of the time from which on a unit that works is the limit."""
SHORT = 0.15
"""The part of the time from which on the starts of CTAs count."""
FEW_WARPS = 0.25
"""The part of the warps that a multiprocessor can hold, up to which they are few."""


@dataclass(frozen=True)
class Finding:
    """A cost of time, with its cause."""

    kind: Kind
    message: str
    """What it is, with its figures."""
    share: float
    """The part of the launch's time that it costs, or for which it lasts."""
    at: SourceLocation | None = None
    """The line of the kernel; None for what is of the launch as a whole."""
    remedy: str = ""

    @property
    def severity(self) -> Literal["warning", "remark"]:
        """Return `remark` for what costs little, or can't be helped."""
        return "warning" if self.share >= WORTH_A_WARNING and self.remedy else "remark"


def findings(evidence: Evidence) -> list[Finding]:
    """Return what costs time, the most expensive first."""
    found = [*_bank_conflicts(evidence), *_epilogue(evidence), *_prologue(evidence), *_launch(evidence)]
    return sorted(found, key=lambda each: -each.share)


# Shared memory -------------------------------------------------------------------------------------------------------


def _bank_conflicts(evidence: Evidence) -> Iterator[Finding]:
    """Find lines whose accesses to shared memory take more wavefronts than their bytes need."""
    lines = Lines(evidence.program)
    taken: dict[int, int] = {}
    least: dict[int, int] = {}
    places: dict[int, int] = {}
    for event in evidence.trace.events:
        if event.kind == "shared" and event.count:
            line = lines.place(event.at)
            places.setdefault(line, event.at)
            taken[line] = taken.get(line, 0) + event.count
            least[line] = least.get(line, 0) + min(event.count, ceil(event.size / BANK_BYTES))
    worse = {line: taken[line] - least[line] for line in taken if taken[line] >= CONFLICT * least[line]}
    if not worse:
        return
    share = max(0.0, 1 - evidence.again(_without_conflicts) / evidence.cycles)
    extra = sum(worse.values())
    for line, more in worse.items():
        part = share * more / extra
        if part >= WORTH_A_WORD:
            yield Finding(
                "bank conflicts",
                f"bank conflicts: {taken[line]:,} wavefronts of shared memory in a CTA where {least[line]:,} would do, "
                f"{taken[line] / least[line]:.1f} x; without them the launch takes {part:.0%} less",
                part, evidence.location(places[line]),
                "choose a layout of the buffer that spreads rows over the banks: a swizzled one, or rows padded by 16 "
                "bytes (tlx layouts: docs/layouts.md)",
            )  # fmt: skip


def _without_conflicts(trace: Trace) -> Trace:
    changed: dict[int, Event] = {}

    def of(event: Event) -> Event:
        if event.kind != "shared":
            return event
        if id(event) not in changed:
            changed[id(event)] = replace(event, count=min(event.count, max(1, ceil(event.size / BANK_BYTES))))
        return changed[id(event)]

    warps = [
        Warp(warp.cta, warp.number, [Step(step.block, tuple(map(of, step.events))) for step in warp.steps], warp.ran)
        for warp in trace.warps
    ]
    return replace(trace, warps=warps)


# Waits for loads -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LoadWait:
    """A line at which warps wait for copies to shared memory."""

    at: SourceLocation
    load: SourceLocation | None
    share: float
    """The part of their time that the warps that wait there wait."""


def load_waits(evidence: Evidence) -> list[LoadWait]:
    """Return where warps wait for loads by TMA or `cp.async`, the longest first.

    Where there are products, the waits of those warps count that issue them.
    """
    copies = {event.at for event in evidence.trace.events if event.kind in ("tma_load", "copy")}
    wanted = _product_warps(evidence.trace)
    replayed = evidence.replayed
    time = sum(cta.end - cta.start for cta in replayed.ctas) or 1.0
    sums: dict[tuple[SourceLocation, SourceLocation | None], float] = {}
    warps: dict[tuple[SourceLocation, SourceLocation | None], set[int]] = {}
    for (warp, at, by), cycles in replayed.waits.items():
        if (by not in copies and at not in copies) or (wanted and warp not in wanted):
            continue
        if (where := evidence.location(at)) is not None:
            key = where, evidence.location(by)
            sums[key] = sums.get(key, 0.0) + cycles
            warps.setdefault(key, set()).add(warp)
    found = [LoadWait(*key, cycles / time / len(warps[key])) for key, cycles in sums.items()]
    return sorted(found, key=lambda each: -each.share)


def _product_warps(trace: Trace) -> set[int]:
    return {warp.number for warp in trace.warps if any(event.is_product for event in warp.events)}


# Epilogues -----------------------------------------------------------------------------------------------------------


def _epilogue(evidence: Evidence) -> Iterator[Finding]:
    """Find the time in which no tensor core works, while warps that have products store.

    Where another of these warps waits for a load meanwhile, it is the load that the tensor cores wait for.
    """
    marks = evidence.replayed.marks
    products = sorted((mark.start, mark.end) for mark in marks if mark.kind == "product")
    if not products:
        return
    workers = {(mark.cta, mark.unit) for mark in marks if mark.kind == "product" or _is_product(mark)}
    of_workers = [mark for mark in marks if (mark.cta, mark.unit) in workers]
    stores = [mark for mark in of_workers if _is_store(mark)]
    loading = sorted(
        (mark.start, mark.end)
        for mark in of_workers
        if mark.kind == "wait" and mark.after >= 0 and marks[mark.after].kind == "copy"
    )  # fmt: skip
    whole = evidence.replayed.end or 1.0
    follows = evidence.filled.clusters > evidence.filled.servers * evidence.filled.side_by_side
    idle = 0.0
    cycles: dict[SourceLocation, float] = {}
    for start, end in _gaps(products, whole if follows else products[-1][1]):
        within = [mark for mark in stores if start <= mark.start < end]
        if not within:
            continue
        last = min(end, max(mark.end if mark.kind == "wait" else mark.start for mark in within))
        lost = _outside(start, last, loading)
        idle += lost
        # What stores says more than the wait for it.
        for mark in [each for each in within if each.kind == "store"] or within:
            if (where := evidence.location(mark.at)) is not None:
                cycles[where] = cycles.get(where, 0.0) + lost
    share = idle / whole
    if share < WORTH_A_WARNING or not cycles:
        return
    yield Finding(
        "epilogue",
        f"the tensor cores are idle for {share:.0%} of the time while the warps that feed them store their results",
        share, max(cycles, key=lambda each: cycles[each]),
        "let other warps multiply meanwhile: a second consumer in turn (ping-pong) in a persistent kernel, a task "
        "of its own that stores, or tiles so small that two CTAs share a multiprocessor",
    )  # fmt: skip


def _prologue(evidence: Evidence) -> Iterator[Finding]:
    """Find the time in which no tensor core works, because CTAs start one after the other and have no data yet."""
    replayed, filled = evidence.replayed, evidence.filled
    products = sorted((mark.start, mark.end) for mark in replayed.marks if mark.kind == "product")
    if not products or filled.clusters <= filled.servers * filled.side_by_side:
        return
    firsts: dict[int, float] = {}
    for mark in replayed.marks:
        if mark.kind == "product":
            firsts[mark.cta] = min(mark.start, firsts.get(mark.cta, mark.start))
    starts = [(replayed.ctas[cta].start - evidence.chip.cta_start_cycles, first) for cta, first in firsts.items()]
    share = sum(_outside(start, end, products) for start, end in starts) / (replayed.end or 1.0)
    if share >= WORTH_A_WARNING:
        yield Finding(
            "prologue",
            f"the tensor cores are idle for {share:.0%} of the time between the start of a CTA and its first product",
            share, remedy="make the kernel persistent: one CTA for each multiprocessor, which loads the next tile's "
            "data while it multiplies",
        )  # fmt: skip


def _outside(start: float, end: float, intervals: Sequence[tuple[float, float]]) -> float:
    """Return how much of a time lies in none of the sorted intervals."""
    left = 0.0
    for begin, stop in intervals:
        if begin >= end:
            break
        if stop > start:
            left += max(0.0, begin - start)
            start = max(start, stop)
    return left + max(0.0, end - start)


def _is_product(mark: Mark) -> bool:
    return mark.event is not None and mark.event.is_product


def _is_store(mark: Mark) -> bool:
    """Return whether a warp stores, or waits until what it has stored was read or written."""
    if mark.kind == "store":
        return True
    return mark.event is not None and mark.event.kind in ("store", "tma_store", "tma_wait")


def _gaps(intervals: Sequence[tuple[float, float]], end: float) -> Iterator[tuple[float, float]]:
    """Yield what sorted intervals leave free between the first of them and an end."""
    reached = intervals[0][0]
    for start, stop in intervals:
        if start > reached:
            yield reached, start
        reached = max(reached, stop)
    if reached < end:
        yield reached, end


# The launch as a whole -----------------------------------------------------------------------------------------------


def _launch(evidence: Evidence) -> Iterator[Finding]:
    """Find a memory that is at its limit, a last wave that leaves multiprocessors idle, and too few warps."""
    filled, chip, shares = evidence.filled, evidence.chip, evidence.shares
    held = filled.servers * filled.ctas
    waves = filled.clusters / held
    # What memory does all the time is not lost to a wave.
    most = 1 - max(shares.get(memory, 0.0) for memory in MEMORIES)
    if waves > 1 and (lost := min(most, 1 - waves / ceil(waves))) >= WORTH_A_WARNING:
        last = filled.clusters % held
        yield Finding(
            "waves",
            f"the last of {ceil(waves)} waves has {last:,} of {held:,} CTAs: {lost:.0%} of the time of the "
            "multiprocessors is lost to it",
            lost, remedy="choose tiles that make the number of programs a multiple of a wave, or a persistent kernel",
        )  # fmt: skip
    elif filled.processors < chip.multiprocessors * (1 - WORTH_A_WARNING):
        lost = 1 - filled.processors / chip.multiprocessors
        yield Finding(
            "waves", f"only {filled.processors} of {chip.multiprocessors} multiprocessors have a CTA", lost,
            remedy="make more programs: smaller tiles, or parts of the reduction (split K)",
        )  # fmt: skip
    if most >= WORTH_A_WARNING:
        yield from _short_programs(evidence)
    for memory in MEMORIES:
        if shares.get(memory, 0.0) >= FULL:
            sizes: dict[int, int] = {}
            for event in evidence.trace.events:
                if event.lines:
                    sizes[event.at] = sizes.get(event.at, 0) + event.size
            at = max(sizes, key=lambda each: sizes[each], default=-1)
            yield Finding(
                "memory", f"the {memory} works {shares[memory]:.0%} of the time: most bytes are those of this line",
                shares[memory], evidence.location(at),
            )  # fmt: skip
            return
    busiest = max(shares.values(), default=0.0)
    if busiest >= FULL or any(event.is_product for event in evidence.trace.events):
        return
    loads = {event.at for event in evidence.trace.events if event.kind == "load"}
    waits = {key: cycles for key, cycles in evidence.replayed.waits.items() if key[2] in loads}
    time = sum(cta.end - cta.start for cta in evidence.replayed.ctas) * evidence.launch.warps or 1.0
    if (share := sum(waits.values()) / time) < FULL / 2:
        return
    longest = evidence.location(max(waits, key=lambda key: waits[key])[2])
    warps = filled.side_by_side * evidence.launch.warps
    most = chip.threads // 32
    if warps <= FEW_WARPS * most and filled.side_by_side == filled.ctas:
        yield Finding(
            "occupancy",
            f"warps wait for global memory {share:.0%} of the time, and a multiprocessor has only {warps} of {most} "
            f"warps to go on with, for their {filled.limit}",
            share, longest, f"need less of {filled.limit} for each CTA, or load with asynchronous copies",
        )  # fmt: skip
    else:
        yield Finding(
            "latency",
            f"warps wait for this load {share:.0%} of the time, and no unit works more than {busiest:.0%} of it",
            share, longest,
            "have more loads under way before the first is needed: more elements for each program, a loop with "
            "num_stages, or loads before the arithmetic",
        )  # fmt: skip


def _short_programs(evidence: Evidence) -> Iterator[Finding]:
    """Find CTAs that take so little time that their starts count."""
    ctas, start = evidence.replayed.ctas, evidence.chip.cta_start_cycles
    length = sum(cta.end - cta.start for cta in ctas) / max(1, len(ctas))
    share = start / (start + length)
    if share >= SHORT and evidence.filled.clusters > evidence.filled.servers * evidence.filled.ctas:
        yield Finding(
            "short programs",
            f"a CTA runs for {length:,.0f} cycles, and {share:.0%} of the time goes to the start of the next",
            share, remedy="let each program do more: larger blocks, or a loop over several of them",
        )  # fmt: skip
