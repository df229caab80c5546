"""`affine-loop-fusion`: make one loop of two neighbours with the same iterations.

Before, with one loop in the compute thread that takes a block of both buffers in each iteration:
```mlir
affine.for %i = 0 to 2 {
  %v = ttl.cb_reserve %a : ...
  %xf = ttl.copy %from_a[%i], %v : ...
  ttl.cb_push %a
}
affine.for %j = 0 to 2 {
  %w = ttl.cb_reserve %b : ...
  %yf = ttl.copy %from_b[%j], %w : ...
  ttl.cb_push %b
}
```
After:
```mlir
affine.for %i = 0 to 2 {
  %v = ttl.cb_reserve %a : ...
  %xf = ttl.copy %from_a[%i], %v : ...
  ttl.cb_push %a
  %w = ttl.cb_reserve %b : ...
  %yf = ttl.copy %from_b[%i], %w : ...
  ttl.cb_push %b
}
```
The loops are those of one thread with equal bounds, and nothing but index arithmetic between them. Then iteration i
of the second loop happens before iteration i + 1 of the first one. That is refused, and the loops stay as they are,

- where it reverses a dependence: an iteration of the second loop conflicts with a later one of the first loop
  (`analysis.ttl.transfers`), or both use a block that was acquired outside of them, and one writes it;
- where both loops have steps on the same circular buffer: their order is the order of its blocks;
- where two threads could come to wait for each other: what the second loop acquires in iteration i must not need what
  the first one releases later. It does not when the buffers of both loops are in lockstep with one partner
  (`analysis.ttl.buffer_sides`): its run i needs nothing of theirs after block i. With partners in several threads,
  those must have no other buffers, through which one could be ahead of the other. Or, the second loop only reserves,
  and its buffers have room for all that is ever pushed to them, so that it never waits;
- where there are pipes or semaphores in the loops, other steps than directly in their bodies, or values that a loop
  carries.

The loops of one thread are fused for themselves. So a reader that fills one buffer after the other stays as it is
unless the compute thread takes from both in turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import affine
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl.transforms.rewriting import Pass, ops_of
from tlx_xdsl.ttl.analysis.affine_dependence import Conflicts, conflicts
from tlx_xdsl.ttl.analysis.buffer_sides import BufferSides
from tlx_xdsl.ttl.analysis.transfers import accesses, loop_of, loops_around, parameters_of
from tlx_xdsl.ttl.dialects.ttl import (
    AcquireOp,
    CBOp,
    CopyOp,
    KernelOp,
    PipeType,
    SemaphoreOp,
    WritingOp,
    acquisition_of,
)

from ..transfer_groups import is_index_arithmetic
from .strip_mining import trip_count


class AffineLoopFusionPass(Pass):
    """Fuse neighbouring loops in the threads of every kernel."""

    name = "affine-loop-fusion"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for kernel in ops_of(op, KernelOp):
            for thread in kernel.threads:
                fusion = _Fusion(kernel)
                for block in [region.block for each in thread.walk() for region in each.regions if region.blocks]:
                    fusion.fuse_all(block)


class _Fusion:
    def __init__(self, kernel: KernelOp) -> None:
        self.kernel = kernel
        self.parameters = parameters_of(kernel)
        self.sides = BufferSides(kernel)

    def fuse_all(self, block: Block) -> None:
        """Fuse the loops of a block with their neighbours, from the first one on."""
        loop: affine.ForOp | None = None
        between: list[Operation] = []
        for op in [*block.ops]:
            if not isinstance(op, affine.ForOp):
                if is_index_arithmetic(op):
                    between.append(op)
                else:
                    loop = None
                continue
            if loop is not None and _same_iterations(loop, op) and self._is_legal(loop, op):
                _fuse(loop, op, between)
                self.sides = BufferSides(self.kernel)
            else:
                loop = op
            between = []

    def _is_legal(self, first: affine.ForOp, second: affine.ForOp) -> bool:
        if not (_is_simple(first) and _is_simple(second)):
            return False
        own, others = _steps(first), _steps(second)
        if not {step.cb for step in own}.isdisjoint({step.cb for step in others}):
            return False
        return (
            self._cannot_deadlock(own, others)
            and not _share_a_written_block(first, second)
            and not self._reverses_a_dependence(first, second)
        )

    # --- circular buffers --------------------------------------------------------------------------------------------

    def _cannot_deadlock(self, first: Sequence[CBOp], second: Sequence[CBOp]) -> bool:
        """Return whether no acquisition of the second loop can come to need a later release of the first one."""
        if not first or not second or all(map(self._never_waits, second)):
            return True
        own = [*first, *second]
        partners = self.sides.partners(own)
        if partners is None or any(self.sides.side(step.cb, produces=step.PRODUCES) is None for step in own):
            return False
        threads = {each.thread for each in partners}
        if len({each.block for each in partners}) > len(threads):
            return False
        cbs = {step.cb for step in own}
        users = ((cb, thread) for (cb, _), found in self.sides.steps.items() for thread, _ in found)
        return len(threads) == 1 or all(cb in cbs or thread not in threads for cb, thread in users)

    def _never_waits(self, step: CBOp) -> bool:
        """Return whether it is a release, or a reservation of room that is there from the beginning."""
        if not isinstance(step, AcquireOp):
            return True
        if not step.PRODUCES or self.sides.side(step.cb, produces=True) is None:
            return False
        counts = [trip_count(loop) if isinstance(loop, affine.ForOp) else None for loop in loops_around(step)]
        known = [count for count in counts if count is not None]
        return len(known) == len(counts) and prod(known) <= step.cb_type.buffer_factor

    # --- transfers ---------------------------------------------------------------------------------------------------

    def _reverses_a_dependence(self, first: affine.ForOp, second: affine.ForOp) -> bool:
        """Return whether an iteration of the second loop touches what a later one of the first loop touches."""
        names = {loop_of(second).variable: loop_of(first).variable}
        touched = [each for copy in ops_of(first, CopyOp) for each in accesses(copy)]
        for memory, indices, access in (each for copy in ops_of(second, CopyOp) for each in accesses(copy)):
            for other_memory, other_indices, other in touched:
                if other_memory is not memory or not (access.is_write or other.is_write):
                    continue
                if indices != other_indices:
                    return True
                found = conflicts(other, access.renamed(names), self.parameters)
                if _is_backward(found, len(loops_around(first)) + 1):
                    return True
        return False


def _is_backward(found: Conflicts, loops: int) -> bool:
    """Return whether accesses conflict in one iteration of the outer loops, with the sink earlier in its last loop."""
    return any(not any(each[: loops - 1]) and each[loops - 1] < 0 for each in found.directions)


def _same_iterations(first: affine.ForOp, second: affine.ForOp) -> bool:
    return (
        first.lowerBoundMap == second.lowerBoundMap
        and first.upperBoundMap == second.upperBoundMap
        and first.step == second.step
        and [*first.operands] == [*second.operands]
    )


def _is_simple(loop: affine.ForOp) -> bool:
    """Return whether a loop carries no value, and synchronises by circular buffers alone, directly in its body."""
    return not loop.inits and not any(
        isinstance(op, SemaphoreOp)
        or (isinstance(op, CopyOp) and isinstance(op.far.type, PipeType))
        or (isinstance(op, CBOp) and op.parent is not loop.body.block)
        for op in loop.walk()
    )


def _steps(loop: affine.ForOp) -> list[CBOp]:
    return [op for op in loop.body.block.ops if isinstance(op, CBOp)]


def _share_a_written_block(first: affine.ForOp, second: affine.ForOp) -> bool:
    """Return whether both loops use a block that was acquired outside of them, and one of them stores into it."""
    used, written = zip(*(_outside_views(loop) for loop in (first, second)), strict=True)
    return not (used[0].isdisjoint(written[1]) and used[1].isdisjoint(written[0]))


def _outside_views(loop: affine.ForOp) -> tuple[set[Operation], set[Operation]]:
    """The acquisitions outside of a loop of what it uses, and of what it stores into."""
    used: set[Operation] = set()
    written: set[Operation] = set()
    for op in loop.walk():
        used |= {each.owner for each in op.operands if isinstance(each.owner, AcquireOp)}
        if isinstance(op, WritingOp):
            written.add(acquisition_of(op.place))
    return {each for each in used | written if not loop.is_ancestor(each)}, written


def _fuse(first: affine.ForOp, second: affine.ForOp, between: list[Operation]) -> None:
    """Move the body of the second loop to the end of the first one, and what is between them before both."""
    for op in between:
        op.detach()
        Rewriter.insert_op(op, InsertPoint.before(first))
    index: SSAValue = first.body.block.args[0]
    end = first.body.block.last_op
    assert end is not None, "a body ends in an operation"
    second.body.block.args[0].replace_all_uses_with(index)
    for op in [*second.body.block.ops][:-1]:
        op.detach()
        Rewriter.insert_op(op, InsertPoint.before(end))
    Rewriter.erase_op(second)
