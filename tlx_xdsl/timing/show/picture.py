"""Timelines drawn as a small SVG: a ring with its tasks and slots, or what several ranks do, with who releases whom.

A picture is for documents: it is legible at 390 pixels, has no script, and is dark where the reader's system is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from ..timeline import Span, Timeline

# Pixels.
_WIDTH, _ROW, _HEAD, _EDGE = 390, 20, 40, 8
_LETTER, _NAME_LETTER = 5.6, 6.3
_NARROWEST = 64
"""Pixels of the names at least, so that `cycles` fits."""
_THINNEST = 1.0

_STYLE = """\
.p{fill:#fff}.t{fill:#1b1f24}.f{fill:#59636e}.g{stroke:#d4d9df}.work{fill:#5b9bd5}.wait{fill:#f3b562}.issue{fill:#1f4e79}
.copy{fill:#5cc3a5}.product{fill:#b79ad9}.store{fill:#b98650}.buffer{fill:#d9cf8f}.o{fill:#10151a}
.full{stroke:#0b6b52;fill:#0b6b52}.empty{stroke:#8a4b08;fill:#8a4b08}
@media(prefers-color-scheme:dark){.p{fill:#14171b}.t{fill:#e6e9ec}.f{fill:#9aa5b1}.g{stroke:#363d45}.work{fill:#5a97cf}
.wait{fill:#d0923e}.issue{fill:#b7d9f6}.buffer{fill:#a59c4e}.full{stroke:#a5f0da;fill:#a5f0da}
.empty{stroke:#ffd9a8;fill:#ffd9a8}}"""
_LEGEND = (
    ("work", "work"), ("wait", "wait"), ("copy", "TMA writes"),
    ("buffer", "full, until released"), ("product", "product"),
)  # fmt: skip
_RANKS_LEGEND = (("work", "work"), ("wait", "wait"), ("issue", "signal"), ("copy", "copy"), ("product", "product"))


@dataclass(frozen=True)
class _Use:
    """A use of a slot of the ring: TMA writes it, then it is full until the consumers release it."""

    cta: str
    slot: int
    phase: int
    written: float
    full: float
    released: float


def ring_picture(
    timeline: Timeline,
    title: str,
    start: float = 0.0,
    end: float | None = None,
    *,
    names: tuple[str, str] = ("full", "empty"),
    tasks: Mapping[str, str] | None = None,
) -> str:
    """Return the text of an SVG of the cycles from `start` to `end` of a ring: tasks, slots and a tensor core.

    `names` are those of the barriers at which slots become full and empty, and `tasks` labels for tasks that have
    another name there. The first task produces and stands above the slots, the others below; arrows lead from the end
    of a phase to who waited for it. CTAs stand below each other.

    Raises ValueError where the timeline has no such barriers.
    """
    return _Picture(timeline, start, timeline.end if end is None else end, names, tasks or {}).drawn(title)


def ranks_picture(timeline: Timeline, title: str, rows: Mapping[str, str]) -> str:
    """Return the text of an SVG of what each rank of a simulated launch does.

    `rows` are the names of the tracks that are shown of each rank, with their labels. Arrows lead from the signal of a
    rank to the end of another one's wait for it.

    Raises ValueError where the timeline has none of the tracks.
    """
    return _Ranks(timeline, rows).drawn(title)


class _Chart:
    """Rows of spans below an axis."""

    legend: Sequence[tuple[str, str]] = ()

    def __init__(self, timeline: Timeline, start: float, end: float):
        self._timeline = timeline
        self._start = start
        self._end = end
        self._labels: list[str] = []
        self._rows: dict[int, int] = {}
        """The row of each track that is drawn."""

    def _scaled(self) -> None:
        """Leave as much to the left as the labels take."""
        self._left = max(2 * _EDGE + _NAME_LETTER * max(map(len, self._labels)), _NARROWEST)
        self._scale = (_WIDTH - self._left - _EDGE) / max(self._end - self._start, 1.0)

    def drawn(self, title: str) -> str:
        """Return the SVG."""
        height = _HEAD + len(self._labels) * _ROW + 34
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
            f'font-family="Helvetica,Arial,sans-serif" font-size="12">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style>",
            f'<rect class="p" width="{_WIDTH}" height="{height}"/>',
            *self._axis(title, height - 30),
            *self._spans(),
            *self._arrows(),
            *self._legend(height - 18),
            "</svg>\n",
        ])  # fmt: skip

    def _arrows(self) -> Iterator[str]:
        """Draw who releases whom."""
        yield from ()

    def _legend(self, y: float) -> Iterator[str]:
        x = float(_EDGE)
        for kind, text in self.legend:
            yield f'<rect class="{kind}" x="{x:.0f}" y="{y:.0f}" width="10" height="10"/>'
            yield f'<text class="f" x="{x + 13:.0f}" y="{y + 9:.0f}" font-size="11">{text}</text>'
            x += 24 + len(text) * 5.6

    def _x(self, time: float) -> float:
        return self._left + (min(max(time, self._start), self._end) - self._start) * self._scale

    def _bar(self, kind: str, start: float, end: float, row: int, *texts: str) -> Iterator[str]:
        if end <= self._start or start >= self._end:
            return
        x, y = self._x(start), _HEAD + row * _ROW
        width = max(self._x(end) - x, _THINNEST)
        yield f'<rect class="{kind}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_ROW - 4}"/>'
        if text := next((each for each in texts if len(each) * _LETTER + 4 < width), ""):
            yield f'<text class="o" x="{x + 3:.1f}" y="{y + 12}" font-size="11">{escape(text)}</text>'

    def _axis(self, title: str, bottom: float) -> Iterator[str]:
        yield f'<text class="t" x="{_EDGE}" y="16" font-size="12" font-weight="bold">{escape(title)}</text>'
        each = next(e * 10**p for p in range(12) for e in (1, 2, 5) if e * 10**p * 6 >= self._end - self._start)
        for number in range(int(-(-self._start // each)), int(self._end // each) + 1):
            x = self._x(number * each)
            yield f'<path class="g" d="M{x:.1f} 34V{bottom:.0f}"/>'
            if x < _WIDTH - 20:
                yield f'<text class="f" x="{x:.1f}" y="30" text-anchor="middle">{number * each:,}</text>'
        yield f'<text class="f" x="{_EDGE}" y="30">{self._timeline.unit}</text>'
        for row, label in enumerate(self._labels):
            yield f'<text class="t" x="{_EDGE}" y="{_HEAD + row * _ROW + 12}">{escape(label)}</text>'

    def _spans(self) -> Iterator[str]:
        for span in self._timeline.spans:
            if span.track in self._rows:
                yield from self._bar(span.kind, span.start, span.end, self._rows[span.track])

    def _arrow(self, kind: str, time: float, source: int, target: int) -> Iterator[str]:
        x, up = self._x(time), source > target
        begin = _HEAD + source * _ROW + _ROW / 2 - 2
        tip, point = (_HEAD + target * _ROW + _ROW - 5, 5) if up else (_HEAD + target * _ROW + 1, -5)
        yield f'<path class="{kind}" d="M{x:.1f} {begin:.1f}V{tip + point}"/>'
        yield f'<path class="{kind}" stroke="none" d="M{x:.1f} {tip}l-3 {point}h6z"/>'


class _Ranks(_Chart):
    def __init__(self, timeline: Timeline, rows: Mapping[str, str]):
        super().__init__(timeline, 0.0, timeline.end)
        names, tracks = [*rows], timeline.tracks
        shown = [
            (each.group, names.index(each.name), number) for number, each in enumerate(tracks) if each.name in rows
        ]
        if not shown:
            raise ValueError(f"the timeline has none of the tracks {', '.join(names)}")
        for row, (group, place, number) in enumerate(sorted(shown)):
            self._rows[number] = row
            self._labels.append(f"{group} {rows[names[place]]}")
        kinds = {span.kind for span in timeline.spans if span.track in self._rows}
        self.legend = [each for each in _RANKS_LEGEND if each[0] in kinds]
        self._scaled()

    def _spans(self) -> Iterator[str]:
        """Draw what follows each other and is of one kind as one bar."""
        last: dict[int, tuple[str, float, float]] = {}
        for span in self._timeline.spans:
            if (row := self._rows.get(span.track)) is None:
                continue
            kind, begin, end = last.get(row, ("", 0.0, 0.0))
            if (kind, end) == (span.kind, span.start):
                last[row] = kind, begin, span.end
                continue
            yield from self._bar(kind, begin, end, row)
            last[row] = span.kind, span.start, span.end
        for row, (kind, begin, end) in last.items():
            yield from self._bar(kind, begin, end, row)

    def _arrows(self) -> Iterator[str]:
        """Draw who waited for another rank, from the row of the signal to that of the wait."""
        spans, tracks = self._timeline.spans, self._timeline.tracks
        for span in spans:
            source = spans[span.after].track if span.after >= 0 else -1
            if span.track in self._rows and source in self._rows and tracks[source].group != tracks[span.track].group:
                yield from self._arrow("full", span.end, self._rows[source], self._rows[span.track])


class _Picture(_Chart):
    def __init__(self, timeline: Timeline, start: float, end: float, names: tuple[str, str], tasks: Mapping[str, str]):
        super().__init__(timeline, start, end)
        self._uses = list(_uses(timeline, *names))
        if not self._uses:
            raise ValueError(f"the timeline has no phases of barriers '{names[0]}' and '{names[1]}'")
        self._waits = re.compile(rf"wait ({'|'.join(map(re.escape, names))})(?:\[(\d+)\])? phase \d+")
        self._full = names[0]
        self._slots: dict[tuple[str, int], int] = {}
        """The row of each slot of each CTA."""
        for cta in dict.fromkeys(use.cta for use in self._uses):
            self._add_cta(cta, tasks)
        has_core = "tensor core" in self._labels[-1]
        self.legend = [each for each in _LEGEND if each[0] != "product" or has_core]
        self._scaled()

    def _add_cta(self, cta: str, tasks: Mapping[str, str]) -> None:
        """Add rows for a CTA: its first task, its slots, its other tasks, a tensor core that works."""
        tracks = [(n, each) for n, each in enumerate(self._timeline.tracks) if each.cta == cta]
        warps = {each.group: number for number, each in reversed(tracks) if each.kind == "warp"}
        (first, producer), *others = [*warps.items()][::-1]
        self._add_track(producer, cta, first, tasks)
        for slot in range(1 + max(use.slot for use in self._uses if use.cta == cta)):
            self._slots[cta, slot] = len(self._labels)
            self._labels.append(f"{cta}slot {slot}")
        for group, track in others:
            self._add_track(track, cta, group, tasks)
        for number, each in tracks:
            if each.kind == "tensor core":
                self._rows[number] = len(self._labels)
                self._labels.append(f"{cta}tensor core")
                break

    def _add_track(self, track: int, cta: str, group: str, tasks: Mapping[str, str]) -> None:
        self._rows[track] = len(self._labels)
        task = group.removeprefix(cta)
        self._labels.append(cta + tasks.get(task, task))

    def _spans(self) -> Iterator[str]:
        yield from super()._spans()
        for use in self._uses:
            row = self._slots[use.cta, use.slot]
            yield from self._bar("copy", use.written, use.full, row, f"phase {use.phase}", str(use.phase))
            yield from self._bar("buffer", use.full, use.released, row)

    def _arrows(self) -> Iterator[str]:
        """Draw who waited for a slot, from its row to that of the task."""
        for span in self._timeline.spans:
            if span.kind != "wait" or span.track not in self._rows or not self._start < span.end < self._end:
                continue
            if found := self._waits.match(span.name):
                kind = "full" if found[1] == self._full else "empty"
                slot = (self._timeline.tracks[span.track].cta, int(found[2] or 0))
                yield from self._arrow(kind, span.end, self._slots[slot], self._rows[span.track])


def _uses(timeline: Timeline, full: str, empty: str) -> Iterator[_Use]:
    """Yield the uses of slots, from the phases of both barriers of each."""
    phases: dict[tuple[str, str], list[Span]] = {}
    for span in timeline.spans:
        track = timeline.tracks[span.track]
        if span.kind == "phase" and track.kind == "barrier":
            phases.setdefault((track.cta, track.name), []).append(span)
    for (cta, name), spans in phases.items():
        if (found := re.fullmatch(rf"{re.escape(full)}(?:\[(\d+)\])?", name)) is None:
            continue
        # A phase of `empty` may be the one before the first use: the first that ends after a slot is full releases it.
        releases = sorted(span.end for span in phases.get((cta, name.replace(full, empty, 1)), []))
        for phase, span in enumerate(sorted(spans, key=lambda each: each.end)):
            released = next((end for end in releases if end > span.end), timeline.end)
            yield _Use(cta, int(found[1] or 0), phase, span.start, span.end, released)
