"""What `tlx run --stage ptx --profile` prints: where a run's instructions, wavefronts, sectors, waits and bytes go."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping
from pathlib import Path

from tlx_xdsl.ptx.launch import PtxRun
from tlx_xdsl.ptx.traffic import Cost, LineTraffic

_SHOWN = 10
"""Lines and operations that most instructions are of."""
_LINES = 5
"""Lines of each of the other tables."""


def print_profile(run: PtxRun) -> None:
    """Print the operations and the lines that most instructions are of, and what lines take besides."""
    for opcode, count in sorted(run.counts.items(), key=lambda item: -item[1])[:_SHOWN]:
        print(f"{count:>12,} {100 * count / run.instructions:5.1f} %  {opcode}")
    for place, count in sorted(run.lines.items(), key=lambda item: -item[1])[:_SHOWN]:
        print(f"{count:>12,} {100 * count / run.instructions:5.1f} %  {_shown(place)}")
    _print_costs("shared memory", "wavefronts", run.traffic, lambda each: each.shared)
    _print_costs("global memory", "sectors", run.traffic, lambda each: each.sectors)
    _print_counts("copies by TMA", "bytes", run.traffic, lambda each: each.copied)
    _print_counts("tensor cores", "operations", run.traffic, lambda each: each.products)
    _print_counts("waits of warps", "not met when first asked", run.traffic, lambda each: each.waits)


def _print_costs(
    what: str, unit: str, traffic: Mapping[tuple[str, int], LineTraffic], cost_of: Callable[[LineTraffic], Cost]
) -> None:
    """A table of those lines that take more than the least."""
    costs = {place: cost_of(each) for place, each in traffic.items()}
    total = Cost()
    for each in costs.values():
        total.add(each.requests, each.taken, each.least)
    if not total.requests:
        return
    print(f"{what}: {total.requests:,} requests of warps, {total.taken:,} {unit}, {total.least:,} at least")
    worse = [(place, cost) for place, cost in costs.items() if cost.taken > cost.least]
    for place, cost in sorted(worse, key=lambda item: item[1].least - item[1].taken)[:_LINES]:
        print(f"{cost.taken:>12,} {cost.taken / max(1, cost.least):5.1f} x  {_shown(place)}")


def _print_counts(
    what: str, unit: str, traffic: Mapping[tuple[str, int], LineTraffic], count_of: Callable[[LineTraffic], int]
) -> None:
    counts = {place: count for place, each in traffic.items() if (count := count_of(each))}
    if not counts:
        return
    total = sum(counts.values())
    print(f"{what}: {total:,} {unit}")
    for place, count in sorted(counts.items(), key=lambda item: -item[1])[:_LINES]:
        print(f"{count:>12,} {100 * count / total:5.1f} %  {_shown(place)}")


def _shown(place: tuple[str, int]) -> str:
    path, line = place
    return f"{Path(path).name}:{line}: {linecache.getline(path, line).strip()}".removesuffix(": ")
