"""Timelines from the records of probes: what warps of a few CTAs did on a GPU, and when."""

from __future__ import annotations

import linecache
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .places import mbarrier_names, task_of
from .probes import RECORD_BYTES, Probes, Site
from .timeline import Place, Span, Timeline, Track

_WORDS = RECORD_BYTES // 4
_WRAP = 1 << 32
_HALF = 1 << 31
_STEPS = 50
"""Steps of the global timer after which its two readings, each up to one late, make less than 2 % of a difference."""
_USUAL_HERTZ = 1.755e9
"""The clock of an H200 under load, to align CTAs by the global timer where the clock is not known."""


@dataclass(frozen=True)
class Visit:
    """A pass of a warp through a site; times are cycles since the start of its CTA."""

    site: Site
    start: int
    end: int
    mbarrier: int = -1
    """The byte of the CTA's shared memory at which its mbarrier lies; -1 for none."""


@dataclass
class WarpRecord:
    """All records of one warp."""

    cta: int
    """The number of its CTA in the grid."""
    warp: int
    multiprocessor: int
    start: int
    """Cycles since the first warp of its CTA started."""
    end: int | None
    """None where the warp did not come to its end."""
    nanoseconds: tuple[int, int | None]
    """The global timer at its start and at its end, since the timer's first reading of the launch."""
    dropped: int
    """Visits for which there was no room."""
    visits: list[Visit] = field(default_factory=list[Visit])
    clock: int = 0
    """The low 32 bits of the multiprocessor's clock at the start of the CTA."""


def decode(probes: Probes, words: NDArray[np.uint32]) -> list[WarpRecord]:
    """Return what each warp has recorded, from the buffer as words of 32 bits.

    Warps that never ran are left out. The clock may wrap around once between two records of a warp.

    Raises ValueError for a buffer of another size.
    """
    if words.size * 4 != probes.size:
        raise ValueError(f"expected {probes.size} bytes of records, found {words.size * 4}")
    table = words.reshape(probes.records, -1, _WORDS).astype(np.int64)
    slots = [(cta, warp) for cta in probes.ctas for warp in range(probes.warps)]
    started = [number for number in range(len(slots)) if table[0, number, 1:].any() or table[0, number, 0]]
    first_timer = table[0, started[0], 1] if started else 0
    offsets = {number: _signed(int(table[0, number, 1] - first_timer)) for number in started}
    earliest = min(offsets.values(), default=0)
    found = [
        _warp(probes, *slots[number], table[:, number], offsets[number] - earliest) for number in started
    ]  # fmt: skip
    for cta in probes.ctas:
        own = [each for each in found if each.cta == cta]
        if own:
            _since_first(own)
    return found


def _signed(difference: int) -> int:
    """Return the difference of two counters of 32 bits that are less than half of their range apart."""
    return (difference + _HALF) % _WRAP - _HALF


def _warp(probes: Probes, cta: int, warp: int, rows: NDArray[np.int64], nanoseconds: int) -> WarpRecord:
    """The records of a warp, whose times are since its own start."""
    first, last = rows[0], rows[-1]
    room = probes.records - 2
    ended = bool(last.any())
    if ended:
        count = int(last[2]) // probes.step - 1
    else:
        # What was not written is zero, and no site has this number.
        empty = np.flatnonzero(rows[1:-1, 2] == 0)
        count = int(empty[0]) if len(empty) else room
    made = WarpRecord(
        cta, warp, int(first[2]), 0, None, (nanoseconds, None), max(0, count - room), clock=int(first[0])
    )  # fmt: skip
    clock, now = int(first[0]), 0
    kept: list[tuple[int, int, int, int]] = rows[1 : 1 + min(count, room)].tolist()
    for start, end, number, operand in kept:
        site = probes.sites[number - 1]
        begun = now + (start - clock) % _WRAP
        now = begun + (end - start) % _WRAP
        clock = end
        has_barrier = operand != 0 and site.kind in ("mbarrier", "copy", "signal")
        made.visits.append(Visit(site, begun, now, operand - int(first[3]) if has_barrier else -1))
    if ended:
        made.end = now + (int(last[0]) - clock) % _WRAP
        made.nanoseconds = nanoseconds, nanoseconds + (int(last[1]) - int(first[1])) % _WRAP
    return made


def _since_first(warps: list[WarpRecord]) -> None:
    """Count the times of a CTA's warps from the start of its first one."""
    offsets = [_signed(each.clock - warps[0].clock) for each in warps]
    least = min(offsets)
    clock = (warps[0].clock + least) % _WRAP
    for each, offset in zip(warps, offsets, strict=True):
        by = offset - least
        each.clock = clock
        each.start += by
        each.end = None if each.end is None else each.end + by
        each.visits = [Visit(one.site, one.start + by, one.end + by, one.mbarrier) for one in each.visits]


