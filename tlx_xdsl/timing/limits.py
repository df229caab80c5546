"""The limits of a kernel, in one or two words and in three sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .engine import SUB_PARTITIONS, Replayed
from .instructions import PIPES
from .launch import Occupancy
from .places import task_of
from .spans import Lines, cause_of, kinds_of
from .trace import Kind, Trace

_FULL = 0.6
"""Part of the time from which on a unit that works is taken for the limit."""
MEMORIES = ("DRAM", "L2 cache")
"""Memories of the whole GPU, by their names in `shares_of`."""
_PIPE_NAMES = {
    "fma": "FMA pipes", "heavy": "FMA pipes", "alu": "integer and logic pipes", "xu": "special function units",
    "fp64": "FP64 pipes", "lsu": "load and store units", "tensor": "tensor cores", "uniform": "uniform pipes",
}  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """Limits that a replay has shown."""

    bound: str
    """In one or two words."""
    shares: dict[str, float]
    """The part of the time for which each unit works, the busiest first."""
    sentences: list[str]


def shares_of(replayed: Replayed) -> dict[str, float]:
    """Return the part of the time for which each unit of the multiprocessors works, the busiest first."""
    whole = max(1.0, replayed.end * replayed.processors)
    found = {
        "tensor cores": replayed.tensor / SUB_PARTITIONS / whole,
        "issue slots": replayed.issue / SUB_PARTITIONS / whole,
        "banks of shared memory": replayed.banks / whole,
        "DRAM": replayed.dram / whole,
        "L2 cache": replayed.l2 / whole,
    }
    for pipe, cycles in zip(PIPES, replayed.pipes, strict=False):
        if pipe != "tensor":
            name = _PIPE_NAMES[pipe]
            found[name] = max(found.get(name, 0.0), cycles / SUB_PARTITIONS / whole)
    return dict(sorted(found.items(), key=lambda each: -each[1]))


def limits(
    replayed: Replayed, trace: Trace, lines: Lines, occupancy: Occupancy, tasks: Sequence[tuple[int, int, str]] = ()
) -> Limits:
    """Say what limits the CTAs of a replay, which were all of one trace."""
    shares = shares_of(replayed)
    names = iter(shares)
    busiest, second = next(names), next(names)
    verb = "works" if busiest in MEMORIES else "work"
    sentences = [f"The {busiest} {verb} {shares[busiest]:.0%} of the time, the {second} {shares[second]:.0%}."]
    wait = _longest_wait(replayed, trace, lines, tasks)
    if shares[busiest] >= _FULL:
        bound = busiest
    elif wait is None:
        bound = "latency of instructions"
    else:
        bound = wait[1]
    if wait is not None:
        sentences.append(wait[0])
    sentences.append(_ring(replayed, trace, lines) or _filling(occupancy))
    return Limits(bound, shares, [sentence.replace("The DRAM ", "DRAM ") for sentence in sentences])


def _longest_wait(
    replayed: Replayed, trace: Trace, lines: Lines, tasks: Sequence[tuple[int, int, str]]
) -> tuple[str, str] | None:
    """Return a sentence about what the task with the most work waits for most, and a word for it."""
    groups = _groups(trace, tasks)
    time: dict[str, float] = {}
    for cta in replayed.ctas:
        for name, warps in groups.items():
            time[name] = time.get(name, 0.0) + (cta.end - cta.start) * len(warps)
    kinds = kinds_of(trace)
    found: dict[tuple[str, str, str], float] = {}
    waited: dict[str, float] = {}
    of_warp = {warp: name for name, warps in groups.items() for warp in warps}
    for (warp, at, by), cycles in replayed.waits.items():
        name = of_warp[warp]
        what, word = _reason(lines, kinds, at, by)
        found[name, what, word] = found.get((name, what, word), 0.0) + cycles
        waited[name] = waited.get(name, 0.0) + cycles
    if not found:
        return None
    products = {
        name: sum(event.is_product for warp in trace.warps if of_warp[warp.number] == name for event in warp.events)
        for name in groups
    }
    worker = max(groups, key=lambda name: (products[name], -waited.get(name, 0.0) / max(1.0, time[name])))
    (name, what, word), cycles = max(found.items(), key=lambda each: (each[0][0] == worker, each[1]))
    verb = "waits" if name.startswith("Warp ") else "wait"
    return f"{name} {verb} {cycles / max(1.0, time[name]):.0%} of it for {what}.", word


def _groups(trace: Trace, tasks: Sequence[tuple[int, int, str]]) -> dict[str, list[int]]:
    """Return the warps of each task; without tasks those that ran the same blocks."""
    numbers = {warp.number: warp for warp in trace.warps}
    if tasks:
        found: dict[str, list[int]] = {}
        for number in sorted(numbers):
            found.setdefault(f"The warps of '{task_of(tasks, number)}'", []).append(number)
        return found
    same: dict[tuple[int, ...], list[int]] = {}
    for number in sorted(numbers):
        same.setdefault(tuple(step.block for step in numbers[number].steps), []).append(number)
    return {
        f"Warps {warps[0]} to {warps[-1]}" if len(warps) > 1 else f"Warp {warps[0]}": warps for warps in same.values()
    }


def _reason(lines: Lines, kinds: Mapping[int, Kind], at: int, by: int) -> tuple[str, str]:
    """Return what a wait is for, and a word for it."""
    if by < 0:
        return f"the barrier of line {lines.line(at)}", "latency of barriers"
    what = cause_of(lines, kinds, by)
    if what.startswith("arrival"):
        return f"the {what}", "latency of barriers"
    word = "latency of products" if what.startswith("product") else "latency of memory"
    return f"the {what}", word


def _ring(replayed: Replayed, trace: Trace, lines: Lines) -> str:
    """Return a sentence about the ring that TMA fills, if there is one: a stage is a barrier that its loads end at."""
    stages_of: dict[int, set[int]] = {}
    for event in trace.events:
        if event.kind == "tma_load":
            found = stages_of.setdefault(event.at, set())
            found.update(trace.points[number].name for number in event.points)
    if not stages_of or not replayed.copies:
        return ""
    at = max(replayed.copies, key=lambda each: replayed.copies[each][1])
    count, cycles = replayed.copies[at]
    stages = len(stages_of.get(at, ()))
    held = f"the ring has {stages} stages" if stages > 1 else "there is one buffer"
    return f"For the TMA load{lines.of(at)} {held}, and a load takes {cycles / count:,.0f} cycles."


def _filling(occupancy: Occupancy) -> str:
    many = "CTA shares" if occupancy.side_by_side == 1 else "CTAs share"
    limit = f", for their {occupancy.limit}" if occupancy.side_by_side == occupancy.ctas else ""
    times = f"the launch fills the GPU {occupancy.waves:.2f} times"
    return f"{occupancy.side_by_side} {many} a multiprocessor{limit}, and {times}."
