"""Slices: the operations, carried values and control flow that some operations of a function need.

A slice is what remains of a function for one task: what its operations take, computed again, in the loops and branches
around them, which carry only what is needed (Weiser 1981, "Program slicing").
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.traits import IsolatedFromAbove, RecursiveMemoryEffect, is_side_effect_free

from tlx_xdsl.dialects import ttg
from tlx_xdsl.dialects.base import Kind, Sync, accesses_of, effects_of
from tlx_xdsl.dialects.regions import SCALAR_CODE


class Slice:
    """The code that `roots` need. Of `leaves` only the places count: what they take comes in another way."""

    def __init__(self, roots: Iterable[Operation], leaves: Collection[Operation] = ()):
        """Follow the operations backwards; the time is linear in the slice."""
        self.ops: set[Operation] = set()
        self.carried: dict[Operation, set[int]] = {}
        """The numbers of the values that a loop carries, or that a branch gives."""
        self._leaves = set(leaves)
        self.values: set[SSAValue] = set()
        """The values that are needed."""
        self._work: list[Operation | SSAValue] = [*roots, *leaves]
        while self._work:
            item = self._work.pop()
            if isinstance(item, Operation):
                self._keep(item)
            else:
                self._need(item)

    def _need(self, value: SSAValue) -> None:
        if value in self.values:
            return
        self.values.add(value)
        owner = value.owner
        if isinstance(owner, Operation):
            self._work.append(owner)
            if isinstance(owner, scf.ForOp | scf.IfOp) and isinstance(value, OpResult):
                self._carry(owner, owner.results.index(value))
            return
        parent = owner.parent_op()
        if parent is None or is_whole(parent):
            return
        self._work.append(parent)
        if isinstance(parent, scf.ForOp) and isinstance(value, BlockArgument) and value.index > 0:
            self._carry(parent, value.index - 1)

    def _carry(self, op: scf.ForOp | scf.IfOp, number: int) -> None:
        numbers = self.carried.setdefault(op, set())
        if number in numbers:
            return
        numbers.add(number)
        if isinstance(op, scf.ForOp):
            self._work.append(op.iter_args[number])
        self._work += [end.operands[number] for region in op.regions if (end := _end(region.blocks)) is not None]

    def _keep(self, op: Operation) -> None:
        if op in self.ops:
            return
        self.ops.add(op)
        parent = op.parent_op()
        if parent is not None and not is_whole(parent):
            self._work.append(parent)
        if op in self._leaves:
            return
        match op:
            case scf.ForOp():
                self._work += [op.lb, op.ub, op.step]
            case scf.IfOp():
                self._work.append(op.cond)
            case scf.WhileOp():
                # All that it carries may decide how often it goes round.
                self._work += op.operands
                self._work += [value for region in op.regions for end in _ends(region.blocks) for value in end.operands]
            case _:
                self._work += op.operands
                for region in op.regions:
                    for inner in region.walk():
                        self._work += inner.operands


def is_whole(op: Operation) -> bool:
    """True for an operation whose regions are the whole code of a task or a function."""
    return op.has_trait(IsolatedFromAbove) or isinstance(op, ttg.WarpSpecializeOp)


def _ends(blocks: Iterable[Block]) -> list[Operation]:
    return [block.last_op for block in blocks if block.last_op is not None]


def _end(blocks: Iterable[Block]) -> Operation | None:
    return next(iter(_ends(blocks)), None)


def is_only_read(op: Operation) -> bool:
    """True for an operation that may be done by several tasks instead of one: it computes, or only reads memory."""
    if op.has_trait(RecursiveMemoryEffect) or isinstance(op.parent_op(), SCALAR_CODE):
        return True
    if is_side_effect_free(op):
        return True
    accesses = accesses_of(op)
    return (
        accesses is not None
        and not op.regions
        and effects_of(op).sync is Sync.NONE
        and all(access.kind is Kind.READ for access in accesses)
    )


def writes_memory(op: Operation) -> bool:
    """True for an operation, without those in its regions, that may write memory or do anything that others see.

    Barriers, prints and assertions access nothing, but must stay where they are.
    """
    if is_side_effect_free(op) or op.has_trait(RecursiveMemoryEffect):
        return False
    accesses = accesses_of(op)
    return accesses is None or bool(effects_of(op).sync) or not all(access.kind is Kind.READ for access in accesses)


def drop_idle(block: Block) -> None:
    """Erase pure operations without a use, from the end."""
    for op in reversed(list(block.ops)):
        for region in op.regions:
            for inner in region.blocks:
                drop_idle(inner)
        if op.results and not op.regions and is_only_read(op) and not any(result.first_use for result in op.results):
            op.detach()
            op.erase()
