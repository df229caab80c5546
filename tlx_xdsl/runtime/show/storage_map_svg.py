"""The storage map as a picture: one row for every array, bytes or columns from left to right, a colour for each task.

A buffer is a box with a band of colour for each task that uses it. Dashed lines separate the groups of buffers of a
region, hatched is what no buffer takes, and the red line is the limit of the target. Below stands a time axis for each
task: the lines that use buffers, a bar for each array from its first to its last use, pale where a loop goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil
from pathlib import PurePath
from typing import get_args

from tlx_xdsl.analysis.lives import Life
from tlx_xdsl.analysis.storage_map import NAMES, UNITS, Array, Memory, Region, Span, StorageMap
from tlx_xdsl.targets import target_of

# Pixels.
WIDTH, LEFT, RIGHT = 1100, 210, 30
NARROW, MARGIN, LINE = 700, 12, 15
"""Pictures below a width, for phones, have labels above their rows instead of at the left; the height of a label."""
ROW, GAP, BAR, TIME = 24, 5, 8, 16
CHARACTER = 6.2
"""Width of a letter of 11 pixels, on the wide side: a label that might not fit is left out."""

# Okabe and Ito's colours, which people with any colour vision distinguish, made lighter to carry black text.
COLOURS = ("#a6d8f3", "#f6c98f", "#8fd6bf", "#e6b6d0", "#f6ee9c", "#8fbfe0", "#eaae8a", "#cccccc")
# Inside of a page, rules of a picture would hold for the whole page: they name the picture.
_STYLE = (
    ".tlx-map{--ink:#222;--paper:#fff;--faint:#5a5a5a;--limit:#c00000;--hatch:#b0b0b0;--bar:#e4e4e4}"
    "@media(prefers-color-scheme:dark){.tlx-map{--ink:#e6edf3;--paper:#0d1117;--faint:#b4bcc6;--limit:#ff7b72;"
    "--hatch:#545d68;--bar:#3d444d}}"
    ".tlx-map text{font-family:Helvetica,Arial,sans-serif;font-size:11px;fill:var(--ink)}"
    ".tlx-map .title{font-size:16px;font-weight:bold}.tlx-map .memory{font-size:13px;font-weight:bold}"
    ".tlx-map .faint{fill:var(--faint)}.tlx-map .limit{fill:var(--limit)}.tlx-map .on{fill:#222}"
)
_HATCH = (
    '<defs><pattern id="unused" width="6" height="6" patternTransform="rotate(45)" patternUnits="userSpaceOnUse">'
    '<rect width="6" height="6" fill="var(--paper)"/><rect width="2" height="6" fill="var(--hatch)"/></pattern></defs>'
)


def map_as_svg(map_: StorageMap, width: int = WIDTH) -> str:
    """The map as the text of an SVG file, so many pixels wide."""
    return _Picture(map_, width).draw()


@dataclass(frozen=True)
class _Axis:
    """Bytes or columns to pixels."""

    length: int
    left: int
    width: int
    """Pixels from the left end, and of the whole."""

    def x(self, position: int) -> float:
        """Return where a byte or column begins."""
        return self.left + self.width * position / self.length

    def box(self, span: Span, offset: int) -> tuple[float, float]:
        """Left end and width of a span of the region at `offset`; the smallest is still seen."""
        left = self.x(offset + span.start)
        return left, max(self.x(offset + span.end) - left, 1.5)


class _Picture:
    def __init__(self, map_: StorageMap, width: int):
        self.map = map_
        self.width = width
        self.is_narrow = width < NARROW
        self.left, right = (MARGIN, MARGIN) if self.is_narrow else (LEFT, RIGHT)
        self.right = width - right
        drawn = {task for region in map_.regions for array in region.arrays for task in _tasks([array])}
        tasks = [task for task in map_.tasks if task in drawn]
        self.colours: Mapping[str, str] = {task: COLOURS[i % len(COLOURS)] for i, task in enumerate(tasks)}
        self.parts: list[str] = []
        self.y = 0.0

    def draw(self) -> str:
        """Draw all memories, from top to bottom."""
        self._title()
        for memory in get_args(Memory):
            if self.map.of(memory):
                self._memory(memory)
        for task in self.map.moments:
            self._time(task)
        height = self.y + 12
        frame = f'width="{self.width}" height="{height:.0f}" viewBox="0 0 {self.width} {height:.0f}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" class="tlx-map" {frame}>'
        background = f'<rect width="{self.width}" height="{height:.0f}" fill="var(--paper)"/>'
        return "\n".join([head, f"<style>{_STYLE}</style>", _HATCH, background, *self.parts, "</svg>"])

    # --- parts of the picture ------------------------------------------------------------------------------------

    def _title(self) -> None:
        totals = [
            f"{self.map.used(memory):,} of {self.map.limit(memory):,} {UNITS[memory]} of {NAMES[memory]}"
            for memory in get_args(Memory)
            if self.map.of(memory)
        ]
        title = f"{self.map.kernel} on {target_of(self.map.capability).name}"
        self._text(MARGIN, 26, title if self.is_narrow else f"{title}: {'; '.join(totals)}", "title")
        self.y = 40
        for total in totals if self.is_narrow else ():
            self._text(MARGIN, self.y + 4, total)
            self.y += LINE
        x = float(MARGIN)
        for task, colour in {**self.colours, "unused": "url(#unused)"}.items():
            if x + 19 + CHARACTER * len(task) > self.right:
                x, self.y = float(MARGIN), self.y + LINE + GAP
            self._rect(x, self.y, 14, 14, colour)
            self._text(x + 19, self.y + 11, task)
            x += 40 + CHARACTER * len(task)
        self.y += 30

    def _memory(self, memory: Memory) -> None:
        regions, limit = self.map.of(memory), self.map.limit(memory)
        axis = _Axis(max(self.map.used(memory), limit), self.left, self.right - self.left)
        self._text(MARGIN, self.y + 14, f"{NAMES[memory]}, {UNITS[memory]}", "memory")
        top = self.y + 22
        self._ticks(axis, limit, top)
        self.y = top + 20
        barriers = [region for region in regions if region.arrays[0].role == "barriers"]
        for region in regions:
            if region not in barriers:
                self._region(axis, region)
        if barriers:
            self._barriers(axis, barriers)
        x = axis.x(limit)
        self._text(x, top + 10, f"limit {limit:,}", "limit", "end" if x > self.right - 40 else "middle")
        self._line(x, top + 14, x, self.y, 'stroke="var(--limit)" stroke-width="1.5"')
        self.y += 14

    def _time(self, task: str) -> None:
        """Draw the lives of arrays in a task: its lines from left to right, a bar for each array."""
        moments = self.map.moments[task]
        files = ", ".join(dict.fromkeys(PurePath(place.filename).name for place in moments))
        self._text(MARGIN, self.y + 14, f"alive in {task}, by line of {files}", "memory")
        top = self.y + 22
        wide = (self.right - self.left) / len(moments)
        # As many numbers as have room.
        every = ceil(CHARACTER * (1 + max(len(str(place.line)) for place in moments)) / wide)
        for number, place in enumerate(moments):
            if number % every == 0:
                self._text(self.left + (number + 0.5) * wide, top + 10, str(place.line), "faint", "middle")
        self.y = top + 16
        for array in (array for region in self.map.regions for array in region.arrays):
            for life in (life for life in array.lives if life.task == task):
                self._label(MARGIN, 12, array.name)
                self._life(life, array.name, wide)
                self.y += TIME + GAP
        self.y += 14

    def _life(self, life: Life, name: str, wide: float) -> None:
        """A bar from the first to the last use, pale where a loop leads around it, with a mark at each use."""
        colour = self.colours.get(life.task, "#f0f0f0")
        lines = self.map.moments[life.task]
        for (low, high), opacity in ((life.whole, 0.35), ((life.first, life.last), 1)):
            hint = f"{name}: lines {lines[low].line} to {lines[high].line}"
            left, width = self.left + low * wide, (high - low + 1) * wide
            self.parts.append(f'<g opacity="{opacity}"><title>{escape(hint)}</title>')
            self._rect(left, self.y, width, TIME, colour, stroke="none")
            self.parts.append("</g>")
        for use in life.uses:
            self._rect(self.left + (use + 0.5) * wide - 3, self.y + 5, 6, TIME - 10, "#222222", stroke="none")

    def _ticks(self, axis: _Axis, limit: int, top: float) -> None:
        step = 1
        while axis.length / step > axis.width / 70:
            step *= 2
        for position in range(0, axis.length + 1, step):
            x = axis.x(position)
            # The limit has a label there.
            if abs(x - axis.x(limit)) > 100:
                self._line(x, top + 14, x, top + 18, 'stroke="var(--faint)"')
                self._text(x, top + 10, f"{position:,}", "faint", "middle")

    def _region(self, axis: _Axis, region: Region) -> None:
        top = self.y
        if region.is_shared or len(region.arrays) > 1:
            left, width = axis.box(Span(0, region.size), region.start)
            self._label(MARGIN, 9, f"{region.name}: {region.size:,} {UNITS[region.memory]}")
            self._rect(left, self.y, width, BAR, "var(--bar)")
            self._gaps(axis, region, self.y, BAR)
            self.y += BAR + GAP
        for array in region.arrays:
            self._row(axis, region, array, indent=14 if region.is_shared else 0)
        for group in range(1, region.groups):
            x = axis.x(region.start + group * region.stride)
            self._line(x, top, x, self.y - GAP, 'stroke="var(--ink)" stroke-dasharray="4 3"')
        self.y += GAP

    def _row(self, axis: _Axis, region: Region, array: Array, indent: int) -> None:
        plural = f" {len(array.buffers)} x" if len(array.buffers) > 1 else ""
        self._label(MARGIN + indent, 15, f"{array.name}:{plural} {array.type}")
        colours = [self.colours[task] for task in _tasks([array])] or ["#f0f0f0"]
        for index, span in enumerate(array.buffers):
            label = array.name if array.role == "view" else f"{array.name}[{index}]"
            hint = f"{label}: {span.start:,} to {span.end:,} of {region.name}, {span.size:,} {UNITS[region.memory]}"
            left, width = axis.box(span, region.start)
            self._bands(left, width, colours, hint)
            if width > CHARACTER * len(label) + 2:
                self._text(left + width / 2, self.y + ROW / 2 + 4, label, "on", "middle")
        self.y += ROW + GAP

    def _bands(self, left: float, width: float, colours: Sequence[str], hint: str) -> None:
        self.parts.append(f"<g><title>{escape(hint)}</title>")
        for number, colour in enumerate(colours):
            band = ROW / len(colours)
            self._rect(left, self.y + number * band, width, band, colour, stroke="none")
        self._rect(left, self.y, width, ROW, "none")
        self.parts.append("</g>")

    def _gaps(self, axis: _Axis, region: Region, y: float, height: float) -> None:
        for gap in region.padding:
            left, width = axis.box(gap, region.start)
            self._rect(left, y, width, height, "url(#unused)")

    def _barriers(self, axis: _Axis, regions: Sequence[Region]) -> None:
        """All barriers in one row: alone each would be a hair on a line of its own."""
        arrays = [array for region in regions for array in region.arrays]
        count = sum(len(array.buffers) for array in arrays)
        self._label(MARGIN, 15, f"barriers: {count} in {len(arrays)} arrays")
        colours = [self.colours[task] for task in _tasks(arrays)]
        for region in regions:
            left, width = axis.box(Span(0, region.size), region.start)
            self._bands(left, width, colours, f"{region.name}: {region.size} B at {region.start:,}")
        self.y += ROW + GAP

    # --- SVG -----------------------------------------------------------------------------------------------------

    def _rect(self, x: float, y: float, width: float, height: float, fill: str, stroke: str = "#444444") -> None:
        size = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        self.parts.append(f'<rect {size} fill="{fill}" stroke="{stroke}" stroke-width="0.8"/>')

    def _line(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>')

    def _label(self, x: float, below: float, text: str) -> None:
        """Write what a row is: at its left so far below its top, or on a line above it."""
        if self.is_narrow:
            self._text(x, self.y + 11, text)
            self.y += LINE
        else:
            self._text(x, self.y + below, text)

    def _text(self, x: float, y: float, text: str, class_: str = "", anchor: str = "start") -> None:
        kind = f' class="{class_}"' if class_ else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}"{kind} text-anchor="{anchor}">{escape(text)}</text>')


def _tasks(arrays: Sequence[Array]) -> Iterator[str]:
    """The tasks that use some of `arrays`, each once; code outside of tasks where there is nothing else."""
    tasks = dict.fromkeys(use.task for array in arrays for use in array.uses)
    inside = [task for task in tasks if task != "kernel"]
    return iter(inside or tasks)
