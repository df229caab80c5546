"""Coverage as a picture: for each array of a kernel, which program touches which block.

Each array is drawn once for what is read and once for what is written, its last dimension to the right. A block has the
colour of the first program that touches it: from dark to light in the order of the programs, or, with waves, one
colour for all programs that run at a time. Grey hatching: no program touches it. Red hatching: several write it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from tlx_xdsl.addresses.coverage.coverage import Coverage, Writing
from tlx_xdsl.addresses.coverage.map import CoverageMap, coverage_map
from tlx_xdsl.addresses.coverage.touches import Kind
from tlx_xdsl.errors import InputError

# Pixels.
MARGIN, GAP = 20, 36
SIDE, THINNEST = 300, 44
"""The longer side of an array, and the shorter one at least."""
CHARACTER = 6.2
"""Width of a letter of 11 pixels, on the wide side."""
WIDEST = 1120

_RAMP = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))
"""Points of matplotlib's viridis, which is seen in its order by people with any colour vision, and in grey."""
_WAVES = ("#a6d8f3", "#f6c98f", "#8fd6bf", "#e6b6d0", "#f6ee9c", "#8fbfe0", "#eaae8a", "#cccccc")
"""Okabe and Ito's colours, made lighter to carry black text."""
_DRAWN: tuple[tuple[Kind, ...], ...] = (("load",), ("store", "atomic"))
"""Limits of what is drawn apart."""
_STYLE = (
    ".tlx-coverage text{font-family:Helvetica,Arial,sans-serif;font-size:11px;fill:#222}"
    ".tlx-coverage .title{font-size:16px;font-weight:bold}.tlx-coverage .array{font-size:13px;font-weight:bold}"
    ".tlx-coverage rect{shape-rendering:crispEdges}"
    ".tlx-coverage .faint{fill:#666}.tlx-coverage .fault{fill:#c00000}.tlx-coverage .light{fill:#fff}"
)
_HATCHES = (
    '<defs><pattern id="hole" width="6" height="6" patternTransform="rotate(45)" patternUnits="userSpaceOnUse">'
    '<rect width="6" height="6" fill="#ffffff"/><rect width="2" height="6" fill="#b0b0b0"/></pattern>'
    '<pattern id="clash" width="6" height="6" patternTransform="rotate(45)" patternUnits="userSpaceOnUse">'
    '<rect width="6" height="6" fill="#ffffff"/><rect width="3" height="6" fill="#e00000"/></pattern></defs>'
)


def coverage_as_svg(coverage: Coverage, *, wave: int | None = None) -> str:
    """The picture of a launch as the text of an SVG file; `wave` is the number of programs that run at a time.

    Raises ValueError where no array is touched whose shape is known.
    """
    return _Picture(coverage, wave).draw()


