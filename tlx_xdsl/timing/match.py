"""A predicted timeline beside a measured one of the same kernel: pairs of waits, and how far they lie apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .timeline import Span, Timeline

SHARE_APART = 0.25
"""How far a predicted wait may lie from the measured one, as a share of that one."""
CYCLES_APART = 200.0
"""How far it may lie in any case, in cycles."""


@dataclass(frozen=True)
class WaitPair:
    """A wait of one warp at one line, the n-th of its kind there, in both timelines."""

    warp: str
    """The track: its group and its name."""
    line: int
    name: str
    """What was waited for, as the measured timeline says it."""
    visit: int
    """How often the warp had waited there before."""
    predicted: float
    """Cycles that it takes."""
    measured: float

    @property
    def difference(self) -> float:
        """The predicted cycles less the measured ones."""
        return self.predicted - self.measured

    @property
    def is_close(self) -> bool:
        """True within 25 % of the measured cycles or 200 cycles."""
        return abs(self.difference) <= max(SHARE_APART * self.measured, CYCLES_APART)


@dataclass(frozen=True)
class Match:
    """The waits of two timelines in pairs."""

    pairs: tuple[WaitPair, ...] = ()
    predicted_only: int = 0
    """Waits of warps that both have, which only the prediction has."""
    measured_only: int = 0
    warps: int = 0
    """The warps that both have."""

    @property
    def share(self) -> float:
        """The share of pairs that are close; 0 where there are none."""
        return sum(each.is_close for each in self.pairs) / len(self.pairs) if self.pairs else 0.0

    def by_line(self) -> dict[tuple[int, str], list[WaitPair]]:
        """Return the pairs by line and kind of wait, in the order of lines."""
        found: dict[tuple[int, str], list[WaitPair]] = {}
        for each in sorted(self.pairs, key=lambda pair: (pair.line, kind_of_wait(pair.name))):
            found.setdefault((each.line, kind_of_wait(each.name)), []).append(each)
        return found

    def __str__(self) -> str:
        """Return a table: for each line how many waits are close, and what they take on average."""
        lines = [f"{'line':>5}  {'wait for':<24} {'pairs':>6} {'close':>6} {'predicted':>10} {'measured':>10}"]
        for (line, kind), pairs in self.by_line().items():
            predicted, measured = (sum(values) / len(pairs) for values in _columns(pairs))
            close = sum(each.is_close for each in pairs) / len(pairs)
            lines.append(f"{line:>5}  {kind:<24} {len(pairs):>6} {close:>6.0%} {predicted:>10.0f} {measured:>10.0f}")
        total = f"{self.share:.0%} of {len(self.pairs)} pairs of {self.warps} warps are close"
        rest = f"{self.predicted_only} waits are predicted only, {self.measured_only} measured only"
        return "\n".join([*lines, f"{total} (within {SHARE_APART:.0%} or {CYCLES_APART:.0f} cycles); {rest}"])


def _columns(pairs: list[WaitPair]) -> tuple[list[float], list[float]]:
    return [each.predicted for each in pairs], [each.measured for each in pairs]


def match(predicted: Timeline, measured: Timeline) -> Match:
    """Pair the waits of warps that both timelines show: the n-th at a line with the n-th there.

    Warps are the same by group and name; where groups differ, because one timeline shows more CTAs or knows no tasks,
    by their names in the first CTA of each.
    """
    pairs: list[WaitPair] = []
    left = [0, 0]
    shared = _same_warps(predicted, measured)
    for warp, first, second in shared:
        ours, theirs = _waits(predicted, first), _waits(measured, second)
        for key in dict.fromkeys([*ours, *theirs]):
            own, other = ours.get(key, []), theirs.get(key, [])
            for visit, (one, two) in enumerate(zip(own, other, strict=False)):
                pairs.append(WaitPair(warp, key[0], two.name, visit, one.end - one.start, two.end - two.start))
            left[0] += max(0, len(own) - len(other))
            left[1] += max(0, len(other) - len(own))
    return Match(tuple(pairs), left[0], left[1], len(shared))


def kind_of_wait(name: str) -> str:
    """Return what a wait is for, without what each timeline names in its own way: `mbarrier`, `barrier 1`."""
    said = name.removeprefix("wait ").removeprefix("for ")
    return "mbarrier" if " phase " in said else said


def _same_warps(predicted: Timeline, measured: Timeline) -> list[tuple[str, int, int]]:
    """Name and place in both timelines of each warp that both have."""
    first, second = dict(_warps(predicted)), dict(_warps(measured))
    both = [(f"{group} {name}".strip(), first[group, name], second[group, name]) for group, name in first
            if (group, name) in second]  # fmt: skip
    if both:
        return both
    by_name = ({name: place for (_, name), place in reversed(each.items())} for each in (first, second))
    ours, theirs = by_name
    return [(name, ours[name], theirs[name]) for name in reversed(ours) if name in theirs]


def _warps(timeline: Timeline) -> Iterator[tuple[tuple[str, str], int]]:
    for place, track in enumerate(timeline.tracks):
        if track.kind == "warp":
            yield (track.group, track.name), place


def _waits(timeline: Timeline, track: int) -> dict[tuple[int, str], list[Span]]:
    """The waits of a warp by line and kind, in the order of time."""
    found: dict[tuple[int, str], list[Span]] = {}
    for span in timeline.spans:
        if span.track == track and span.kind == "wait" and span.place >= 0:
            key = timeline.places[span.place].line, kind_of_wait(span.name)
            found.setdefault(key, []).append(span)
    for spans in found.values():
        spans.sort(key=lambda each: each.start)
    return found
