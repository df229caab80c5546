"""Timelines from replays: tracks, spans with their lines and causes, and the critical path."""

from __future__ import annotations

import linecache
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tlx_xdsl.errors import SourceLocation
from tlx_xdsl.ptx.program import Program
from tlx_xdsl.ptx.read.syntax import Instruction

from .engine import SUB_PARTITIONS, Mark, Replayed
from .places import mbarrier_names, task_of, user_line
from .timeline import Place, Span, SpanKind, Timeline, Track, TrackKind
from .trace import Kind, Point, Trace

_CLOSE = 0.5
"""Cycles between pieces of work of one line that are shown as one."""


def location(program: Program, at: int) -> SourceLocation | None:
    """Return the user's line of an instruction; None for one that has none."""
    return user_line(program.module, program.function.instructions[at].place)


class Lines:
    """The user's lines that instructions of a program come from."""

    def __init__(self, program: Program | None):
        self._program = program
        self.places: list[Place] = []
        self._numbers: dict[tuple[str, int], int] = {}
        self._of: dict[int, int] = {-1: -1}

    def instruction(self, at: int) -> Instruction | None:
        """Return an instruction by its number."""
        return None if self._program is None or at < 0 else self._program.function.instructions[at]

    def place(self, at: int) -> int:
        """Return the place in `places` of the line of an instruction, -1 for none."""
        found = self._of.get(at)
        if found is None:
            found = self._of[at] = self._find(at)
        return found

    def _find(self, at: int) -> int:
        where = None if self._program is None or at < 0 else location(self._program, at)
        if where is None:
            return -1
        key = (where.filename, where.line)
        if key not in self._numbers:
            self._numbers[key] = len(self.places)
            self.places.append(Place(*key, linecache.getline(*key).strip()))
        return self._numbers[key]

    def line(self, at: int) -> int:
        """Return the line of an instruction, 0 for none."""
        found = self.place(at)
        return 0 if found < 0 else self.places[found].line

    def of(self, at: int) -> str:
        """Return ` of line 62`, or nothing for an instruction without a line."""
        line = self.line(at)
        return f" of line {line}" if line else ""

    def text(self, at: int) -> str:
        """Return the text of the line of an instruction."""
        found = self.place(at)
        return "" if found < 0 else self.places[found].text


def barrier_names(traces: Sequence[Trace], lines: Lines) -> dict[int, str]:
    """Return what a user calls each mbarrier, by its byte of shared memory: from the lines that use it."""
    everywhere: set[int] = set()
    uses: set[tuple[str, int]] = set()
    for trace in traces:
        for event in trace.events:
            for point in (trace.points[number] for number in event.points):
                if point.kind != "mbarrier":
                    continue
                everywhere.add(point.name)
                if event.kind in ("wait", "signal"):
                    uses.add((lines.text(event.at), point.name))
    return mbarrier_names(everywhere, sorted(uses))


_CAUSES: dict[Kind, str] = {
    "tma_load": "TMA load", "tma_store": "TMA store", "copy": "copy", "copy_commit": "copy", "wgmma": "product",
    "mma5": "product", "tensor_copy": "product", "load": "load", "atomic": "atomic operation", "shared": "shared load",
    "remote": "access to another CTA",
}  # fmt: skip


def kinds_of(trace: Trace) -> dict[int, Kind]:
    """Return what kind of event each instruction of a trace has."""
    return {event.at: event.kind for event in trace.events}


def cause_of(lines: Lines, kinds: Mapping[int, Kind], at: int, warp: int = -1) -> str:
    """Say what an instruction did that ended a wait, of a warp if one is given."""
    what = _CAUSES.get(kinds.get(at, "signal"))
    if what is not None:
        return f"{what}{lines.of(at)}"
    by = f" of warp {warp}" if warp >= 0 else ""
    return f"arrival{by}{f' at line {lines.line(at)}' if lines.line(at) else ''}"


