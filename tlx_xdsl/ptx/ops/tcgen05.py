"""Tensor memory: allocation, loads, stores and copies (PTX ISA, "TensorCore 5th Generation Family Instructions")."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tlx_xdsl.numerics.arrays import Array, Integers

from ..cohort import LANES, Cohort, Item, Wait
from ..memory.descriptors import UNIT, of_tcgen05, units
from ..memory.surroundings import Trap
from ..memory.tensor_memory import memory_of
from ..read.symbols import RANK_SHIFT
from ..read.syntax import Number
from ..steps import NOTHING, Builders, Context, Step
from .matrices import check_whole, warps_of
from .mbarriers import barrier_at, each, plus, shared_address
from .memory import Mask
from .tcgen05_mma import build_product, ctas_of

_GROUPS = ("cta_group::1", "cta_group::2")
_SHARED: tuple[list[str], ...] = ([], ["shared"], ["shared::cta"])
"""How an address of shared memory is said to be one."""
_REPEAT = re.compile(r"x(\d+)")


def _build(context: Context) -> Step:
    parts = list(context.instruction.modifiers)
    match parts:
        case ["alloc", group, "sync", "aligned", *space, "b32"] if group in _GROUPS and space in _SHARED:
            return _allocate(context)
        case ["dealloc", group, "sync", "aligned", "b32"] if group in _GROUPS:
            return _free(context)
        case ["relinquish_alloc_permit", group, "sync", "aligned"] if group in _GROUPS:
            return NOTHING
        case ["ld", "sync", "aligned", *form, "b32"]:
            return _load(context, form)
        case ["st", "sync", "aligned", *form, "b32"]:
            return _store(context, form)
        case ["wait::ld" | "wait::st", "sync", "aligned"]:
            context.expect(0)
            return Step(effect=_waiting(parts[0].removeprefix("wait::")))
        case ["fence::before_thread_sync"] | ["fence::after_thread_sync"]:
            context.expect(0)
            # What orders is the barrier between the two.
            return NOTHING
        case ["commit", group, "mbarrier::arrive::one", *form] if group in _GROUPS:
            return _commit(context, form)
        case ["cp", group, *form] if group in _GROUPS:
            return _copy(context, form, pair=group == _GROUPS[1])
        case ["shift", "cta_group::1", "down"]:
            return _shift(context)
        case ["mma", group, kind, *form] if group in _GROUPS:
            return build_product(context, kind, form, pair=group == _GROUPS[1])
        case _:
            raise context.refuse()


def _waiting(kind: str) -> Callable[[Cohort, Mask], None]:
    def run(cohort: Cohort, mask: Mask) -> None:
        cohort.wave.order.tensor_wait(cohort, mask, kind)

    return run


# Allocation ----------------------------------------------------------------------------------------------------------


class _Free:
    """Columns that another warp has to give back first."""

    def __init__(self, cohort: Cohort, cta: int, count: int):
        self._memory, self._cta, self._count = memory_of(cohort.wave), cta, count

    def passed(self, phase: int) -> bool:
        """Return whether there are enough."""
        owner = self._memory.owner[self._cta].reshape(-1, self._count)
        return bool((owner < 0).all(axis=1).any())

    def describe(self, phase: int) -> str:
        """Say what is waited for."""
        return f"{self._count} free columns of tensor memory"


def _allocate(context: Context) -> Step:
    context.expect(2)
    base, offset = shared_address(context, 0)
    count = context.read(1, "u4")

    def effect(cohort: Cohort, mask: Mask, addresses: Any, counts: Any) -> Any:
        rows = warps_of(cohort, mask)
        where = plus(addresses, offset)
        waits: list[Item] = []
        memory = memory_of(cohort.wave)
        for row in range(len(cohort.warps)) if rows is None else rows.tolist():
            thread, columns = row * LANES, int(counts[row * LANES])
            cta = int(cohort.ctas[thread])
            done = cohort.wave.state.setdefault("allocated", {})
            if (key := (id(cohort), cohort.at, row)) in done:
                continue
            first = memory.allocate(cta, columns)
            if first is None:
                here = np.zeros(cohort.n, np.bool_)
                here[thread : thread + LANES] = True
                waits.append(Item(here, _Free(cohort, cta, columns), 0))
                continue
            done[key] = first
            chosen = np.zeros(cohort.n, np.bool_)
            chosen[thread] = True
            places = cohort.wave.shared.places(cohort, where[chosen], chosen, 4, "store")
            cohort.wave.order.store(cohort, chosen, places, 4)
            cohort.wave.shared.store(places, np.array([first], np.uint32), 4, 1)
        if waits:
            cohort.waiting = Wait(tuple(waits))
            return None
        cohort.wave.state["allocated"] = {}
        return ()

    return Step((base, count), effect=effect, suspends=True)


def _free(context: Context) -> Step:
    context.expect(2)
    reads = (context.read(0, "u4"), context.read(1, "u4"))

    def effect(cohort: Cohort, mask: Mask, addresses: Any, counts: Any) -> None:
        rows = warps_of(cohort, mask)
        for row in range(len(cohort.warps)) if rows is None else rows.tolist():
            thread = row * LANES
            memory_of(cohort.wave).free(int(cohort.ctas[thread]), int(addresses[thread]) & 0xFFFF, int(counts[thread]))

    return Step(reads, effect=effect)


# Loads and stores ----------------------------------------------------------------------------------------------------


def _shape(context: Context, form: list[str]) -> tuple[Callable[[int], tuple[Array, Array]], int, bool]:
    """The lanes and columns of a warp's words, [registers, 32], for a split; the registers; if halves are packed."""
    packs = any(part.endswith("::16b") for part in form)
    form = [part for part in form if not part.endswith("::16b")]
    repeat = _REPEAT.fullmatch(form[1]) if len(form) == 2 else None
    if repeat is None:
        raise context.refuse()
    count = int(repeat[1])
    lane = np.arange(LANES)
    match form[0]:
        case "32x32b":
            return (lambda _split: (lane[None, :], np.arange(count)[:, None])), count, packs
        case "16x32bx2":
            return (
                (lambda split: (lane[None, :] % 16, np.arange(count)[:, None] + (lane[None, :] // 16) * split)),
                count,
                packs,
            )
        case "16x64b":
            # Two rows of a register pair lie 8 lanes apart in threads (Triton's and CUTLASS's 16dp64b).
            return (lambda _split: _of_16(lane, count, 1)), count, packs
        case "16x128b":
            return (lambda _split: _of_16(lane, 2 * count, 2)), 2 * count, packs
        case "16x256b":
            return (lambda _split: _of_16(lane, 4 * count, 4)), 4 * count, packs
        case _:
            raise context.refuse()


def _of_16(lane: Integers, count: int, words: int) -> tuple[Array, Array]:
    """The fragments of matrices: rows of 16 lanes, as `mma` has its accumulators (PTX ISA, ".16x256b")."""
    register = np.arange(count)[:, None]
    row, place = lane[None, :] // 4, lane[None, :] % 4
    if words == 4:
        return row + 8 * (register // 2 % 2), register // 4 * 8 + 2 * place + register % 2
    if words == 2:
        return row + 8 * (register % 2), register // 2 * 4 + place
    raise Trap("loads and stores of the shape 16x64b are not known")


def _operands(context: Context, place: int, form: list[str]) -> tuple[Any, int, int]:
    base, offset = context.address(context.operand(place), "u4")
    split = 0
    if form and form[0] == "16x32bx2":
        last = context.operand(place + 1)
        if not isinstance(last, Number):
            raise context.refuse("the distance of the halves is a constant")
        split = last.value
    return base, offset, split


def _where(cohort: Cohort, addresses: Array, row: int, offset: int, what: str) -> tuple[int, int, int]:
    """The CTA, the first lane and the first column of a warp's access.

    Raises Trap for lanes that are another warp's.
    """
    thread = row * LANES
    if not (addresses[thread : thread + LANES] == addresses[thread]).all():
        raise Trap("the threads of a warp name different addresses of tensor memory")
    address = int(addresses[thread]) + offset
    lane, column = address >> 16, address & 0xFFFF
    warp = int(cohort.tids[thread]) // LANES % 4
    if not 32 * warp <= lane < 32 * warp + 32 and lane != 0:
        raise Trap(
            f"{what} of lane {lane} of tensor memory by a warp that has the lanes {32 * warp} to {32 * warp + 31}"
        )
    return int(cohort.ctas[thread]), max(lane, 32 * warp), column


def _load(context: Context, form: list[str]) -> Step:
    words, count, packs = _shape(context, form)
    base, offset, split = _operands(context, 1, form)
    writes = context.written(0, "u4")
    factor = 2 if packs else 1
    if len(writes) != count:
        raise context.refuse(f"it has {len(writes)} results, not {count}")
    context.expect(2, 3)
    lanes, columns = words(split)
    if packs:
        lanes, columns = words(split)
        columns = np.concatenate([2 * columns, 2 * columns + 1])
        lanes = np.broadcast_to(lanes, (count, LANES))
        lanes = np.concatenate([lanes, lanes])

    def effect(cohort: Cohort, mask: Mask, addresses: Any) -> Any:
        check_whole(cohort, mask)
        memory = memory_of(cohort.wave)
        found = np.zeros((factor * count, len(cohort.warps), LANES), np.uint32)
        rows = warps_of(cohort, mask)
        for row in range(len(cohort.warps)) if rows is None else rows.tolist():
            cta, lane, column = _where(cohort, addresses, row, offset, "load")
            cohort.wave.order.tensor_access(cohort, row, cta, lanes + lane, columns + column, False)
            found[:, row] = memory.read(cta, lanes + lane, columns + column, "load")
        flat = found.reshape(factor * count, -1)
        if packs:
            flat = flat[:count] & np.uint32(0xFFFF) | flat[count:] << np.uint32(16)
        return flat[0] if count == 1 else tuple(flat)

    return Step((base,), writes, effect=effect)


def _store(context: Context, form: list[str]) -> Step:
    words, count, packs = _shape(context, form)
    base, offset, split = _operands(context, 0, form)
    values = context.values(context.instruction.operands[-1], "u4")
    if len(values) != count:
        raise context.refuse(f"it has {len(values)} values, not {count}")
    context.expect(2, 3)
    lanes, columns = words(split)

    def effect(cohort: Cohort, mask: Mask, addresses: Any, *registers: Any) -> None:
        check_whole(cohort, mask)
        memory = memory_of(cohort.wave)
        held = np.stack(registers).reshape(count, -1, LANES)
        rows = warps_of(cohort, mask)
        for row in range(len(cohort.warps)) if rows is None else rows.tolist():
            cta, lane, column = _where(cohort, addresses, row, offset, "store")
            parts = (
                [(held[:, row] & np.uint32(0xFFFF), 2 * columns), (held[:, row] >> np.uint32(16), 2 * columns + 1)]
                if packs
                else [(held[:, row], columns)]
            )
            for part, at in parts:
                cohort.wave.order.tensor_access(cohort, row, cta, lanes + lane, at + column, True)
                memory.write(cta, lanes + lane, at + column, part, "store")

    return Step((base, *values), effect=effect)


# Commits and copies --------------------------------------------------------------------------------------------------


def _commit(context: Context, form: list[str]) -> Step:
    rest = [part for part in form if part not in ("shared::cluster", "b64")]
    if rest not in ([], ["multicast::cluster"]):
        raise context.refuse()
    base, offset = shared_address(context, 0)
    context.expect(1 + len(rest))
    masks = (context.read(1, "u2"),) if rest else ()

    def effect(cohort: Cohort, mask: Mask, addresses: Any, *chosen: Any) -> None:
        where = plus(addresses, offset)
        if not chosen:
            _arrive(cohort, mask, where)
            return
        for thread in range(cohort.n) if mask is None else np.flatnonzero(mask).tolist():
            for rank in range(16):
                if int(chosen[0][thread]) >> rank & 1:
                    only = np.zeros(cohort.n, np.bool_)
                    only[thread] = True
                    at = where & (1 << RANK_SHIFT) - 1 | rank << RANK_SHIFT
                    _arrive(cohort, only, at)

    return Step((base, *masks), effect=effect)


def _arrive(cohort: Cohort, mask: Mask, where: Integers) -> None:
    for place, threads, _ in each(cohort, mask, where):
        barrier = barrier_at(cohort, place)
        for thread in threads.tolist():
            cohort.wave.order.tensor_commit(cohort, thread, barrier)
            barrier.arrive(1)


_COPIES = {"128x256b": (128, 32, 1), "128x128b": (128, 16, 1), "32x128b": (32, 16, 4)}
"""Rows and bytes of each, and how often they are written, for each shape."""


def _copy(context: Context, form: list[str], *, pair: bool) -> Step:
    shape = next((part for part in form if part in _COPIES), None)
    if shape is None or sorted(form) != sorted([shape, *(["warpx4"] if shape == "32x128b" else [])]):
        raise context.refuse()
    context.expect(2)
    base, offset = context.address(context.operand(0), "u4")
    descriptor = context.read(1, "u8")
    rows, size, copies = _COPIES[shape]

    def effect(cohort: Cohort, mask: Mask, addresses: Any, descriptors: Any) -> None:
        wave = cohort.wave
        for thread in range(cohort.n) if mask is None else np.flatnonzero(mask).tolist():
            address = int(addresses[thread]) + offset
            matrix = of_tcgen05(int(descriptors[thread]))
            token = wave.order.tensor_issue(cohort, thread, None)
            for cta in ctas_of(cohort, thread, pair=pair):
                places = units(matrix, rows, size, k_major=True, size=1) + cta * (wave.shared.stride // UNIT)
                wave.order.reads(token, places.ravel(), UNIT)
                wave.shared.check_units(places.ravel())
                words = wave.shared.rows16[places.ravel()].view(np.uint32).reshape(rows, size // 4)
                for number in range(copies):
                    lanes = np.arange(rows)[:, None] + number * rows + (address >> 16)
                    columns = np.arange(size // 4)[None, :] + (address & 0xFFFF)
                    wave.order.tensor_moves(token, cta, lanes, columns, True)
                    memory_of(wave).write(cta, lanes, columns, words, "copy")

    return Step((base, descriptor), effect=effect)


def _shift(context: Context) -> Step:
    """32 bytes of each row get what the next row holds, but for the last row of each 32.

    Source: PTX ISA, "tcgen05.shift"; what Meta's test of it expects of a B200.
    """
    context.expect(1)
    base, offset = context.address(context.operand(0), "u4")

    def effect(cohort: Cohort, mask: Mask, addresses: Any) -> None:
        wave = cohort.wave
        for thread in range(cohort.n) if mask is None else np.flatnonzero(mask).tolist():
            address = int(addresses[thread]) + offset
            if address >> 16:
                raise Trap("a shift of tensor memory that does not begin in lane 0 is not known")
            cta = int(cohort.ctas[thread])
            rows = np.arange(4 * LANES).reshape(-1, LANES)[:, :-1].reshape(-1, 1)
            columns = np.arange(8)[None, :] + address
            token = wave.order.tensor_issue(cohort, thread, None)
            wave.order.tensor_moves(token, cta, rows + 1, columns, False)
            wave.order.tensor_moves(token, cta, rows, columns, True)
            memory = memory_of(wave)
            memory.write(cta, rows, columns, memory.read(cta, rows + 1, columns, "shift"), "shift")

    return Step((base,), effect=effect)


BUILDERS: Builders = {"tcgen05": _build}
