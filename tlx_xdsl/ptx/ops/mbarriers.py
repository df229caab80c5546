"""Instructions on mbarriers (PTX ISA, "mbarrier.init" to "mbarrier.try_wait", "cp.async.mbarrier.arrive").

`try_wait` waits here as long as it takes: a loop around it ends at once. `test_wait` does not wait. A state is the
number of the phase.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.numerics.arrays import Array, Integers, distinct

from ..cohort import Cohort, Item, Wait
from ..global_order import CTA, WEAK, sync_of
from ..memory.barriers import MOST_ARRIVALS, Mbarrier
from ..memory.surroundings import Trap
from ..read.symbols import SHARED_START, SHARED_WINDOW
from ..read.syntax import SINK, Number, Register
from ..steps import Builders, Context, Read, Step
from .memory import Mask

_SIZE = 8
_IGNORED = (
    "sync", "shared", "shared::cta", "shared::cluster", "b64", "relaxed", "release", "acquire", "cta", "cluster", "gpu",
    "noComplete",
)  # fmt: skip


def shared_address(context: Context, place: int) -> tuple[Read, int]:
    """The address of shared memory that an operand is; generic ones of 64 bits lie in the window."""
    base, offset = context.address(context.operand(place), "u4")
    operand, _ = base
    if isinstance(operand, Register) and context.function.registers[operand.number][1] in ("b64", "u64", "s64"):
        return (operand, "u8"), offset
    return base, offset


def plus(addresses: Array, offset: int) -> Integers:
    """Shared addresses, and bytes after them; generic ones as shared ones.

    Triton 3.6 gives `tcgen05.commit` a shared address in 64 bits.
    """
    wide = addresses.astype(np.int64)
    if addresses.dtype.itemsize == 8:
        wide = np.where(wide >= SHARED_WINDOW, wide - SHARED_WINDOW, wide)
    return wide + offset if offset else wide


def barrier_at(cohort: Cohort, place: int) -> Mbarrier:
    """The live mbarrier at a place.

    Raises Trap where there is none.
    """
    found = cohort.wave.mbarriers.get(place)
    if found is None:
        byte = place % cohort.wave.shared.stride - SHARED_START
        raise Trap(
            f"there is no mbarrier at byte {byte} of shared memory: none was initialised there, or it was invalidated"
        )
    return found


def each(
    cohort: Cohort, mask: Mask, addresses: Integers, *others: Array
) -> Iterator[tuple[int, Integers, tuple[Array, ...]]]:
    """The places that threads name, with the threads, by their places in the cohort, and their other operands."""
    chosen = np.arange(cohort.n) if mask is None else np.flatnonzero(mask)
    if not len(chosen):
        return
    where = None if mask is None else mask
    places = cohort.wave.shared.places(cohort, addresses[chosen], where, _SIZE, "access to an mbarrier")
    if len(chosen) == 1:
        yield int(places[0]), chosen, tuple(other[chosen] for other in others)
        return
    order = np.argsort(places, kind="stable")
    starts = np.flatnonzero(np.diff(places[order], prepend=-1))
    for part in np.split(order, starts[1:]):
        threads = chosen[part]
        yield int(places[part[0]]), threads, tuple(other[threads] for other in others)


def _build(context: Context) -> Step:
    parts = context.instruction.modifiers
    if not parts:
        raise context.refuse()
    name, rest = parts[0], [part for part in parts[1:] if part not in _IGNORED]
    match name, rest:
        case "init", []:
            context.expect(2)
            return _on(context, 0, (context.read(1, "u4"),), _init)
        case "inval", []:
            context.expect(1)
            return _on(context, 0, (), _invalidate)
        case (("expect_tx" | "complete_tx"), []):
            context.expect(2)
            change = 1 if name == "expect_tx" else -1
            return _on(context, 0, (context.read(1, "u4"),), _bytes(change))
        case (("arrive" | "arrive_drop"), [] | ["expect_tx"]):
            return _arrive(context, drops=name == "arrive_drop", expects=bool(rest), releases="relaxed" not in parts)
        case (("try_wait" | "test_wait"), [] | ["parity"]):
            scope = WEAK if "relaxed" in parts else sync_of(parts).scope or CTA
            return _wait(context, suspends=name == "try_wait", by_parity=bool(rest), scope=scope)
        case _:
            raise context.refuse()


def _on(context: Context, place: int, others: tuple[Read, ...], run: Callable[..., None]) -> Step:
    base, offset = shared_address(context, place)

    def effect(cohort: Cohort, mask: Mask, addresses: Any, *values: Any) -> None:
        for where, threads, own in each(cohort, mask, plus(addresses, offset), *values):
            run(cohort, where, threads, *own)

    return Step((base, *others), effect=effect)


def _init(cohort: Cohort, place: int, threads: Any, counts: Any) -> None:
    wave = cohort.wave
    if len(threads) > 1:
        raise Trap(f"{len(threads)} threads initialise one mbarrier")
    count = int(counts[0])
    if not 1 <= count <= MOST_ARRIVALS:
        raise Trap(f"an mbarrier counts 1 to {MOST_ARRIVALS} arrivals, found {count}")
    byte = place % wave.shared.stride - SHARED_START
    wave.mbarriers[place] = Mbarrier(
        f"the mbarrier at byte {byte} of shared memory", place // wave.shared.stride, count
    )
    wave.order.initialise(cohort, threads, place)
    wave.shared.bytes[place : place + _SIZE] = 0
    wave.shared.written[place : place + _SIZE] = True


def _invalidate(cohort: Cohort, place: int, threads: Any) -> None:
    barrier_at(cohort, place)
    del cohort.wave.mbarriers[place]
    cohort.wave.order.initialise(cohort, threads, place)
    cohort.wave.shared.written[place : place + _SIZE] = False


def _bytes(sign: int) -> Callable[..., None]:
    def run(cohort: Cohort, place: int, threads: Any, counts: Any) -> None:
        barrier = barrier_at(cohort, place)
        barrier.bytes += sign * int(counts.astype(np.int64).sum())
        if sign < 0:
            barrier.complete()

    return run


def _arrive(context: Context, *, drops: bool, expects: bool, releases: bool) -> Step:
    target = context.operand(0)
    has_result = isinstance(target, Register) or target == SINK
    first = 1 if has_result else 0
    context.expect(first + 1, first + 2)
    base, offset = shared_address(context, first)
    counts = (
        context.value(context.operand(first + 1), "u4")
        if len(context.instruction.operands) == first + 2
        else (Number(1), "u4")
    )
    writes = ((target, "u8"),) if isinstance(target, Register) else ()
    scope = sync_of(context.instruction.modifiers).scope or CTA

    def effect(cohort: Cohort, mask: Mask, addresses: Any, values: Any) -> Any:
        states = np.zeros(cohort.n, np.uint64)
        for place, threads, (own,) in each(cohort, mask, plus(addresses, offset), values):
            barrier = barrier_at(cohort, place)
            states[threads] = barrier.phase
            total = int(own.astype(np.int64).sum())
            if expects:
                barrier.bytes += total
                total = len(threads)
            if drops:
                barrier.count -= total
            cohort.wave.order.arrive(cohort, threads, barrier, releases=releases, scope=scope)
            barrier.arrive(total)
        return states

    return Step((base, counts), writes, effect=effect)


def _wait(context: Context, *, suspends: bool, by_parity: bool, scope: int) -> Step:
    context.expect(3, 4)
    base, offset = shared_address(context, 1)
    wanted = context.read(2, "u4" if by_parity else "u8")

    def effect(cohort: Cohort, mask: Mask, addresses: Any, phases: Any) -> Any:
        items: list[tuple[NDArray[np.bool_], Mbarrier, int]] = []
        result = np.ones(cohort.n, np.bool_)
        for place, threads, (own,) in each(cohort, mask, plus(addresses, offset), phases):
            barrier = barrier_at(cohort, place)
            for phase in (own[0],) if (own == own[0]).all() else distinct(own):
                here = np.zeros(cohort.n, np.bool_)
                here[threads[own == phase]] = True
                items.append((here, barrier, int(phase)))
        blocked = [item for item in items if not item[1].passed(item[2])]
        if blocked and suspends:
            cohort.waiting = Wait(tuple(Item(*item) for item in items))
            return None
        for here, barrier, phase in items:
            if barrier.passed(phase):
                cohort.wave.order.pass_wait(cohort, here, barrier, scope)
            else:
                cohort.wave.machine.traffic.wait(cohort, here)
                result &= ~here
        return result

    return Step((base, wanted), context.written(0, "b"), effect=effect, suspends=suspends)


BUILDERS: Builders = {"mbarrier": _build}
