"""Collective instructions of a warp (PTX ISA, "shfl.sync", "vote.sync", "elect.sync", "redux.sync", "match.sync").

Threads outside of the member mask keep what they have. All threads that the mask names must run the instruction
together; a warp of which only a part is here is taken as that part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlx_xdsl.numerics.arrays import Array, Booleans, Integers
from tlx_xdsl.numerics.elementwise import EXTREMA, extremum_along

from ..arithmetic.kinds import TYPES
from ..cohort import LANES, Cohort
from ..memory.surroundings import Trap
from ..read.syntax import Number, Pair
from ..steps import Builders, Context, Step
from .memory import Mask

_LANE = np.arange(LANES, dtype=np.uint32)


def rows(cohort: Cohort, values: Array) -> Array:
    """A value of each thread as an array of [warps, 32]; threads that are not here have zeros."""
    if cohort.whole:
        return values.reshape(-1, LANES)
    result = np.zeros((len(cohort.warps), LANES), values.dtype)
    result[_row_of(cohort), cohort.lane] = values
    return result


def back(cohort: Cohort, found: Array) -> Array:
    """The values of an array of [warps, 32] for the threads that are here."""
    return np.ascontiguousarray(found).reshape(-1) if cohort.whole else found[_row_of(cohort), cohort.lane]


def _row_of(cohort: Cohort) -> Integers:
    return np.searchsorted(cohort.warps, cohort.warp_of)


def active(cohort: Cohort, mask: Mask) -> Booleans:
    """Return which threads of each warp run an instruction, as [warps, 32]."""
    if mask is None and cohort.whole:
        return np.ones((len(cohort.warps), LANES), np.bool_)
    return rows(cohort, np.ones(cohort.n, np.bool_) if mask is None else mask)


def members(cohort: Cohort, mask: Mask, wanted: NDArray[np.uint32]) -> Booleans:
    """The threads that a member mask names, as [warps, 32].

    Raises Trap where one of them does not run the instruction.
    """
    running = active(cohort, mask)
    named = (rows(cohort, wanted) >> _LANE & np.uint32(1)).astype(np.bool_)
    if cohort.whole and mask is None:
        return named
    # A thread that is not here has named no other.
    named = (rows(cohort, wanted).max(axis=1)[:, None] >> _LANE & np.uint32(1)).astype(np.bool_)
    missing = named & ~running
    if missing.any() and not _ended(cohort, missing):
        warp, lane = (int(each) for each in np.argwhere(missing)[0])
        raise Trap(
            f"lane {lane} of warp {int(cohort.warps[warp]) % (cohort.wave.padded_threads // LANES)} is in the member "
            "mask, and does not run this instruction with the others"
        )
    return named & running


def _ended(cohort: Cohort, missing: Booleans) -> bool:
    """Return whether all threads that are missing are beyond the end of a CTA, or have ended."""
    threads = cohort.warps[:, None] * LANES + np.arange(LANES)
    lacking = threads[missing]
    alive = np.concatenate([each.threads for each in cohort.wave.everyone()])
    return not np.isin(lacking, alive).any()


# shfl ----------------------------------------------------------------------------------------------------------------


def _shuffle(context: Context) -> Step:
    parts = context.instruction.modifiers
    mode = next((part for part in parts if part in ("up", "down", "bfly", "idx")), None)
    if mode is None or "sync" not in parts or "b32" not in parts:
        raise context.refuse()
    context.expect(5)
    target = context.operand(0)
    reads = tuple(context.read(place, "u4") for place in (1, 2, 3, 4))
    if isinstance(target, Pair):
        writes = (context.single_result(target.first, "u4"), context.single_result(target.second, "b"))
    else:
        writes = (*context.result(target, "u4"), (None, "b"))
    by, bounds, fixed = context.operand(2), context.operand(3), None
    if isinstance(by, Number) and isinstance(bounds, Number):
        constants = (np.full((1, LANES), each.value % (1 << 32), np.uint32) for each in (by, bounds))
        fixed = _sources(mode, *constants)
    return Step(reads, writes, effect=_shuffler(mode, fixed))


def _sources(mode: str, by: NDArray[np.uint32], bounds: NDArray[np.uint32]) -> tuple[Integers, Booleans]:
    """The lane that each lane takes its value from, and whether that is within its segment."""
    distance = (by & 31).astype(np.int64)
    clamp, segment = (bounds & 31).astype(np.int64), (bounds >> 8 & 31).astype(np.int64)
    lane = np.arange(LANES)
    highest = lane & segment | clamp & ~segment
    lowest = lane & segment
    match mode:
        case "up":
            source = lane - distance
            inside = source >= highest
        case "down":
            source = lane + distance
            inside = source <= highest
        case "bfly":
            source = lane ^ distance
            inside = source <= highest
        case _:
            source = lowest | distance & ~segment
            inside = source <= highest
    return np.where(inside, source, lane), inside


def _shuffler(mode: str, fixed: Any) -> Callable[..., Any]:
    def run(cohort: Cohort, mask: Mask, values: Any, by: Any, bounds: Any, wanted: Any) -> Any:
        if fixed is not None and cohort.whole and mask is None:
            source, inside = fixed
            found = values.reshape(-1, LANES)[:, source[0]]
            return found.reshape(-1), np.broadcast_to(inside, found.shape).reshape(-1)
        members(cohort, mask, wanted)
        source, inside = _sources(mode, rows(cohort, by), rows(cohort, bounds))
        found = np.take_along_axis(rows(cohort, values), source, 1)
        return back(cohort, found), back(cohort, np.broadcast_to(inside, found.shape))

    return run


# vote, match, elect, redux -------------------------------------------------------------------------------------------


def _vote(context: Context) -> Step:
    parts = context.instruction.modifiers
    mode = next((part for part in parts if part in ("all", "any", "uni", "ballot")), None)
    if mode is None or "sync" not in parts:
        raise context.refuse()
    context.expect(3)
    kind = "u4" if mode == "ballot" else "b"
    reads = (context.read(1, "b"), context.read(2, "u4"))

    def run(cohort: Cohort, mask: Mask, votes: Any, wanted: Any) -> Any:
        named = members(cohort, mask, wanted)
        said = rows(cohort, votes) & named
        count, all_ = said.sum(axis=1), named.sum(axis=1)
        match mode:
            case "ballot":
                found = (said.astype(np.uint64) << _LANE.astype(np.uint64)).sum(axis=1).astype(np.uint32)
            case "all":
                found = count == all_
            case "any":
                found = count > 0
            case _:
                found = (count == all_) | (count == 0)
        return back(cohort, np.repeat(found[:, None], LANES, 1))

    return Step(reads, context.written(0, kind), effect=run)


def _match(context: Context) -> Step:
    parts = context.instruction.modifiers
    if "sync" not in parts or not {"any", "all"} & set(parts):
        raise context.refuse()
    context.expect(3)
    kind = "u8" if "b64" in parts else "u4"
    is_any = "any" in parts
    target = context.operand(0)
    if isinstance(target, Pair):
        writes = (context.single_result(target.first, "u4"), context.single_result(target.second, "b"))
    else:
        writes = (*context.result(target, "u4"), (None, "b"))

    def run(cohort: Cohort, mask: Mask, values: Any, wanted: Any) -> Any:
        named = members(cohort, mask, wanted)
        found = rows(cohort, values)
        same = (found[:, :, None] == found[:, None, :]) & named[:, None, :] & named[:, :, None]
        words = (same.astype(np.uint64) << _LANE.astype(np.uint64)).sum(axis=2).astype(np.uint32)
        everyone = (named.astype(np.uint64) << _LANE.astype(np.uint64)).sum(axis=1).astype(np.uint32)[:, None]
        agree = words == everyone
        if not is_any:
            words = np.where(agree, words, np.uint32(0))
        return back(cohort, words), back(cohort, agree)

    reads = (context.read(1, kind), context.read(2, "u4"))
    return Step(reads, writes, effect=run)


def _elect(context: Context) -> Step:
    if context.instruction.opcode != "elect.sync":
        raise context.refuse()
    context.expect(2)
    target = context.operand(0)
    if not isinstance(target, Pair):
        raise context.refuse("it needs two results")
    writes = (context.single_result(target.first, "u4"), context.single_result(target.second, "b"))

    def run(cohort: Cohort, mask: Mask, wanted: Any) -> Any:
        named = members(cohort, mask, wanted)
        first = named.argmax(axis=1)
        leader = np.repeat(first[:, None], LANES, 1)
        return back(cohort, leader.astype(np.uint32)), back(cohort, (leader == np.arange(LANES)) & named)

    return Step((context.read(1, "u4"),), writes, effect=run)


_REDUCTIONS: dict[str, Any] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip


def _redux(context: Context) -> Step:
    parts = context.instruction.modifiers
    name = next((part for part in parts if part in _REDUCTIONS), None)
    type_ = next((part for part in parts if part in ("u32", "s32", "b32", "f32")), None)
    if name is None or type_ is None or "sync" not in parts:
        raise context.refuse()
    context.expect(3)
    kind = TYPES[type_]
    absolute, spreads = "abs" in parts, "NaN" in parts
    if type_ == "f32" and name not in ("min", "max"):
        raise context.refuse()

    def reduced(values: Array) -> Array:
        if type_ == "f32":
            return extremum_along(EXTREMA[name, spreads], values, 0)
        # numpy adds up in 64 bits where no type is given.
        return _REDUCTIONS[name].reduce(values, dtype=values.dtype)

    def run(cohort: Cohort, mask: Mask, values: Any, wanted: Any) -> Any:
        named = members(cohort, mask, wanted)
        found = rows(cohort, np.abs(values) if absolute else values)
        result = np.empty(len(found), found.dtype)
        for place, (row, which) in enumerate(zip(found, named, strict=True)):
            result[place] = reduced(row[which]) if which.any() else 0
        return back(cohort, np.repeat(result[:, None], LANES, 1))

    reads = (context.read(1, kind), context.read(2, "u4"))
    return Step(reads, context.written(0, kind), effect=run)


def _active_mask(context: Context) -> Step:
    context.expect(1)

    def run(cohort: Cohort, mask: Mask) -> Any:
        running = active(cohort, mask)
        words = (running.astype(np.uint64) << _LANE.astype(np.uint64)).sum(axis=1).astype(np.uint32)
        return back(cohort, np.repeat(words[:, None], LANES, 1))

    return Step((), context.written(0, "u4"), effect=run)


BUILDERS: Builders = {
    "shfl": _shuffle, "vote": _vote, "match": _match, "elect": _elect, "redux": _redux, "activemask": _active_mask,
}  # fmt: skip
