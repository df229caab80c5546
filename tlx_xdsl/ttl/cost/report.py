"""The profile of a run: a text with bytes, tiles and cycles, and a timeline with a row for each thread and network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.text.diagnostics import source_line, source_location
from tlx_xdsl.timing.timeline import Place, Span, Timeline, Track
from tlx_xdsl.tools.output import table

from ..dialects.ttcore import MemorySpace
from ..dialects.ttl.types import encoding_of
from ..interpreter.ttkernel.plan import DIALECTS, Report, make_plan, run
from .observe import Observer, per_core
from .rates import CHIPS, SOURCES

UNCHECKED = "Counted on the checking machine and estimated from published rates. It was never compared with a card."
_WAYS = ("read", "written", "to cores")
_ENGINES = ("matrix", "vector", "unpack", "pack")
_MOST_CORES = 16


@dataclass(frozen=True)
class Profile:
    """Counts and times of a run."""

    kernel: str
    chip: str
    """The name of the architecture."""
    observed: Observer
    report: Report

    @property
    def end(self) -> float:
        """Cycles until the last thread has ended, at least."""
        return max((each.end for each in self.observed.intervals), default=0.0)

    def text(self) -> str:
        """Return the profile as lines for a terminal."""
        seen = self.observed
        lines = [f"{self.kernel} on {self.chip}: {self.end:,.0f} cycles at least. {UNCHECKED}"]
        lines += _section("bytes over the networks on chip", ("", *_WAYS), [
            (f"NOC_{noc}", *(f"{seen.network[noc, way]:,}" for way in _WAYS))
            for noc in sorted({noc for noc, _ in seen.network})
        ])  # fmt: skip
        lines += _section(f"bytes of the {seen.chip.banks} DRAM banks, page p in bank p mod {seen.chip.banks}",
            ("", *_WAYS[:2]), [
            (f"bank {bank}", *(f"{seen.banks[bank, way]:,}" for way in _WAYS[:2]))
            for bank in sorted({bank for bank, _ in seen.banks})
        ])  # fmt: skip
        lines += self._cores()
        lines += _section(f"tiles by engine, and their cycles with {seen.fidelity}", ("", "", "tiles", "cycles"), [
            (engine, name, f"{count:,}", _cycles(seen, engine, name))
            for engine in _ENGINES for (own, name), count in seen.tiles.items() if own == engine
        ])  # fmt: skip
        return "\n".join([*lines, "  rates: " + "; ".join(SOURCES)])

    def _cores(self) -> list[str]:
        seen = self.observed
        columns = [way for way in (*_WAYS, *_ENGINES, "cycles") if any(per_core(seen.cores, way))]
        rows = [
            (f"({x}, {y})", *(f"{counts[way]:,}" for way in columns))
            for (x, y), counts in sorted(seen.cores.items(), key=lambda each: each[0][::-1])
        ]
        more = [] if len(rows) <= _MOST_CORES else [f"    and {len(rows) - _MOST_CORES} more cores"]
        return [*_section("bytes, tiles and cycles of each core", ("core", *columns), rows[:_MOST_CORES]), *more]

    @property
    def timeline(self) -> Timeline:
        """The run in the form of the clock's timelines: `tlx_xdsl.timing.show` writes pages, traces and text of it."""
        rows = dict.fromkeys(each.row for each in self.observed.intervals)
        order = sorted(rows, key=lambda row: (row[0].y, row[0].x, row[0].agent, row[1]))
        tracks = [
            Track(f"{thread.name} {network}".strip(), "tma" if network else "warp", f"core ({thread.x}, {thread.y})")
            for thread, network in order
        ]
        numbers = {row: number for number, row in enumerate(order)}
        places: dict[tuple[str, int], int] = {}
        timeline = Timeline(
            self.kernel, self.chip, "predicted", tracks, end=self.end, notes=[UNCHECKED],
            sentences=["A lower bound: what has no published number takes no time.", UNCHECKED],
        )  # fmt: skip
        for each in self.observed.intervals:
            place, at = source_location(each.op.location), -1
            if place is not None:
                at = places.setdefault((place.filename, place.line), len(places))
                if at == len(timeline.places):
                    timeline.places.append(Place(place.filename, place.line, (source_line(place) or "").strip()))
            kind: Any = each.kind
            timeline.spans.append(Span(numbers[each.row], each.start, each.end, kind, each.name, at))
        timeline.check()
        return timeline


def profile(
    module: Any, arrays: Sequence[Array], *, fidelity: str = "HiFi4", schedule: str | Sequence[int] = "round-robin",
    seed: int = 0, capacity: int | None = None,
) -> Profile:  # fmt: skip
    """Run a kernel in its last form on the checking machine, as `run` does, and give what it moves and computes.

    `fidelity` is the `math_fidelity` of the matrix engine; TT-Metalium's default is HiFi4.

    Raises what `run` raises.
    """
    driver = make_plan(module).driver
    in_l1 = [number for number, arg in enumerate(driver.args) if _space(arg) is not MemorySpace.DRAM]
    chip = driver.architecture.name
    observer = Observer(CHIPS[chip], fidelity, frozenset(in_l1))
    plan = make_plan(module, dialects=observer.dialects(DIALECTS))
    report = run(plan, arrays, schedule=schedule, seed=seed, capacity=capacity)
    return Profile(driver.sym_name.data.removesuffix("_driver"), chip, observer, report)


def _space(argument: Any) -> MemorySpace:
    return encoding_of(argument.type).space.data


def _cycles(seen: Observer, engine: str, name: str) -> str:
    return f"{seen.cycles[name]:,}" if engine == "matrix" and name in seen.cycles else "not published"


def _section(title: str, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    return [f"  {title}", *table([head, *rows])] if rows else []
