"""Live ranges of the buffers of an overlap tree, as far as the order of the text proves them.

Two trees over one `tlx.storage_alias_spec` may use the same memory when the buffers of one are dead before those of
the other are touched. What counts is what stock Triton's own allocator counts: the order of the operations in a block,
where an operation with regions stands for all that is in it. Waiting for asynchronous operations before the memory is
used again is the kernel's business here as there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from tlx_xdsl.dialects import tlx, ttg
from tlx_xdsl.text.diagnostics import source_location

from .storage_trees import Overlap, duplicate_overlap, here, members_of


@dataclass(frozen=True)
class LiveRange:
    """The operations of a block from the first to the last one that touches a buffer."""

    first: Operation
    last: Operation


def check_live_ranges(overlaps: Sequence[Overlap]) -> None:
    """Check that no two of the trees of a region have buffers that are live together.

    Raises CompilationError, the one for a second `set_buffer_overlap`, for the first two trees where that isn't shown.
    """
    if len(overlaps) < 2:
        return
    block = overlaps[0].op.parent_block()
    assert block is not None
    position = {op: number for number, op in enumerate(block.ops)}
    allocations = [_allocations(overlap) for overlap in overlaps]
    ranges = [_live_range(ops, block, position) for ops in allocations]
    for number, second in enumerate(overlaps):
        for other, first in enumerate(overlaps[:number]):
            for op in allocations[number]:
                if op in allocations[other]:
                    raise duplicate_overlap(second, first, [here("both relate the allocation", op)])
            if not _are_disjoint(ranges[other], ranges[number], position):
                notes = [_note("its buffers", ranges[other]), _note("those of this one", ranges[number])]
                raise duplicate_overlap(second, first, notes)


def _allocations(overlap: Overlap) -> dict[tlx.StorageAliasLocalAllocOp, None]:
    members = () if overlap.root is None else members_of(overlap.root)
    return {op: None for op in members if isinstance(op, tlx.StorageAliasLocalAllocOp)}


_Range: TypeAlias = LiveRange | str | None
"""The live range of a tree's buffers: None when they are never accessed, a reason when it is not known."""


def _are_disjoint(first: _Range, second: _Range, position: dict[Operation, int]) -> bool:
    if first is None or second is None:
        return True
    if isinstance(first, str) or isinstance(second, str):
        return False
    return position[first.last] < position[second.first] or position[second.last] < position[first.first]


def _live_range(
    allocations: Iterable[tlx.StorageAliasLocalAllocOp], block: Block, position: dict[Operation, int]
) -> _Range:
    if any(op.parent_block() is not block for op in allocations):
        return "are not allocated where the overlap is defined"
    touching: list[Operation] = []
    for op in _users(op.result for op in allocations):
        ancestor = block.find_ancestor_op_in_block(op)
        # What leaves the block may be touched anywhere, also in the next turn of a loop.
        if ancestor is None or (ancestor is op and op.has_trait(IsTerminator)):
            return "are used outside of the block that defines the overlap"
        touching.append(ancestor)
    if not touching:
        return None
    return LiveRange(min(touching, key=position.__getitem__), max(touching, key=position.__getitem__))


def _users(buffers: Iterable[SSAValue]) -> list[Operation]:
    """The operations that use the buffers, views of them, or tokens of operations on them."""
    pending = list(buffers)
    seen: dict[Operation, None] = {}
    for value in pending:
        for use in value.uses:
            op = use.operation
            if op in seen or isinstance(op, tlx.ReuseGroupOp):
                continue
            seen[op] = None
            inner = [argument for region in op.regions for inside in region.blocks for argument in inside.args]
            pending += [v for v in (*op.results, *inner) if isinstance(v.type, ttg.MemDescType | ttg.AsyncTokenType)]
    return list(seen)


def _note(whose: str, range_: _Range) -> str:
    if range_ is None:
        return f"{whose} are never used"
    if isinstance(range_, str):
        return f"{whose} {range_}"
    first, last = (source_location(op.location) or "an unknown place" for op in (range_.first, range_.last))
    return f"{whose} are live from {first} to {last}"
