"""Number of blocks that a thread pushes and pops in all, on one core: exact, without following every iteration.

The body of a loop is counted once and multiplied by the trip count, unless a loop or a branch in it depends on what the
loop changes: then each iteration is counted for itself.
"""

from __future__ import annotations

from collections import Counter

from xdsl.dialects import affine, scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ..dialects.ttl import CBOp, IfDstOp, IfSrcOp
from .core_values import Core, CoreValues, Loop, Undecidable, side_runs, with_steps

MOST_ITERATIONS = 5_000
"""Iterations that are counted one by one before a count is given up."""

Totals = Counter[tuple[SSAValue, type[CBOp]]]
"""Blocks for each circular buffer and kind of step."""


def totals_of(thread: Operation, core: Core) -> Totals | None:
    """The blocks that a thread acquires and gives back on a core; None if that is not known."""
    try:
        return _Count(thread, core).of(thread.regions[0].block)
    except Undecidable:
        return None


class _Count:
    """A count in one thread of one core."""

    def __init__(self, thread: Operation, core: Core):
        self.relevant = with_steps(thread)
        self.core = core
        self.values = CoreValues(core)
        self.left = MOST_ITERATIONS

    def of(self, block: Block) -> Totals:
        """The blocks of all steps of a block of code."""
        found: Totals = Counter()
        for op in block.ops:
            if isinstance(op, CBOp):
                found[op.cb, type(op)] += op.num_blocks
            elif op.regions and op in self.relevant:
                found.update(self._structure(op))
        return found

    def _structure(self, op: Operation) -> Totals:
        match op:
            case affine.ForOp() | scf.ForOp():
                return self._loop(op)
            case scf.IfOp():
                condition = self.values.of(op.cond)
                if condition is None:
                    raise Undecidable(op)
                region = op.true_region if condition else op.false_region
                return self.of(region.block) if region.blocks else Counter()
            case IfSrcOp() | IfDstOp():
                runs = side_runs(op, self.core)
                if runs is None:
                    raise Undecidable(op)
                return self.of(op.body.block) if runs else Counter()
            case _:
                raise Undecidable(op)

    def _loop(self, loop: Loop) -> Totals:
        indices = self.values.range_of(loop)
        if indices is None:
            raise Undecidable(loop)
        block, found = loop.body.block, Totals()
        if not self._steers(block):
            once = self.of(block) if indices else Totals()
            return Counter({key: len(indices) * number for key, number in once.items()})
        for index in indices:
            self.left -= 1
            if self.left < 0:
                raise Undecidable(loop)
            # What a loop carries besides its index is not followed here.
            self.values.known[block.args[0]] = index
            found.update(self.of(block))
        return found

    def _steers(self, body: Block) -> bool:
        """Return whether trip counts and branches in the body of a loop depend on the loop's own values."""
        pending = [value for op in body.walk() if op.regions and op in self.relevant for value in op.operands]
        seen: set[SSAValue] = set()
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            if isinstance(value, BlockArgument):
                if value.block is body:
                    return True
            elif isinstance(value.owner, Operation):
                pending.extend(value.owner.operands)
                # The result of control flow depends on what is in its regions, too.
                pending.extend(each for inner in value.owner.walk() for each in inner.operands)
        return False