@dataclass(frozen=True)
class _Panel:
    """One array, read or written."""

    title: str
    lines: tuple[tuple[str, str], ...]
    """Text below the array, each with its class."""
    map: CoverageMap
    written: bool
    may_clash: bool
    """True if a block that several programs write is no fault: all of them do it atomically."""

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the array, in pixels: to scale, unless one side would be too thin."""
        longer = max(self.map.width, self.map.height)
        return max(THINNEST, SIDE * self.map.width / longer), max(THINNEST, SIDE * self.map.height / longer)

    @property
    def width(self) -> float:
        """Pixels of the whole panel."""
        texts = [self.title, *(text for text, _ in self.lines)]
        return max(self.size[0] + 46, CHARACTER * max(map(len, texts)) + 8)

    @property
    def height(self) -> float:
        """Pixels of the whole panel."""
        return 38 + self.size[1] + 16 * len(self.lines) + 8


class _Picture:
    def __init__(self, coverage: Coverage, wave: int | None):
        self.coverage = coverage
        self.wave = wave
        self.parts: list[str] = []
        writings = {each.array: each for each in coverage.writings()}
        self.panels = [
            panel
            for array in coverage.launch.shapes
            for kinds in _DRAWN
            if (panel := self._panel(array, kinds, writings.get(array))) is not None
        ]
        if not self.panels:
            raise InputError("--svg: no array is touched whose shape and addresses are known: give --shape and --arg")

    def draw(self) -> str:
        """Draw title, legend, and the arrays in rows."""
        launch = self.coverage.launch
        grid = " x ".join(map(str, launch.grid))
        name = self.coverage.function.sym_name.data
        plural = "" if launch.programs == 1 else "s"
        self._text(MARGIN, 28, f"{name}: {launch.programs:,} program{plural}, grid {grid}", "title")
        right = self._legend(42)
        x, y, tallest = float(MARGIN), 76.0, 0.0
        for panel in self.panels:
            if x > MARGIN and x + panel.width > WIDEST:
                x, y, tallest = float(MARGIN), y + tallest + 16, 0.0
            self._draw_panel(panel, x, y)
            x += panel.width
            right = max(right, x)
            x += GAP
            tallest = max(tallest, panel.height)
        width, height = right + MARGIN, y + tallest + 12
        frame = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" class="tlx-coverage" {frame}>'
        background = f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>'
        return "\n".join([head, f"<style>{_STYLE}</style>", _HATCHES, background, *self.parts, "</svg>"])

    # --- panels --------------------------------------------------------------------------------------------------

    def _panel(self, array: str, kinds: Sequence[Kind], writing: Writing | None) -> _Panel | None:
        touched = self.coverage.of(array, *kinds)
        if not touched:
            return None
        shape = self.coverage.launch.shapes[array]
        found = coverage_map(touched, shape)
        written = kinds != ("load",)
        title = f"{array} [{', '.join(map(str, shape))}], {'written' if written else 'read'}"
        lines = [(_summary(found, written), "faint")]
        if written and writing is not None:
            lines.append(_verdict(writing))
        ops = {each.op for each in touched}
        for fault in self.coverage.leaving():
            if fault.array == array and fault.op in ops:
                verb = "leave" if fault.certain else "may leave"
                count = f"{fault.programs} program{'' if fault.programs == 1 else 's'}"
                lines.append((f"{count} {verb if fault.programs > 1 else verb.replace('leave', 'leaves')} it", "fault"))
                break
        if any(len(each.maybe) for each in touched):
            lines.append(("accesses that depend on data are left out", "faint"))
        if not found.is_exact:
            lines.append(("blocks are too small for the picture: samples", "faint"))
        shared = writing is not None and writing.verdict == "shared by atomics"
        return _Panel(title, tuple(lines), found, written, shared)

    def _draw_panel(self, panel: _Panel, x: float, y: float) -> None:
        self._text(x, y + 12, panel.title, "array")
        left, top = x + 40, y + 34
        width, height = panel.size
        found = panel.map
        across, down = width / found.width, height / found.height
        for i in range(found.counts.shape[0]):
            for j, until in _alike(found, i):
                edges = (found.columns[j] * across, found.columns[until] * across)
                borders = (found.rows[i] * down, found.rows[i + 1] * down)
                box = (left + edges[0], top + borders[0], edges[1] - edges[0], borders[1] - borders[0])
                self._cell(panel, i, j, box)
        self._rect((left, top, width, height), "none", "#222222")
        self._text(left, top - 5, "0", "faint")
        self._text(left + width, top - 5, f"{found.width:,}", "faint", "end")
        self._text(left - 4, top + height, f"{found.height:,}", "faint", "end")
        for number, (text, class_) in enumerate(panel.lines):
            self._text(x, top + height + 18 + 16 * number, text, class_)

    def _cell(self, panel: _Panel, i: int, j: int, box: tuple[float, float, float, float]) -> None:
        count, first = int(panel.map.counts[i, j]), int(panel.map.first[i, j])
        clash = panel.written and count > 1 and not panel.may_clash
        fill = "url(#hole)" if not count else "url(#clash)" if clash else self._colour(first)
        hint = _hint(panel.map, i, j, self.coverage.launch.programs)
        stroke = "#ffffff" if min(box[2:]) > 5 else "none"
        self._rect(box, fill, stroke, hint)
        label = "" if not count else f"{first}" if count == 1 else f"{first} \N{MULTIPLICATION SIGN}{count}"
        x, y, width, height = box
        if label and width > CHARACTER * len(label) + 4 and height > 13 and not clash:
            dark = self.wave is None and first / max(1, self.coverage.launch.programs - 1) < 0.6
            self._text(x + width / 2, y + height / 2 + 4, label, "light" if dark else "", "middle")

    # --- colours and legend --------------------------------------------------------------------------------------

    def _colour(self, program: int) -> str:
        if self.wave is not None:
            return _WAVES[program // self.wave % len(_WAVES)]
        place = program / max(1, self.coverage.launch.programs - 1) * (len(_RAMP) - 1)
        low = min(int(place), len(_RAMP) - 2)
        mixed = [round(a + (b - a) * (place - low)) for a, b in zip(_RAMP[low], _RAMP[low + 1], strict=True)]
        return "#" + "".join(f"{value:02x}" for value in mixed)

    def _legend(self, y: float) -> float:
        """The colours; returns where the legend ends."""
        x = float(MARGIN)
        programs = self.coverage.launch.programs
        entries: list[tuple[str, str]] = []
        if self.wave is not None:
            waves = -(-programs // self.wave)
            self._text(x, y + 11, "programs")
            x += 58
            for number in range(min(waves, len(_WAVES))):
                last = min(programs, (number + 1) * self.wave) - 1
                entries.append((_WAVES[number], f"{number * self.wave} to {last}"))
            if waves > len(_WAVES):
                entries[-1] = (entries[-1][0], entries[-1][1] + ", and so on")
        elif programs <= 6:
            entries = [(self._colour(number), f"program {number}") for number in range(programs)]
        else:
            self._text(x, y + 11, "program 0")
            x += 58
            for step in range(24):
                colour = self._colour(round(step / 23 * (programs - 1)))
                self._rect((x + 5 * step, y, 5.2, 14), colour, "none")
            x += 125
            text = f"{programs - 1:,}"
            self._text(x, y + 11, text)
            x += CHARACTER * len(text) + 22
        entries.append(("url(#hole)", "no program"))
        if any(panel.written for panel in self.panels):
            entries.append(("url(#clash)", "written by several"))
        for colour, text in entries:
            self._rect((x, y, 14, 14), colour, "#444444")
            self._text(x + 19, y + 11, text)
            x += 40 + CHARACTER * len(text)
        return x

    # --- SVG -----------------------------------------------------------------------------------------------------

    def _rect(self, box: tuple[float, float, float, float], fill: str, stroke: str, hint: str = "") -> None:
        x, y, width, height = box
        size = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        edge = "" if stroke == "none" else f' stroke="{stroke}" stroke-width="0.8"'
        end = f"><title>{escape(hint)}</title></rect>" if hint else "/>"
        self.parts.append(f'<rect {size} fill="{fill}"{edge}{end}')

    def _text(self, x: float, y: float, text: str, class_: str = "", anchor: str = "start") -> None:
        kind = f' class="{class_}"' if class_ else ""
        place = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}"{kind}{place}>{escape(text)}</text>')


def _alike(found: CoverageMap, row: int) -> list[tuple[int, int]]:
    """The cells of a row, from and to where: those that stand side by side and are alike, as one.

    Blocks that a picture can show stay apart; of the samples of many small ones, which do not show any, strips remain.
    """
    count = found.counts.shape[1]
    if found.is_exact:
        return [(j, j + 1) for j in range(count)]
    cells: list[tuple[int, int]] = []
    for j in range(count):
        before = cells[-1][0] if cells else None
        if before is not None and all(
            each[row, before] == each[row, j] for each in (found.counts, found.first, found.last)
        ):
            cells[-1] = (before, j + 1)
        else:
            cells.append((j, j + 1))
    return cells


def _summary(found: CoverageMap, written: bool) -> str:
    """Return how often elements are touched."""
    verb = "written" if written else "read"
    counts = found.counts[found.counts > 0]
    if not counts.size:
        return f"not {verb}"
    low, high = int(counts.min()), int(counts.max())
    often = f"{low}" if low == high else f"{low} to {high}"
    by = f"by {often} program{'' if high == 1 else 's'}"
    return f"elements are {verb} {by}, some by none" if (found.counts == 0).any() else f"each element is {verb} {by}"


def _verdict(writing: Writing) -> tuple[str, str]:
    match writing.verdict:
        case "disjoint":
            return "no two programs write the same bytes", "faint"
        case "shared by atomics":
            return "programs share it by atomic operations", "faint"
        case "collides":
            assert writing.meeting is not None
            return f"programs {writing.meeting.program} and {writing.meeting.other} write the same bytes", "fault"
        case _:
            return f"collisions: not known, {writing.reason}", "faint"


def _hint(found: CoverageMap, i: int, j: int, programs: int) -> str:
    """The text that is shown with the mouse on a cell."""
    top, left = (int(value) for value in (found.rows[i], found.columns[j]))
    bottom, right = (int(value) - 1 for value in (found.rows[i + 1], found.columns[j + 1]))
    place = f"[{top:,} to {bottom:,}, {left:,} to {right:,}]" if found.height > 1 else f"[{left:,} to {right:,}]"
    count, first, last = (int(each[i, j]) for each in (found.counts, found.first, found.last))
    if not count:
        return f"{place}: no program"
    if count == 1:
        return f"{place}: program {first}"
    everybody = f"{place}: {count} programs" + (", all" if count == programs else "")
    return f"{everybody}, {first} to {last}"
