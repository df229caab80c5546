"""Timelines as text for a terminal: a bar for each task and unit, the longest waits, what limits the kernel."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from textwrap import wrap

from ..timeline import Span, SpanKind, Timeline

MOST_LINES = 30
_MOST_ROWS, _MOST_WAITS = 12, 5
_MANY_PHASES, _SHOWN_PHASES = 12, 3
"""Phases of one barrier above which bars show some of them, and how many these are."""
_LETTERS: dict[SpanKind, str] = {
    "work": "#", "issue": "#", "product": "=", "copy": "~", "store": "~", "wait": ".",
}  # fmt: skip
_NAMES = {"#": "work", "=": "product", "~": "copy", ".": "wait", ":": "wait for tensor cores"}
_LEGEND = "# work  = product  ~ copy  . wait  : wait for tensor cores"


@dataclass
class _Row:
    """Tracks that share a bar: those of a task, or one unit."""

    name: str
    tracks: int
    whole: dict[str, float]
    """Cycles that go to each letter."""
    cycles: dict[str, list[float]]
    """The same in each column of the bar."""

    def bar(self, column: float) -> str:
        """Return the letter that most of each column is; blank where nothing goes on for half of its cycles."""
        held = [max(zip(cycles, self.cycles, strict=True)) for cycles in zip(*self.cycles.values(), strict=True)]
        busy = [sum(cycles) for cycles in zip(*self.cycles.values(), strict=True)]
        return "".join(
            each[1] if sum_ >= column * self.tracks / 2 else " " for each, sum_ in zip(held, busy, strict=True)
        )

    def shares(self, whole: float) -> str:
        """Return the share of the time that goes to each letter, waits last."""
        shares = {each: 100 * cycles / (whole * self.tracks or 1.0) for each, cycles in self.whole.items()}
        words = [f"{_NAMES[each]} {share:.0f}" for each, share in shares.items() if share >= 0.5]
        return f"{', '.join(words)} %" if words else ""


def to_text(timeline: Timeline, width: int = 80) -> str:
    """Return a timeline as at most 30 lines of at most `width` characters (at least 40).

    Each task has a bar over the time of the CTAs that are shown, in which each character is what its warps do most in
    those cycles; a tensor core and TMA have one, too. Where a barrier has many phases the bars show some of them, from
    the middle, and the shares after them are those of the whole. Then follow the longest waits with lines and causes.

    ```python
    print(to_text(kernel.timeline(grid, *args), shutil.get_terminal_size().columns))
    ```
    """
    width = max(width, 40)
    head = [*wrap(_heading(timeline), width), *wrap(" ".join(timeline.sentences), width)][:10]
    bars = _bars(timeline, width)
    waits = _waits(timeline, width)
    notes = wrap(" ".join(timeline.notes), width)
    lines = [*head, "", *bars, *(["", *waits] if waits else [])]
    if notes and len(lines) + len(notes) < MOST_LINES:
        lines += ["", *notes]
    return "\n".join(lines[:MOST_LINES])


def _heading(timeline: Timeline) -> str:
    """Return the kernel, the GPU, and its time in one sentence."""
    parts = [f"{timeline.kernel}, {timeline.title} on {timeline.chip}: {timeline.end:,.0f} {timeline.unit} shown"]
    if timeline.launch_cycles is not None:
        parts = [f"{parts[0]}, {timeline.launch_cycles:,.0f} for the launch"]
    cycles = timeline.end if timeline.launch_cycles is None else timeline.launch_cycles
    if timeline.hertz:
        parts.append(f"({cycles / timeline.hertz * 1e6:,.1f} us at {timeline.hertz / 1e9:.2f} GHz)")
    return " ".join(parts)


def _bars(timeline: Timeline, width: int) -> list[str]:
    """Return the axis, a bar for each task and unit, and what the characters mean."""
    names = _names(timeline)
    left = min(max((len(name) for name in names.values()), default=0), width // 4)
    left = max(left, len(timeline.unit)) + 1
    right = min(36, width // 3)
    columns = width - left - right - 1
    start, end = _window(timeline)
    rows = _rows(timeline, names, columns, start, end)
    if not rows:
        return []
    shown = rows[:_MOST_ROWS]
    first, last = f"{start:,.0f}", f"{end:,.0f}"
    lines = [f"{timeline.unit:{left}}{first}{last:>{max(columns - len(first), len(last) + 1)}}"]
    for row in shown:
        bar = row.bar((end - start) / columns)
        lines.append(f"{_cut(row.name, left - 1):{left}}{bar} {row.shares(timeline.end)}")
    if len(rows) > len(shown):
        lines.append(f"{'':{left}}and {len(rows) - len(shown)} more")
    return [_cut(line.rstrip(), width) for line in [*lines, " " * left + _LEGEND]]


def _names(timeline: Timeline) -> dict[int, str]:
    """Return the row of each track: the task of a warp, a tensor core and TMA of a CTA; others have none."""
    found: dict[int, str] = {}
    cores: set[str] = set()
    for number, track in enumerate(timeline.tracks):
        if track.kind == "warp":
            found[number] = track.group
        elif track.kind == "tma" or (track.kind == "tensor core" and track.cta not in cores):
            cores |= {track.cta} if track.kind == "tensor core" else set()
            found[number] = track.cta + track.name
    return found


def _window(timeline: Timeline) -> tuple[float, float]:
    """Return the cycles that bars show: all, or some phases in the middle of the barrier that has the most."""
    phases: defaultdict[int, list[float]] = defaultdict(list)
    for span in timeline.spans:
        if span.kind == "phase":
            phases[span.track].append(span.end)
    ends = sorted(max(phases.values(), key=len, default=list[float]()))
    if len(ends) <= _MANY_PHASES:
        return 0.0, timeline.end
    middle = len(ends) // 2
    return ends[middle - 1], ends[middle - 1 + _SHOWN_PHASES]


def _rows(timeline: Timeline, names: dict[int, str], columns: int, start: float, end: float) -> list[_Row]:
    rows = {name: _Row(name, 0, dict.fromkeys(_NAMES, 0.0), {}) for name in names.values()}
    for row in rows.values():
        row.cycles = {each: [0.0] * columns for each in _NAMES}
    for name in names.values():
        rows[name].tracks += 1
    long = (end - start or 1.0) / columns
    busy_until: dict[int, float] = {}
    for span in sorted(timeline.spans, key=lambda each: each.start):
        if span.track not in names or span.kind not in _LETTERS:
            continue
        row, letter, begin = rows[names[span.track]], _letter(timeline, span), span.start
        if timeline.tracks[span.track].kind == "tma":
            # Copies overlap: their unit is busy once.
            begin = min(max(begin, busy_until.get(span.track, 0.0)), span.end)
            busy_until[span.track] = max(span.end, busy_until.get(span.track, 0.0))
        row.whole[letter] += span.end - begin
        for column in range(max(0, int((begin - start) / long)), min(columns, int((span.end - start) / long) + 1)):
            left = start + column * long
            row.cycles[letter][column] += max(0.0, min(span.end, left + long) - max(begin, left))
    return list(rows.values())


def _letter(timeline: Timeline, span: Span) -> str:
    on_product = span.after >= 0 and timeline.spans[span.after].kind == "product"
    return ":" if span.kind == "wait" and on_product else _LETTERS[span.kind]


def _waits(timeline: Timeline, width: int) -> list[str]:
    """Return the longest waits of warps, by task, line and cause, with their share of the task's time."""
    warps = Counter(track.group for track in timeline.tracks if track.kind == "warp")
    sums: defaultdict[tuple[str, str, str], float] = defaultdict(float)
    for span in timeline.spans:
        track = timeline.tracks[span.track]
        if span.kind == "wait" and track.kind == "warp":
            sums[track.group, _place(timeline, span), span.cause] += span.end - span.start
    longest = sorted(sums.items(), key=lambda each: -each[1])[:_MOST_WAITS]
    shares = {key: 100 * cycles / (timeline.end * warps[key[0]] or 1.0) for key, cycles in longest}
    lines = [
        _cut(f"{share:3.0f} %  {group}, {place}{f', for {cause}' if cause else ''}", width)
        for (group, place, cause), share in shares.items()
        if share >= 0.5
    ]
    return ["waits, of the time of the task's warps", *lines] if lines else []


def _place(timeline: Timeline, span: Span) -> str:
    if span.place < 0:
        return span.name
    place = timeline.places[span.place]
    return f"{place.file.replace(chr(92), '/').rpartition('/')[2]}:{place.line}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
