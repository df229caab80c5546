"""Asynchronous copies: `cp.async` of threads, and those of bytes by TMA (PTX ISA, "cp.async", "cp.async.bulk").

Warps close groups of asynchronous operations and wait for them (PTX ISA, "commit_group", "wait_group").
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..cohort import Cohort
from ..memory.surroundings import Trap
from ..read.syntax import Number
from ..steps import NOTHING, Builders, Context, Step
from .mbarriers import barrier_at, each, plus, shared_address
from .memory import Mask
from .tma import UNIT, build_tensor_copy, collect, deliver


def _build(context: Context) -> Step:
    parts = list(context.instruction.modifiers)
    if parts[:2] == ["async", "bulk"] or parts[:3] == ["reduce", "async", "bulk"]:
        return _build_bulk(context, parts)
    match parts:
        case ["async", "mbarrier", "arrive", *rest]:
            return _arrive(context, increments="noinc" not in rest)
        case ["async", "commit_group"]:
            return commit_group(context, "cp.async")
        case ["async", "wait_group"]:
            return wait_group(context, "cp.async")
        case ["async", "wait_all"]:
            return Step(effect=waiting("cp.async", 0))
        case ["async", "ca" | "cg", "shared" | "shared::cta", "global", *rest]:
            if any(part.split("::")[0] not in ("L1", "L2") for part in rest):
                raise context.refuse()
            return _copy(context)
        case _:
            raise context.refuse()


def _build_bulk(context: Context, parts: list[str]) -> Step:
    match parts:
        case ["async", "bulk", "tensor", *rest] | ["reduce", "async", "bulk", "tensor", *rest]:
            return build_tensor_copy(context, rest)
        case ["async", "bulk", "prefetch", *_]:
            return NOTHING
        case ["async", "bulk", "commit_group"]:
            return commit_group(context, "TMA store")
        case ["async", "bulk", "wait_group", *rest] if rest in ([], ["read"]):
            return wait_group(context, "TMA store", only_reads=bool(rest))
        case ["async", "bulk", *rest]:
            return _bulk(context, [part for part in rest if part != "L2::cache_hint"])
        case _:
            raise context.refuse("reductions of plain bytes")


def _copy(context: Context) -> Step:
    """4, 8 or 16 bytes of each thread; what is not read is zero."""
    context.expect(3, 4, 5)
    size = context.operand(2)
    if not isinstance(size, Number) or size.value not in (4, 8, 16):
        raise context.refuse("a copy has 4, 8 or 16 bytes")
    target, offset = shared_address(context, 0)
    source, source_offset = context.address(context.operand(1), "u8")
    read = (context.read(3, "u4"),) if len(context.instruction.operands) > 3 else ()
    count = size.value
    item = min(count, 8)
    lanes = count // item

    def effect(cohort: Cohort, mask: Mask, targets: Any, sources: Any, *sizes: Any) -> None:
        chosen = np.arange(cohort.n) if mask is None else np.flatnonzero(mask)
        shared, memory = cohort.wave.shared, cohort.wave.machine.memory
        places = shared.places(cohort, plus(targets, offset)[chosen], mask, count, "store")
        rows = np.zeros((len(chosen), count), np.uint8)
        taken = np.full(len(chosen), count) if not sizes else sizes[0][chosen].astype(np.int64)
        if (taken > count).any():
            raise Trap(f"a copy of {count} bytes that reads {int(taken.max())}")
        addresses = sources[chosen] + np.uint64(source_offset % (1 << 64))
        full = taken == count
        if full.any():
            rows[full] = memory.load(addresses[full], item, lanes).reshape(-1, lanes).view(np.uint8)
        for place in np.flatnonzero(~full & (taken > 0)).tolist():
            part = int(taken[place])
            rows[place, :part] = memory.bytes_at(int(addresses[place]), part, "load")
        cohort.wave.order.copy(cohort, chosen, places, count)
        cohort.wave.order.global_copy(cohort, chosen[full], addresses[full], count)
        cohort.wave.machine.traffic.shared_access(cohort, mask, places, count)
        reads = taken > 0
        threads = np.isin(np.arange(cohort.n), chosen[reads])
        cohort.wave.machine.traffic.global_access(cohort, threads, addresses[reads], count)
        held = rows.view(f"u{item}").reshape(-1, lanes)
        shared.store(places, held if lanes > 1 else held.ravel(), item, lanes)

    return Step((target, source, *read), effect=effect)


def _arrive(context: Context, *, increments: bool) -> Step:
    """`cp.async.mbarrier.arrive`: the copies of a thread so far are over when it arrives."""
    context.expect(1)
    base, offset = shared_address(context, 0)

    def effect(cohort: Cohort, mask: Mask, addresses: Any) -> None:
        for place, threads, _ in each(cohort, mask, plus(addresses, offset)):
            barrier = barrier_at(cohort, place)
            if increments:
                barrier.pending += len(threads)
            cohort.wave.order.copies_arrive(cohort, threads, barrier)
            barrier.arrive(len(threads))

    return Step((base,), effect=effect)


# Bytes in a row ------------------------------------------------------------------------------------------------------


def _bulk(context: Context, parts: list[str]) -> Step:
    match parts:
        case ["shared::cluster" | "shared::cta", "global", "mbarrier::complete_tx::bytes", *more] if set(more) <= {
            "multicast::cluster"
        }:
            return _bulk_load(context, is_multicast=bool(more))
        case ["shared::cluster", "shared::cta", "mbarrier::complete_tx::bytes"]:
            return _bulk_send(context)
        case ["global", "shared::cta", "bulk_group"]:
            return _bulk_store(context)
        case _:
            raise context.refuse()


def _check_bytes(*numbers: int) -> None:
    if any(number % UNIT for number in numbers):
        raise Trap(f"a bulk copy has addresses and a size that are multiples of 16, found {numbers[-1]}")


def _bulk_load(context: Context, *, is_multicast: bool) -> Step:
    context.expect(4, 5, 6)
    target, offset = shared_address(context, 0)
    source, source_offset = context.address(context.operand(1), "u8")
    size = context.read(2, "u4")
    barrier, barrier_offset = shared_address(context, 3)
    masks = (context.read(4, "u2"),) if is_multicast else ()

    def effect(cohort: Cohort, mask: Mask, targets: Any, sources: Any, sizes: Any, barriers: Any, *others: Any) -> None:
        to, at = plus(targets, offset), plus(barriers, barrier_offset)
        for thread in range(cohort.n) if mask is None else np.flatnonzero(mask).tolist():
            count, address = int(sizes[thread]), int(sources[thread]) + source_offset
            _check_bytes(address, int(to[thread]), count)
            data = cohort.wave.machine.memory.bytes_at(address, count, "bulk copy").copy()
            ranks = [number for number in range(16) if int(others[0][thread]) >> number & 1] if is_multicast else None
            token = deliver(cohort, thread, int(to[thread]), int(at[thread]), data, 0, ranks)
            cohort.wave.order.global_units(token, np.arange(address, address + count, UNIT), UNIT, "read")

    return Step((target, source, size, barrier, *masks), effect=effect)


def _bulk_send(context: Context) -> Step:
    context.expect(4)
    target, offset = shared_address(context, 0)
    source, source_offset = shared_address(context, 1)
    size = context.read(2, "u4")
    barrier, barrier_offset = shared_address(context, 3)

    def effect(cohort: Cohort, mask: Mask, targets: Any, sources: Any, sizes: Any, barriers: Any) -> None:
        to, from_, at = plus(targets, offset), plus(sources, source_offset), plus(barriers, barrier_offset)
        for thread in range(cohort.n) if mask is None else np.flatnonzero(mask).tolist():
            count = int(sizes[thread])
            _check_bytes(int(from_[thread]), int(to[thread]), count)
            token = cohort.wave.order.issue(cohort, thread, "bulk copy", int(at[thread]))
            data, _ = collect(cohort, thread, int(from_[thread]), count, 0, token)
            deliver(cohort, thread, int(to[thread]), int(at[thread]), data, 0, None, token)

    return Step((target, source, size, barrier), effect=effect)


def _bulk_store(context: Context) -> Step:
    context.expect(3, 4)
    target, offset = context.address(context.operand(0), "u8")
    source, source_offset = shared_address(context, 1)
    size = context.read(2, "u4")

    def effect(cohort: Cohort, mask: Mask, targets: Any, sources: Any, sizes: Any) -> None:
        from_ = plus(sources, source_offset)
        for thread in range(cohort.n) if mask is None else np.flatnonzero(mask).tolist():
            count, address = int(sizes[thread]), int(targets[thread]) + offset
            _check_bytes(address, int(from_[thread]), count)
            data, token = collect(cohort, thread, int(from_[thread]), count, 0)
            cohort.wave.machine.memory.bytes_at(address, count, "bulk store")[...] = data
            cohort.wave.order.global_units(token, np.arange(address, address + count, UNIT), UNIT, "write")

    return Step((target, source, size), effect=effect)


BUILDERS: Builders = {"cp": _build}


def commit_group(context: Context, kind: str) -> Step:
    """Close a group of operations of a kind."""
    context.expect(0)

    def run(cohort: Cohort, mask: Mask) -> None:
        cohort.wave.order.commit(cohort, mask, kind)

    return Step(effect=run)


def wait_group(context: Context, kind: str, *, only_reads: bool = False) -> Step:
    """Wait for all groups but the last ones, whose number is a constant."""
    context.expect(1)
    count = context.operand(0)
    if not isinstance(count, Number):
        raise context.refuse("the number of groups must be a constant")
    return Step(effect=waiting(kind, count.value, only_reads=only_reads))


def waiting(kind: str, count: int, *, only_reads: bool = False) -> Callable[[Cohort, Mask], None]:
    """The effect of a wait for all groups but the last `count`."""

    def run(cohort: Cohort, mask: Mask) -> None:
        cohort.wave.order.wait_group(cohort, mask, kind, count, only_reads=only_reads)

    return run