def timer_step(warps: Sequence[WarpRecord]) -> int:
    """Return the nanoseconds by which the global timer advances, as far as its readings say it."""
    readings = [time for each in warps for time in each.nanoseconds if time is not None]
    return max(1, int(np.gcd.reduce(readings))) if readings else 1


def hertz_of(warps: Sequence[WarpRecord]) -> float | None:
    """Return the clock of the multiprocessors: cycles over the global timer's nanoseconds of all warps that ended.

    None where no warp ran for so many steps of the timer that the figure is good to 2 %.
    """
    ended = [(each.end - each.start, each.nanoseconds[1] - each.nanoseconds[0]) for each in warps
             if each.end is not None and each.nanoseconds[1] is not None]  # fmt: skip
    if max((time for _, time in ended), default=0) < _STEPS * timer_step(warps):
        return None
    return sum(cycles for cycles, _ in ended) / sum(time for _, time in ended) * 1e9


def timeline_of(
    probes: Probes,
    words: NDArray[np.uint32],
    *,
    chip: str,
    kernel: str = "",
    tasks: Sequence[tuple[int, int, str]] = (),
    notes: Sequence[str] = (),
) -> Timeline:
    """Return the timeline of what probes have recorded; arguments are those of `predict`."""
    warps = decode(probes, words)
    made = Timeline(kernel or probes.kernel, chip, "measured", hertz=hertz_of(warps))
    return _Drawing(made, probes, warps, tasks).draw(notes)


class _Drawing:
    def __init__(self, made: Timeline, probes: Probes, warps: list[WarpRecord], tasks: Sequence[tuple[int, int, str]]):
        self._made, self._probes, self._warps, self._tasks = made, probes, warps, tasks
        self._places: dict[tuple[str, int], int] = {}
        self._names = _barrier_names(warps)

    def draw(self, notes: Sequence[str]) -> Timeline:
        """Add tracks, spans and notes."""
        made = self._made
        ctas = list(dict.fromkeys(each.cta for each in self._warps))
        begins = self._begins()
        least = min(begins.values(), default=0.0)
        for warp in self._warps:
            prefix = f"CTA {warp.cta} " if len(ctas) > 1 else ""
            made.tracks.append(Track(f"warp {warp.warp}", "warp", prefix + task_of(self._tasks, warp.warp)))
        for cta in ctas:
            own = [number for number, each in enumerate(self._warps) if each.cta == cta]
            self._draw_cta(own, begins[cta] - least)
        made.end = max((span.end for span in made.spans), default=0.0)
        made.notes.extend(notes)
        made.notes.extend(self._notes())
        return made

    def _begins(self) -> dict[int, float]:
        """The start of each CTA in cycles: by the clock on one multiprocessor, by the global timer between them."""
        rate = (self._made.hertz or _USUAL_HERTZ) * 1e-9
        begins: dict[int, float] = {}
        known: dict[int, tuple[int, float]] = {}
        """The clock of a multiprocessor that a CTA has started at, and when that was."""
        for each in self._warps:
            if each.cta in begins:
                continue
            begin = (each.nanoseconds[0]) * rate - each.start
            if each.multiprocessor in known:
                clock, at = known[each.multiprocessor]
                exact = at + _signed(each.clock - clock)
                # The clock may have wrapped around since.
                begin = exact + round((begin - exact) / _WRAP) * _WRAP
            else:
                known[each.multiprocessor] = each.clock, begin
            begins[each.cta] = begin
        return begins

    def _draw_cta(self, numbers: Sequence[int], begin: float) -> None:
        arrivals = _Arrivals([self._warps[number] for number in numbers])
        for number in numbers:
            warp = self._warps[number]
            counts: dict[int, int] = {}
            now, place = warp.start, -1
            last = {"product": "", "copy": ""}
            for visit in warp.visits:
                site = visit.site
                if visit.start > now:
                    self._add(number, begin, now, visit.start, "work", "compute", place)
                place = self._place(site)
                line = f" of line {site.source_line}" if site.source_line else ""
                if site.is_wait:
                    nth = counts[visit.mbarrier] = counts.get(visit.mbarrier, -1) + 1
                    name = self._wait_name(visit, nth)
                    cause = _group_cause(site, last) if site.kind == "group" else arrivals.cause(warp, visit)
                    self._add(number, begin, visit.start, visit.end, "wait", name, place, cause)
                elif site.kind != "signal":
                    last[site.kind] = f"{'product' if site.kind == 'product' else 'TMA store'}{line}"
                    self._add(number, begin, visit.start, visit.end, "issue", _issue_name(site), place)
                now = max(now, visit.end)
            if warp.end is not None and warp.end > now:
                self._add(number, begin, now, warp.end, "work", "compute", place)

    def _add(
        self, track: int, begin: float, start: int, end: int, kind: Any, name: str, place: int, cause: str = ""
    ) -> None:
        self._made.spans.append(Span(track, begin + start, begin + end, kind, name, place, cause))

    def _place(self, site: Site) -> int:
        if not site.source_line:
            return -1
        key = site.file, site.source_line
        if key not in self._places:
            self._places[key] = len(self._made.places)
            self._made.places.append(Place(*key, linecache.getline(*key).strip()))
        return self._places[key]

    def _wait_name(self, visit: Visit, nth: int) -> str:
        site = visit.site
        if site.kind == "mbarrier":
            return f"wait {self._names.get(visit.mbarrier, 'mbarrier')} phase {nth}"
        if site.kind == "barrier":
            return "wait barrier of the cluster" if "cluster" in site.opcode else f"wait barrier {site.target}".rstrip()
        return f"wait for {_waited_for(site.opcode)}"

    def _notes(self) -> list[str]:
        notes: list[str] = []
        if dropped := sum(each.dropped for each in self._warps):
            warps = sum(each.dropped > 0 for each in self._warps)
            notes.append(
                f"{dropped} visits of {warps} warps had no room: records are kept for the first "
                f"{self._probes.records - 2} of each warp"
            )
        if unfinished := sum(each.end is None for each in self._warps):
            notes.append(f"{unfinished} warps did not come to an end that has a probe")
        notes.extend(f"no probe at {each}" for each in self._probes.skipped)
        step = timer_step(self._warps)
        hertz = self._made.hertz
        if self._warps and hertz is None:
            notes.append(f"the clock is not known: warps ran for less than {_STEPS} steps of {step} ns of the timer")
        if len({each.multiprocessor for each in self._warps}) > 1:
            notes.append(
                f"CTAs on different multiprocessors are aligned by the global timer, in steps of {step} ns "
                f"({step * (hertz or _USUAL_HERTZ) * 1e-9:.0f} cycles)"
            )
        return notes


