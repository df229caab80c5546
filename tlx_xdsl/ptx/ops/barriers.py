"""Barriers of threads (PTX ISA, "bar", "barrier", "barrier.cluster", "bar.warp.sync")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tlx_xdsl.numerics.arrays import distinct

from ..cohort import Cohort, Item, Wait
from ..memory.barriers import ClusterBarrier, NamedBarrier
from ..memory.surroundings import Trap
from ..steps import Builders, Context, Step
from .memory import Mask
from .warps import members

BARRIERS = 16
"""Named barriers of a CTA."""


def _bar(context: Context) -> Step:
    parts = [part for part in context.instruction.modifiers if part not in ("cta", "aligned")]
    if parts[:1] == ["warp"]:
        context.expect(1)
        return Step((context.read(0, "u4"),), effect=_warp_sync)
    if context.instruction.name == "barrier" and parts[:1] == ["cluster"]:
        return _cluster(context, parts[1:])
    if parts[:1] == ["red"]:
        return _reduction(context, parts)
    if parts not in (["sync"], ["arrive"]):
        raise context.refuse()
    context.expect(1, 2)
    reads = tuple(context.value(operand, "u4") for operand in context.instruction.operands)
    if parts == ["arrive"]:
        context.expect(2)
        return Step(reads, effect=_arrive)
    return Step(reads, effect=_sync, suspends=True)


def _warp_sync(cohort: Cohort, mask: Mask, wanted: Any) -> None:
    named = members(cohort, mask, wanted)
    cohort.wave.order.warp_sync(cohort, named)


def _arrivals(cohort: Cohort, mask: Mask, numbers: Any, counts: Any) -> list[tuple[NamedBarrier, int, Any]]:
    """Arrive at named barriers; gives each with its phase and the threads that have come."""
    wave = cohort.wave
    found: list[tuple[NamedBarrier, int, Any]] = []
    for cta, threads in cohort.cta_groups:
        here = np.ones(cohort.n, np.bool_) if mask is None else mask
        for number in distinct(numbers[threads][here[threads]]):
            chosen = np.zeros(cohort.n, np.bool_)
            chosen[threads] = here[threads] & (numbers[threads] == number)
            if number >= BARRIERS:
                raise Trap(f"barrier {int(number)}, where a CTA has {BARRIERS}")
            barrier = wave.named.get((cta, int(number)))
            if barrier is None:
                barrier = wave.named[cta, int(number)] = NamedBarrier(int(number))
            expected = wave.machine.threads if counts is None else int(counts[chosen][0])
            phase = barrier.phase
            wave.order.release(cohort, chosen, barrier)
            arrived = int(np.count_nonzero(chosen))
            # Warps count one by one: several times the number that is expected completes several phases.
            if (
                counts is not None
                and not barrier.arrived
                and arrived > expected
                and arrived % expected == 0
                and expected
            ):
                barrier.phase += arrived // expected - 1
                arrived = expected
            barrier.arrive(arrived, expected)
            found.append((barrier, phase, chosen))
    return found


def _arrive(cohort: Cohort, mask: Mask, numbers: Any, counts: Any) -> None:
    _arrivals(cohort, mask, numbers, counts)


def _sync(cohort: Cohort, mask: Mask, numbers: Any, counts: Any = None) -> Any:
    if cohort.ticket is None:
        arrivals = _arrivals(cohort, mask, numbers, counts)
        cohort.ticket = Wait(tuple(Item(chosen, barrier, phase) for barrier, phase, chosen in arrivals))
    return passed(cohort, cohort.ticket)


def passed(cohort: Cohort, ticket: Wait) -> Any:
    """Go on if all that a cohort has arrived at is complete; else it waits, and None is returned."""
    if ticket.blocked() is not None:
        cohort.waiting = ticket
        return None
    for item in ticket.items:
        cohort.wave.order.acquire(cohort, item.mask, item.barrier)
    cohort.ticket = None
    return ()


def _reduction(context: Context, parts: list[str]) -> Step:
    """`bar.red`: a barrier that also counts, or joins, predicates."""
    name = next((part for part in parts if part in ("popc", "and", "or")), None)
    if name is None:
        raise context.refuse()
    context.expect(3, 4)
    operands = context.instruction.operands
    reads = tuple(context.value(each, "u4") for each in operands[1:-1])
    kind = "u4" if name == "popc" else "b"

    def run(cohort: Cohort, mask: Mask, *values: Any) -> Any:
        numbers, votes = values[0], values[-1]
        counts = values[1] if len(values) == 3 else None
        if cohort.ticket is None:
            arrivals = _arrivals(cohort, mask, numbers, counts)
            for barrier, phase, chosen in arrivals:
                gathered = cohort.wave.state.setdefault(("bar.red", id(barrier), phase), [])
                gathered.extend(votes[chosen].tolist())
            cohort.ticket = Wait(tuple(Item(chosen, barrier, phase) for barrier, phase, chosen in arrivals))
        ticket = cohort.ticket
        if passed(cohort, ticket) is None:
            return None
        result = np.zeros(cohort.n, np.uint32)
        for item in ticket.items:
            said = cohort.wave.state[("bar.red", id(item.barrier), item.phase)]
            result[item.mask] = sum(said) if name == "popc" else all(said) if name == "and" else any(said)
        return result if name == "popc" else result != 0

    return Step(
        (*reads, context.value(operands[-1], "b")), context.result(operands[0], kind), effect=run, suspends=True
    )


# The barrier of a cluster --------------------------------------------------------------------------------------------


def _cluster(context: Context, parts: list[str]) -> Step:
    context.expect(0)
    match [part for part in parts if part not in ("acquire", "release", "relaxed")]:
        case ["arrive"]:
            return Step(effect=_cluster_arrive("relaxed" not in parts))
        case ["wait"] if "relaxed" not in parts and "release" not in parts:
            return Step(effect=_cluster_wait, suspends=True)
        case _:
            raise context.refuse()


def _barrier_of(cohort: Cohort, cluster: int) -> ClusterBarrier:
    wave = cohort.wave
    if (found := wave.cluster_barriers.get(cluster)) is None:
        ctas = slice(cluster * wave.cluster_size, (cluster + 1) * wave.cluster_size)
        found = wave.cluster_barriers[cluster] = ClusterBarrier(int(wave.alive[ctas].sum()))
    return found


def _clusters(cohort: Cohort, mask: Mask) -> list[tuple[int, Any]]:
    numbers = cohort.ctas // cohort.wave.cluster_size
    here = np.ones(cohort.n, np.bool_) if mask is None else mask
    return [(int(each), (numbers == each) & here) for each in distinct(numbers[here])]


def _cluster_arrive(releases: bool) -> Callable[..., None]:
    def run(cohort: Cohort, mask: Mask) -> None:
        for cluster, chosen in _clusters(cohort, mask):
            barrier = _barrier_of(cohort, cluster)
            for thread in cohort.threads[chosen].tolist():
                if barrier.arrivals.get(thread, 0) > barrier.phase:
                    raise Trap("a thread arrives twice in one phase of the cluster's barrier")
                barrier.arrivals[thread] = barrier.phase + 1
            if releases:
                cohort.wave.order.release(cohort, chosen, barrier)
            else:
                cohort.wave.order.arrive_relaxed(cohort, chosen, barrier)
            barrier.arrive(int(np.count_nonzero(chosen)))

    return run


def _cluster_wait(cohort: Cohort, mask: Mask) -> Any:
    if cohort.ticket is None:
        items: list[Item] = []
        for cluster, chosen in _clusters(cohort, mask):
            barrier = _barrier_of(cohort, cluster)
            phases = np.array([barrier.arrivals.get(thread, 0) for thread in cohort.threads[chosen].tolist()])
            if not phases.all():
                raise Trap("a thread waits at the cluster's barrier, at which it has not arrived")
            items.extend(Item(_among(chosen, phases == phase), barrier, int(phase) - 1) for phase in distinct(phases))
        cohort.ticket = Wait(tuple(items))
    return passed(cohort, cohort.ticket)


def _among(chosen: Any, which: Any) -> Any:
    result = np.zeros(len(chosen), np.bool_)
    result[np.flatnonzero(chosen)[which]] = True
    return result


BUILDERS: Builders = {"bar": _bar, "barrier": _bar}
