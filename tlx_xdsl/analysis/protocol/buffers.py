"""Accesses to buffers: each must be ordered after those that it must not overtake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ..storage_map import Span, spans
from ..storage_regions import storage_regions
from ..storage_trees import leaf_of
from .barriers import BrokenError
from .code import UnprovedError
from .state import Clock, Event, State, Uses
from .values import View


@dataclass(frozen=True)
class Allocation:
    """Buffers that an operation allocates."""

    op: Operation
    name: str
    region: Operation | None = None
    """The region of memory that it shares with others."""
    spans: tuple[Span, ...] = ()
    """Where each of its buffers lies in that."""


def shared_places(module: ModuleOp) -> Mapping[Operation, tuple[Operation, tuple[Span, ...]]]:
    """The region, and the places there, of each allocation of a module that shares its memory with others."""
    found: dict[Operation, tuple[Operation, tuple[Span, ...]]] = {}
    for region in storage_regions(module):
        if region.allocations:
            slots = region.place(strict=False).slots
            for number, op in enumerate(region.allocations):
                found[op] = region.spec, tuple(spans(leaf_of(number, op), slots[number]))
    return found


def name_of(allocations: Sequence[Allocation], view: View) -> str:
    """The name of a view in reports."""
    name = allocations[view.allocation].name
    return name if view.slot is None else f"{name}[{view.slot}]"


def read(state: State, allocations: Sequence[Allocation], view: View, event: Event, knows: Clock) -> None:
    """Note a read, of who knows `knows`.

    Raises BrokenError when nothing orders it after a write, or nothing was written that is still there.
    """
    is_written, lost = False, None
    for other, uses in state.buffers.items():
        if uses.write is not None and _overlap(allocations, view, other):
            _check(allocations, view, other, uses.write, event, knows, "reads", "written")
            if other.allocation == view.allocation:
                is_written, lost = True, lost or uses.lost
    name = name_of(allocations, view)
    if not is_written:
        raise BrokenError(event.op, f"'{name}' is read before it is written")
    if not _is_written(state, view):
        if lost is None:
            raise UnprovedError(event.op, f"not all of '{name}' is known to be written")
        raise BrokenError(
            event.op, f"'{name}' is read, and another array has overwritten it in their memory", [("overwritten", lost)]
        )
    uses = state.buffers.get(view, Uses())
    reads = (*(each for each in uses.reads if each.agent != event.agent), event)
    state.buffers[view] = replace(uses, reads=reads)


def write(state: State, allocations: Sequence[Allocation], view: View, event: Event, knows: Clock) -> None:
    """Note a write.

    Raises BrokenError when nothing orders it after another access.
    """
    for other, uses in list(state.buffers.items()):
        if _overlap(allocations, view, other):
            if uses.write is not None:
                _check(allocations, view, other, uses.write, event, knows, "writes", "written")
            for each in uses.reads:
                _check(allocations, view, other, each, event, knows, "writes", "read")
            if other.allocation != view.allocation:
                state.buffers[other] = replace(uses, lost=event.op)
            elif other != view and view.is_exact and _covers(view, other):
                del state.buffers[other]
    state.buffers[view] = Uses(event)


def allocate(state: State, number: int, op: Operation) -> None:
    """Forget what was written to an allocation: it is made anew."""
    for view, uses in list(state.buffers.items()):
        if view.allocation == number:
            state.buffers[view] = replace(uses, lost=op)


def _check(
    allocations: Sequence[Allocation], view: View, other: View, before: Event, now: Event, knows: Clock, verb: str,
    past: str,
) -> None:  # fmt: skip
    if before == now or before.is_known_to(knows):
        return
    if not (view.is_exact and other.is_exact):
        raise UnprovedError(
            now.op, f"which part of '{name_of(allocations, view)}' this is, is not known, and another may be in use"
        )
    raise BrokenError(
        now.op,
        f"this {verb} '{name_of(allocations, view)}', and nothing orders it after what has {past} it",
        [(past, before.op)],
    )


def _is_written(state: State, view: View) -> bool:
    """Return whether all of a view is written."""
    written = [
        other
        for other, uses in state.buffers.items()
        if uses.write is not None and uses.lost is None and other.is_exact
    ]
    if any(_covers(other, view) for other in written):
        return True
    if view.box is None:
        return False
    rest = [view.box]
    for other in written:
        if (other.allocation, other.slot) == (view.allocation, view.slot) and other.box is not None:
            rest = [piece for box in rest for piece in _without(box, other.box)]
    return not rest


Box: TypeAlias = tuple[tuple[int, int], ...]


def _without(box: Box, cut: Box) -> list[Box]:
    """The parts of a box that are not in another one."""
    pieces: list[Box] = []
    rest = box
    for axis, ((start, count), (first, more)) in enumerate(zip(box, cut, strict=True)):
        low, high = max(start, first), min(start + count, first + more)
        if low >= high:
            return [box]
        outside = ((start, low - start), (high, start + count - high))
        pieces += [(*rest[:axis], each, *rest[axis + 1 :]) for each in outside if each[1]]
        rest = (*rest[:axis], (low, high - low), *rest[axis + 1 :])
    return pieces


def _covers(view: View, other: View) -> bool:
    """Return whether all of another view of the same allocation is in a view."""
    if view.allocation != other.allocation or view.slot not in (None, other.slot):
        return False
    if view.box is None or view.slot is None:
        return True
    return other.box is not None and all(
        a <= b and b + m <= a + n for (a, n), (b, m) in zip(view.box, other.box, strict=True)
    )


def _overlap(allocations: Sequence[Allocation], one: View, other: View) -> bool:
    if one.allocation == other.allocation:
        if one.slot is None or other.slot is None or one.slot != other.slot:
            return one.slot is None or other.slot is None
        if one.box is None or other.box is None:
            return True
        return all(a < b + m and b < a + n for (a, n), (b, m) in zip(one.box, other.box, strict=True))
    mine, theirs = allocations[one.allocation], allocations[other.allocation]
    if mine.region is None or mine.region is not theirs.region:
        return False
    return any(a.start < b.end and b.start < a.end for a in _spans(mine, one) for b in _spans(theirs, other))


def _spans(allocation: Allocation, view: View) -> Sequence[Span]:
    return allocation.spans if view.slot is None else allocation.spans[view.slot : view.slot + 1]
