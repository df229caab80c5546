"""Liveness of a function's tensors: the ones that are used after an operation.

The answers are of the function as it was when it was read: it may be rewritten meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from tlx_xdsl.dialects.scf import LOOPS


class TensorUse(NamedTuple):
    """A tensor among the operands of an operation."""

    op: Operation
    """The operation; that around a body of `linalg` which takes the tensor from outside."""
    number: int
    """The number of the operand; -1 for one that is taken inside of a body."""


@dataclass(eq=False, slots=True)
class _Node:
    """An operation that has to do with tensors, or has regions."""

    op: Operation
    block: Block
    position: int
    parent: _Node | None
    depth: int
    loop: _Node | None
    """The innermost loop around it."""
    end: int = 0
    """The last position inside of it."""


_Reached: TypeAlias = dict[Block, set[Block]]


@dataclass(eq=False, slots=True)
class Liveness:
    """The uses of the tensors of a function, and the order of its operations."""

    function: Operation
    uses: dict[SSAValue, list[TensorUse]] = field(default_factory=dict[SSAValue, list[TensorUse]])
    """All uses of each tensor, in the order of the text."""
    taken_inside: dict[Operation, list[Operation]] = field(default_factory=dict[Operation, list[Operation]])
    """For an operation of `linalg`, those of its body that take tensors from outside."""
    _nodes: dict[Operation, _Node] = field(default_factory=dict[Operation, _Node])
    _owners: dict[Block, _Node] = field(default_factory=dict[Block, _Node])
    _reached: dict[Region, _Reached] = field(default_factory=dict[Region, _Reached])
    _count: int = 0

    def __post_init__(self) -> None:
        self._visit(self.function, None, None)

    # --- questions -----------------------------------------------------------------------------------------------

    def uses_of(self, value: SSAValue) -> list[TensorUse]:
        """All uses of a tensor, in the order of the text."""
        return self.uses.get(value, [])

    def is_live_after(
        self, value: SSAValue, op: Operation, *, ignored: Iterable[int] = (), ignore_inside: bool = False
    ) -> bool:
        """Return whether `value` may be used once `op` has begun to write.

        Uses by `op` itself count, but as the operands `ignored`; those inside of its regions count unless
        `ignore_inside` is given.
        """
        uses = self.uses.get(value)
        if uses is None:
            return False
        here, again = self._nodes[op], None
        if here.loop is not None:
            again = self._repeats(here, self._loop_of(value))
        for use in uses:
            at = self._nodes[use.op]
            if again is not None and again.position <= at.position <= again.end:
                return True
            if at is here:
                if use.number not in ignored:
                    return True
            elif here.position < at.position <= here.end:
                if not ignore_inside:
                    return True
            elif self._goes_on(here, at, value):
                return True
        return False

    def is_inside(self, value: SSAValue, op: Operation) -> bool:
        """Return whether a value is defined inside of `op`, or is an argument of one of its blocks."""
        node, outer = self._definition(value), self._nodes[op]
        inside = node is not None and outer.position < node.position <= outer.end
        return inside or (node is outer and isinstance(value, BlockArgument))

    def is_known(self, op: Operation) -> bool:
        """Return whether `op` was there when the function was read, and has to do with tensors."""
        return op in self._nodes

    # --- control flow --------------------------------------------------------------------------------------------

    def _definition(self, value: SSAValue) -> _Node | None:
        owner = value.owner
        return self._owners.get(owner) if isinstance(owner, Block) else self._nodes.get(owner)

    def _loop_of(self, value: SSAValue) -> _Node | None:
        """The innermost loop in which a value is defined again in each turn."""
        node = self._definition(value)
        if node is None:
            return None
        is_argument = isinstance(value, BlockArgument)
        return node if is_argument and isinstance(node.op, LOOPS) else node.loop

    @staticmethod
    def _repeats(here: _Node, defined_in: _Node | None) -> _Node | None:
        """The outermost loop around an operation that is not around a definition: each of its turns has one value."""
        found, loop = None, here.loop
        while loop is not None and loop is not defined_in:
            found, loop = loop, loop.loop
        return found

    def _goes_on(self, here: _Node, there: _Node, value: SSAValue) -> bool:
        """Return whether control may come from one operation to another, which is not inside of it, without a loop."""
        while here.depth > there.depth:
            here = here.parent or here
        while there.depth > here.depth:
            there = there.parent or there
        while here.parent is not there.parent:
            here, there = here.parent or here, there.parent or there
        if here.block is there.block:
            if here.position < there.position or here is there:
                return here is not there
            reached = self._blocks_after(here.block)
            definition = self._definition(value)
            return here.block in reached and (definition is None or definition.block is not here.block)
        if here.block.parent is there.block.parent:
            return there.block in self._blocks_after(here.block)
        # Of the branches of an `scf.if` one runs.
        return here.parent is None or not isinstance(here.parent.op, scf.IfOp)

    def _blocks_after(self, block: Block) -> set[Block]:
        """The blocks of the same region to which control may come."""
        region = block.parent
        assert region is not None
        if block.next_block is None and region.first_block is block:
            return set()
        reached = self._reached.setdefault(region, {})
        if block not in reached:
            found: set[Block] = set()
            pending = [block]
            while pending:
                last = pending.pop().last_op
                for target in () if last is None else last.successors:
                    if target not in found:
                        found.add(target)
                        pending.append(target)
            reached[block] = found
        return reached[block]

    # --- reading -------------------------------------------------------------------------------------------------

    def _visit(self, op: Operation, parent: _Node | None, loop: _Node | None) -> None:
        block = op.parent
        if block is None:
            return
        depth = 0 if parent is None else parent.depth + 1
        node = self._nodes[op] = _Node(op, block, self._count, parent, depth, loop)
        self._count += 1
        for number, value in enumerate(op.operands):
            if isinstance(value.type, TensorType):
                self.uses.setdefault(value, []).append(TensorUse(op, number))
        if op.regions:
            if isinstance(op, LinalgStructuredOperation):
                self._visit_body(op)
            else:
                inner = node if isinstance(op, LOOPS) else loop
                for region in op.regions:
                    for each in region.blocks:
                        self._owners[each] = node
                        for nested in each.ops:
                            if _matters(nested):
                                self._visit(nested, node, inner)
        node.end = self._count - 1

    def _visit_body(self, op: Operation) -> None:
        for nested in op.regions[0].walk():
            for value in nested.operands:
                if isinstance(value.type, TensorType):
                    self.uses.setdefault(value, []).append(TensorUse(op, -1))
                    self.taken_inside.setdefault(op, []).append(nested)


def _matters(op: Operation) -> bool:
    if op.regions or isinstance(op, memref.AllocOp):
        return True
    return any(isinstance(value.type, TensorType) for value in op._operands) or any(  # pyright: ignore[reportPrivateUsage]
        isinstance(value.type, TensorType) for value in op.results
    )