@dataclass
class _Drawing:
    """A timeline that grows."""

    timeline: Timeline
    lines: Lines
    names: dict[int, str]
    kinds: dict[int, Kind]
    tracks: dict[tuple[TrackKind, str, str], int] = field(default_factory=dict[tuple[TrackKind, str, str], int])
    spans: dict[int, int] = field(default_factory=dict[int, int])
    """The span of each mark that has one; marks that were joined to another have that one's."""

    def track(self, kind: TrackKind, group: str, name: str) -> int:
        """Return the place of a track, which is made if it is new."""
        key = (kind, group, name)
        if key not in self.tracks:
            self.tracks[key] = len(self.timeline.tracks)
            self.timeline.tracks.append(Track(name, kind, group))
        return self.tracks[key]

    def add(self, track: int, start: float, end: float, kind: SpanKind, name: str, at: int) -> int:
        """Add a span, and return its place."""
        self.timeline.spans.append(Span(track, start, end, kind, name, self.lines.place(at)))
        return len(self.timeline.spans) - 1


def draw(
    replayed: Replayed,
    trace: Trace,
    program: Program | None,
    *,
    kernel: str,
    chip: str,
    tasks: Sequence[tuple[int, int, str]] = (),
    shown: int = 2,
) -> Timeline:
    """Return the timeline of the first cluster of a replay that has kept its marks, of `shown` CTAs at most."""
    lines = Lines(program)
    drawing = _Drawing(Timeline(kernel, chip, "predicted"), lines, barrier_names([trace], lines), kinds_of(trace))
    ctas = [place for place, cta in enumerate(replayed.ctas) if cta.trace == 0][:shown]
    begin = min((replayed.ctas[place].start for place in ctas), default=0.0)
    prefix = {place: f"CTA {replayed.ctas[place].number} " if len(ctas) > 1 else "" for place in ctas}
    for place in ctas:
        for warp in sorted(each.number for each in trace.warps if each.cta == place - ctas[0]):
            drawing.track("warp", prefix[place] + task_of(tasks, warp), f"warp {warp}")
    joined: dict[int, int] = {}
    for number, mark in enumerate(replayed.marks):
        if mark.cta in prefix:
            _draw_mark(drawing, number, mark, replayed, trace, prefix[mark.cta], tasks, joined)
    for number, span in drawing.spans.items():
        mark, own = replayed.marks[number], drawing.timeline.spans[span]
        if own.after < 0 and (after := drawing.spans.get(mark.after, -1)) != span:
            own.after = after
    _draw_buffers(drawing, replayed, trace, prefix)
    timeline = drawing.timeline
    for span in timeline.spans:
        span.start -= begin
        span.end -= begin
    timeline.places = lines.places
    timeline.end = max((span.end for span in timeline.spans), default=0.0)
    timeline.critical = _critical(replayed, drawing)
    return timeline


def _draw_mark(
    drawing: _Drawing, number: int, mark: Mark, replayed: Replayed, trace: Trace, prefix: str,
    tasks: Sequence[tuple[int, int, str]], joined: dict[int, int],
) -> None:  # fmt: skip
    event, lines = mark.event, drawing.lines
    match mark.kind:
        case "work" | "issue" | "wait":
            track = drawing.track("warp", prefix + task_of(tasks, mark.unit), f"warp {mark.unit}")
        case "copy" | "store":
            track = drawing.track("tma", f"{prefix}memory", "TMA loads" if mark.kind == "copy" else "TMA stores")
        case "product":
            track = drawing.track("tensor core", f"{prefix}tensor cores", f"tensor core {mark.unit % SUB_PARTITIONS}")
        case "phase":
            point = trace.points[mark.unit]
            if point.kind != "mbarrier":
                return
            name = drawing.names.get(point.name, f"mbarrier at {point.name}")
            track = drawing.track("barrier", f"{prefix}barriers", name)
            drawing.spans[number] = drawing.add(track, mark.start, mark.end, "phase", f"phase {point.phase}", -1)
            return
    before = joined.get(track, -1)
    if mark.kind in ("work", "product") and before >= 0:
        last = drawing.timeline.spans[before]
        same = last.kind == mark.kind and last.place == lines.place(mark.at)
        if (
            same
            and 0 <= mark.start - last.end <= _CLOSE
            and (mark.kind == "work" or last.name == _name(drawing, mark, trace))
        ):
            last.end = mark.end
            drawing.spans[number] = before
            return
    # An arrival, or a product, is seen on another track.
    if mark.kind == "issue" and before >= 0 and event is not None and event.kind in ("signal", "wgmma"):
        drawing.spans[number] = before
        return
    span = drawing.add(track, mark.start, mark.end, mark.kind, _name(drawing, mark, trace), mark.at)
    drawing.spans[number] = joined[track] = span
    if mark.kind == "wait" and mark.by >= 0:
        unit = replayed.marks[mark.after].unit if mark.after >= 0 else -1
        drawing.timeline.spans[span].cause = cause_of(lines, drawing.kinds, mark.by, unit)


