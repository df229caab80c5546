"""Timelines as Perfetto, chrome://tracing and Speedscope show them ("Trace Event Format", Google).

A task, or another group of tracks, is a process of the trace, and a track a thread of it. Times are microseconds at the
timeline's clock; without one, a nanosecond is a cycle, and the trace says so.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from ..timeline import Span, Timeline

_Event: TypeAlias = dict[str, Any]


def to_perfetto(*timelines: Timeline) -> str:
    """Return the JSON of a trace with a slice for each span, and arrows between tracks from what let it begin or end.

    Spans that overlap on a track have threads of their own: slices of a thread must not cross.
    """
    events: list[_Event] = []
    about: list[dict[str, Any]] = []
    process = flow = 0
    for number, timeline in enumerate(timelines):
        prefix = f"{number + 1}. {timeline.title}: " if len(timelines) > 1 else ""
        groups = {group: process + at for at, group in enumerate(dict.fromkeys(t.group for t in timeline.tracks), 1)}
        process += len(groups)
        one = _Writer(timeline, groups, flow)
        events += [*one.names(prefix), *one.slices(), *one.arrows()]
        flow += len(timeline.spans)
        about.append(_about(timeline))
    held = {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"timelines": about}}
    return json.dumps(held, separators=(",", ":"))


def write_perfetto(path: str | Path, *timelines: Timeline) -> None:
    """Write the trace of `to_perfetto` into a file.

    Raises OSError where the file can't be written.
    """
    Path(path).write_text(to_perfetto(*timelines), encoding="utf-8")


def lanes(starts_and_ends: Sequence[tuple[float, float]]) -> list[int]:
    """Return for each of some spans, in order of their starts, the first lane that is free then, from 0."""
    ends: list[float] = []
    found: list[int] = []
    for start, end in starts_and_ends:
        lane = next((number for number, last in enumerate(ends) if last <= start), len(ends))
        ends[lane : lane + 1] = [end]
        found.append(lane)
    return found


def _about(timeline: Timeline) -> dict[str, Any]:
    clock = f"1 ns is one {timeline.unit.removesuffix('s')}: no clock is known"
    if timeline.hertz:
        clock = f"microseconds at {timeline.hertz:.0f} Hz"
    return {
        "kernel": timeline.kernel,
        "configuration": timeline.configuration,
        "gpu": timeline.chip,
        "origin": timeline.origin,
        "time": clock,
        timeline.unit: timeline.end,
        "launch cycles": timeline.launch_cycles,
        "what limits it": timeline.sentences,
        "notes": timeline.notes,
    }


class _Writer:
    """The events of one timeline."""

    def __init__(self, timeline: Timeline, groups: dict[str, int], flow: int):
        self._timeline = timeline
        self._groups = groups
        self._flow = flow
        self._scale = 1e6 / timeline.hertz if timeline.hertz else 1e-3
        self._critical = set(timeline.critical)
        self._threads: dict[tuple[int, int], int] = {}
        """The thread of each lane of each track."""
        self._of: list[int] = [0] * len(timeline.spans)
        self._place_spans()

    def _place_spans(self) -> None:
        spans = self._timeline.spans
        on: defaultdict[int, list[int]] = defaultdict(list)
        for number, span in enumerate(spans):
            on[span.track].append(number)
        for track in range(len(self._timeline.tracks)):
            order = sorted(on[track], key=lambda number: (spans[number].start, spans[number].end))
            for number, lane in zip(order, lanes([(spans[n].start, spans[n].end) for n in order]), strict=True):
                self._of[number] = self._threads.setdefault((track, lane), len(self._threads) + 1)

    def names(self, prefix: str) -> Iterator[_Event]:
        """Name processes and threads, and keep their order."""
        for group, process in self._groups.items():
            yield from _named({"pid": process}, "process", prefix + group, process)
        for (number, lane), thread in self._threads.items():
            track = self._timeline.tracks[number]
            name = track.name if lane == 0 else f"{track.name} ({lane + 1})"
            yield from _named({"pid": self._groups[track.group], "tid": thread}, "thread", name, thread)

    def _ids(self, number: int) -> _Event:
        group = self._timeline.tracks[self._timeline.spans[number].track].group
        return {"pid": self._groups[group], "tid": self._of[number]}

    def slices(self) -> Iterator[_Event]:
        """Yield a slice for each span."""
        for number, span in enumerate(self._timeline.spans):
            yield {
                "ph": "X", **self._ids(number), "ts": self._time(span.start),
                "dur": self._time(span.end - span.start), "name": span.name or span.kind, "cat": span.kind,
                "args": dict(self._arguments(number, span)),
            }  # fmt: skip

    def _time(self, cycles: float) -> float:
        """Return microseconds, to a picosecond."""
        return round(cycles * self._scale, 6)

    def _arguments(self, number: int, span: Span) -> Iterable[tuple[str, Any]]:
        unit = self._timeline.unit
        yield unit, round(span.end - span.start, 2)
        yield f"from {unit.removesuffix('s')}", round(span.start, 2)
        if span.cause:
            yield "cause", span.cause
        if span.place >= 0:
            place = self._timeline.places[span.place]
            yield "at", f"{place.file}:{place.line}"
            if place.text:
                yield "line", place.text.strip()
        if number in self._critical:
            yield "critical", True

    def arrows(self) -> Iterator[_Event]:
        """Yield both ends of an arrow for each span that one on another track let begin, or end where it is a wait."""
        spans = self._timeline.spans
        for number, span in enumerate(spans):
            if span.after < 0 or spans[span.after].track == span.track:
                continue
            before = spans[span.after]
            # An arrow belongs to the slice that is open at its time: it starts just before the end.
            leaves = max(before.start, before.end - min(1.0, (before.end - before.start) / 2))
            arrives = span.start if span.start >= before.end else max(span.start, min(before.end, span.end) - 1.0)
            ids = {"cat": "after", "name": "after", "id": self._flow + number}
            yield {"ph": "s", **self._ids(span.after), **ids, "ts": self._time(leaves)}
            yield {"ph": "f", "bp": "e", **self._ids(number), **ids, "ts": self._time(max(arrives, leaves))}


def _named(ids: _Event, what: str, name: str, order: int) -> Iterator[_Event]:
    yield {"ph": "M", **ids, "name": f"{what}_name", "args": {"name": name}}
    yield {"ph": "M", **ids, "name": f"{what}_sort_index", "args": {"sort_index": order}}