def _group_cause(site: Site, last: Mapping[str, str]) -> str:
    """Say what a wait for groups was for: the last that the warp has started."""
    if site.opcode.startswith("wgmma"):
        return last["product"]
    return last["copy"] if site.opcode.startswith("cp.async.bulk") else ""


def _waited_for(opcode: str) -> str:
    if opcode.startswith("wgmma"):
        return "products"
    if opcode.startswith("tcgen05"):
        return "tensor memory"
    return "earlier grids" if opcode.startswith("griddepcontrol") else "copies"


def _issue_name(site: Site) -> str:
    if site.kind == "product":
        shape = re.search(r"m\d+n\d+k\d+", site.opcode)
        return f"{site.opcode.partition('.')[0]}{f' {shape[0]}' if shape else ''}"
    return "tma store" if re.search(r"\.global\.shared|bulk_group", site.opcode) else "tma load"


class _Arrivals:
    """Causes of the ends of waits in a CTA, as far as records of other warps say it."""

    def __init__(self, warps: Sequence[WarpRecord]):
        self._at: dict[Any, list[tuple[int, str]]] = {}
        """Times at which something counted towards a barrier, with what it was, in order of time."""
        for warp in warps:
            for visit in warp.visits:
                line = f" of line {visit.site.source_line}" if visit.site.source_line else ""
                if visit.site.kind == "barrier":
                    said = f"arrival of warp {warp.warp}"
                    self._at.setdefault(_barrier(visit), []).append((visit.start, said))
                elif visit.mbarrier >= 0 and visit.site.kind == "copy":
                    self._at.setdefault(visit.mbarrier, []).append((visit.start, f"TMA load{line}"))
                elif visit.mbarrier >= 0 and visit.site.kind == "signal":
                    said = f"arrival of warp {warp.warp}{line.replace(' of', ' at')}"
                    self._at.setdefault(visit.mbarrier, []).append((visit.start, said))
        for each in self._at.values():
            each.sort()

    def cause(self, warp: WarpRecord, visit: Visit) -> str:
        """Say what counted last towards what a wait was for, before its end; empty where no record says it."""
        known = self._at.get(visit.mbarrier if visit.mbarrier >= 0 else _barrier(visit), [])
        place = bisect_right(known, (visit.end, "~"))
        if not place:
            return ""
        said = known[place - 1][1]
        # The last to come does not wait for itself.
        return "" if visit.site.kind == "barrier" and said == f"arrival of warp {warp.warp}" else said


def _barrier(visit: Visit) -> str:
    return f"{'cluster' if 'cluster' in visit.site.opcode else 'named'} {visit.site.target}"


def _barrier_names(warps: Sequence[WarpRecord]) -> dict[int, str]:
    """Return the user's name of each mbarrier, by its byte."""
    visits = [visit for warp in warps for visit in warp.visits if visit.mbarrier >= 0]
    used = {(visit.site, visit.mbarrier) for visit in visits if visit.site.kind in ("mbarrier", "signal")}
    uses = [(linecache.getline(site.file, site.source_line), byte) for site, byte in used]
    return mbarrier_names({visit.mbarrier for visit in visits}, sorted(uses))