def _name(drawing: _Drawing, mark: Mark, trace: Trace) -> str:
    event = mark.event
    if mark.kind == "work":
        return "compute"
    if event is None:
        return "wait for loads"
    if event.kind == "wait":
        names = [_point_name(drawing, trace.points[number]) for number in event.points]
        return f"wait {', '.join(names)}" if names else "wait"
    if event.kind == "wgmma":
        m, n, k = event.shape
        return f"wgmma m{m}n{n}k{k} {event.element}"
    if event.kind.endswith("_wait"):
        return f"wait for {'products' if event.kind == 'wgmma_wait' else 'copies'}"
    return f"{event.kind.replace('_', ' ')}{f' {event.size} bytes' if event.size else ''}"


def _point_name(drawing: _Drawing, point: Point) -> str:
    if point.kind == "mbarrier":
        return f"{drawing.names.get(point.name, '')} phase {point.phase}"
    return f"barrier {point.name}" if point.kind == "named" else "barrier of the cluster"


def _draw_buffers(drawing: _Drawing, replayed: Replayed, trace: Trace, prefix: dict[int, str]) -> None:
    """Show slots of shared memory: from what TMA writes to the phase that lets it write again."""
    marks = replayed.marks
    slots: dict[tuple[int, int], list[int]] = {}
    for number, mark in enumerate(marks):
        if mark.kind == "copy" and mark.cta in prefix and mark.event is not None and mark.event.place >= 0:
            slots.setdefault((mark.cta, mark.event.place), []).append(number)
    order: dict[int, list[int]] = {}
    for cta, place in sorted(slots):
        order.setdefault(cta, []).append(place)
    for (cta, place), copies in slots.items():
        track = drawing.track("buffer", f"{prefix[cta]}buffers", f"slot {order[cta].index(place)}")
        for copy, following in zip(copies, [*copies[1:], -1], strict=True):
            end = replayed.ctas[cta].end if following < 0 else _freed(marks, following)
            mark = marks[copy]
            span = drawing.add(
                track,
                mark.start,
                max(end, mark.end),
                "buffer",
                f"{mark.event.size if mark.event else 0} bytes",
                mark.at,
            )
            drawing.timeline.spans[span].after = drawing.spans.get(copy, -1)


def _freed(marks: Sequence[Mark], copy: int) -> float:
    """Return when the slot that a copy writes was free: at the end of what its warp has waited for last."""
    number = marks[copy].after
    while number >= 0 and marks[number].unit == marks[copy].unit:
        mark = marks[number]
        if mark.kind == "wait" and mark.event is not None and mark.event.kind == "wait":
            return marks[mark.after].end if mark.after >= 0 else mark.end
        number = mark.after
    return marks[copy].start


def _critical(replayed: Replayed, drawing: _Drawing) -> list[int]:
    """Walk back from the last mark along what let each begin or end."""
    number = max(drawing.spans, key=lambda each: replayed.marks[each].end, default=-1)
    path: list[int] = []
    while number >= 0:
        span = drawing.spans.get(number)
        if span is not None and (not path or path[-1] != span):
            path.append(span)
        number = replayed.marks[number].after
    return path[::-1]
