"""A whole launch, from replays of a few of its CTAs: how many share a multiprocessor, waves, and the tail.

A multiprocessor takes as many CTAs as its registers, shared memory, threads and places allow, and the next one when one
has ended. So a launch is a queue of clusters before as many servers; how long each takes is known for those that were
recorded, and the others follow them along the axes of the grid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from math import ceil, prod

from .chips import Chip
from .engine import Replayed
from .trace import Launch, Trace

_REGISTERS_UNKNOWN = 128
"""Registers of a thread where no cubin says them."""
_ROUNDS = 4
"""Clusters that are replayed of a long row of equal ones, for each that runs at the same time."""
_MOST_QUEUED = 100_000
"""Clusters up to which each one is served by itself."""


@dataclass(frozen=True)
class Occupancy:
    """The places that a launch takes on a chip."""

    ctas: int
    """CTAs that share a multiprocessor, if there are enough."""
    limit: str
    """What allows no more: `registers`, `shared memory`, `threads`, `places`."""
    clusters: int
    """Of the whole launch."""
    servers: int
    """Clusters that the chip has places for, with one CTA on a multiprocessor."""
    processors: int
    """Multiprocessors that have something to do."""

    @property
    def side_by_side(self) -> int:
        """Return the clusters that share the same multiprocessors at the same time."""
        return min(self.ctas, ceil(self.clusters / self.servers))

    @property
    def of_one(self) -> int:
        """Return the clusters that the busiest multiprocessors get in all."""
        return ceil(self.clusters / self.servers)

    @property
    def waves(self) -> float:
        """Return how often the launch fills the chip."""
        return self.clusters / (self.servers * self.side_by_side)


def occupancy(launch: Launch, chip: Chip) -> Occupancy:
    """Say how many CTAs of a launch share a multiprocessor ("CUDA C++ Programming Guide", compute capabilities).

    Registers are given to warps, 256 at a time.
    """
    registers = 8 * ceil((launch.registers or _REGISTERS_UNKNOWN) / 8) * 32 * launch.warps
    limits = {
        "registers": chip.registers // registers,
        "shared memory": int(chip.shared_bytes // (launch.shared_bytes + chip.reserved_shared_bytes)),
        "threads": chip.threads // (32 * launch.warps),
        "places": chip.most_ctas,
    }
    limit = min(limits, key=lambda name: limits[name])
    clusters = prod(launch.grid) // launch.cluster
    servers = max(1, chip.multiprocessors // launch.cluster)
    return Occupancy(
        max(1, limits[limit]), limit, clusters, servers, min(servers, clusters) * launch.cluster
    )  # fmt: skip


def samples(grid: Sequence[int], cluster: Sequence[int], persistent: bool) -> list[int]:
    """Return the clusters that are worth a recording, by their numbers along x first, the most useful one first.

    CTAs of a persistent launch have different tiles, as those of causal attention, and the slowest ones count. Of
    others the cluster in the middle is the most useful, then those at the ends of each axis.
    """
    sizes = [size // part for size, part in zip(grid, cluster, strict=True)]
    last = prod(sizes) - 1
    if persistent:
        return sorted({0, last // 2, last * 3 // 4, last})
    middle = [size // 2 for size in sizes]
    found = [_number(middle, sizes)]
    for axis, size in enumerate(sizes):
        for place in (0, size - 1):
            number = _number([*middle[:axis], place, *middle[axis + 1 :]], sizes)
            if number not in found:
                found.append(number)
    return found


def _number(places: Sequence[int], sizes: Sequence[int]) -> int:
    return places[0] + sizes[0] * (places[1] + sizes[1] * places[2])


def shape_of(trace: Trace) -> tuple[tuple[int, int], ...]:
    """Return what traces have in common that take the same time: steps and events of each warp."""
    return tuple((len(warp.steps), sum(len(step.events) for step in warp.steps)) for warp in trace.warps)


def whole_launch(
    occupancy: Occupancy,
    chip: Chip,
    traces: Mapping[int, Trace],
    sizes: Sequence[int],
    replay: Callable[[list[Trace], int], Replayed],
) -> float:
    """Return the cycles of a launch. `traces` are those of recorded clusters by number, `sizes` clusters by axis.

    `replay` replays traces, so many at a time, on one multiprocessor, or on those of one cluster.
    """
    kinds: dict[tuple[tuple[int, int], ...], Trace] = {}
    for trace in traces.values():
        kinds.setdefault(shape_of(trace), trace)
    if occupancy.of_one <= occupancy.ctas:
        together = occupancy.of_one
        ends = (replay([trace] * together, together).end for trace in kinds.values())
        return chip.launch_cycles + max(ends)
    together = occupancy.side_by_side
    if len(kinds) == 1:
        return chip.launch_cycles + _in_a_row(next(iter(kinds.values())), occupancy.of_one, together, replay)
    cycles: dict[tuple[tuple[int, int], ...], float] = {}
    tail = 0.0
    for shape, trace in kinds.items():
        found = replay([trace] * (2 * together), together)
        later = [cta.end - cta.start + chip.cta_start_cycles for cta in found.ctas[len(found.ctas) // 2 :]]
        cycles[shape] = sum(later) / len(later)
        tail = max(tail, found.end - max(cta.end for cta in found.ctas))
    known = {number: cycles[shape_of(trace)] for number, trace in traces.items()}
    return chip.launch_cycles + tail + _queue(known, sizes, occupancy.servers * together)


def _in_a_row(trace: Trace, count: int, together: int, replay: Callable[[list[Trace], int], Replayed]) -> float:
    """Return the cycles of equal clusters on one server: the first ones are replayed, the others keep their pace."""
    some = min(count, _ROUNDS * together)
    found = replay([trace] * some, together)
    ends = sorted(cta.end for cta in found.ctas)[:: max(1, len(found.ctas) // some)]
    if some == count:
        return found.end
    # After the last ones no CTAs come that take bandwidth.
    pace = (ends[-1 - together] - ends[together - 1]) / (some - 2 * together)
    return found.end + pace * (count - some)


def _queue(known: Mapping[int, float], sizes: Sequence[int], servers: int) -> float:
    """Return the cycles of clusters of different lengths in their order before servers."""
    count = prod(sizes)
    middle = known[next(iter(known))]
    along = [_along(known, sizes, axis, middle) for axis in range(3)]
    if count > _MOST_QUEUED:
        mean = middle + sum(sum(each) / len(each) for each in along)
        return mean * count / servers + middle / 2
    free = [0.0] * min(servers, count)
    heapify(free)
    x, y, z = along
    for of_z in z:
        for of_y in y:
            for of_x in x:
                heapreplace(free, free[0] + max(1.0, middle + of_x + of_y + of_z))
    return max(free)


def _along(known: Mapping[int, float], sizes: Sequence[int], axis: int, middle: float) -> list[float]:
    """Return by how much clusters take longer than the one in the middle, by their places along an axis."""
    size = sizes[axis]
    at = [each // 2 for each in sizes]
    found = {size // 2: 0.0}
    for place in (0, size - 1):
        number = _number([*at[:axis], place, *at[axis + 1 :]], sizes)
        if number in known:
            found[place] = known[number] - middle
    places = sorted(found)
    between: list[float] = []
    for place in range(size):
        before = max((each for each in places if each <= place), default=places[0])
        after = min((each for each in places if each >= place), default=places[-1])
        part = 0.0 if after == before else (place - before) / (after - before)
        between.append(found[before] + part * (found[after] - found[before]))
    return between
