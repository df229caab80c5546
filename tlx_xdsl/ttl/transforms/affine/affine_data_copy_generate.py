"""`affine-data-copy-generate`: read a block once for all iterations of a loop that read it again and again.

Before, in the reader and in the compute thread:
```mlir
affine.for %j = 0 to 8 {                                affine.for %j = 0 to 8 {
  %v = ttl.cb_reserve %a : ...                            %v = ttl.cb_wait %a : ...
  %xf = ttl.copy %from_a[%i, %c0], %v : ...               %w = ttl.cb_wait %b : ...
  ttl.wait %xf                                            // ... computes with %v and %w
  ttl.cb_push %a                                          ttl.cb_pop %a
  %w = ttl.cb_reserve %b : ...                            ttl.cb_pop %b
  %yf = ttl.copy %from_b[%i, %j], %w : ...              }
  ttl.wait %yf
  ttl.cb_push %b
}
```
After:
```mlir
%v = ttl.cb_reserve %a : ...                            %v = ttl.cb_wait %a : ...
%xf = ttl.copy %from_a[%i, %c0], %v : ...               affine.for %j = 0 to 8 {
ttl.wait %xf                                              %w = ttl.cb_wait %b : ...
ttl.cb_push %a                                            // ... computes with %v and %w
affine.for %j = 0 to 8 {                                  ttl.cb_pop %b
  %w = ttl.cb_reserve %b : ...                          }
  %yf = ttl.copy %from_b[%i, %j], %w : ...              ttl.cb_pop %a
  ttl.wait %yf
  ttl.cb_push %b
}
```
In MLIR the pass of this name copies what a loop uses into a faster memory, outside of the loop. A circular buffer is
that memory already, so what is left is to keep a block there while it is reused. Both sides change alike: for each
run of the two loops, one block is pushed, waited for and popped instead of one per iteration.

Done when, for a circular buffer,

- the producer acquires, copies, waits and releases directly in the body of an affine loop, and its indices do not
  follow from the loop's index;
- the consumer acquires and releases directly in the body of an affine loop with as many iterations, a known number of
  at least two, and does not write into the block;
- no transfer of the kernel writes what is read (`analysis.ttl.transfers`): it is the same in all iterations;
- the loop of the producer has no steps but of buffers that the consumer's loop takes a block of in each iteration, in
  lockstep (`analysis.ttl.buffer_sides`), and these are all that comes from this thread in that loop; the producer's
  thread waits for nothing but room for what this one consumer takes. Then what the consumer's loop needs was pushed
  before or is pushed in the producer's loop, and the producer's thread never waits for what the consumer has not done
  yet when it waits for the block;
- there are no pipes and no semaphores in both threads.

Anything else stays as it is. Copies of single tiles are not merged into copies of larger blocks: that would change the
blocks that the consumer sees. A loop of which nothing is left but index arithmetic is erased.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import affine
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator

from tlx_xdsl.transforms.rewriting import Pass, insert_before, ops_of
from tlx_xdsl.ttl.analysis.buffer_sides import BufferSides, Side
from tlx_xdsl.ttl.analysis.transfers import dependences_of
from tlx_xdsl.ttl.dialects.ttl import (
    CBOp,
    CopyOp,
    Direction,
    DMABarrierOp,
    KernelOp,
    PipeType,
    SemaphoreOp,
    WritingOp,
    acquisition_of,
)

from ..transfer_groups import Group, is_index_arithmetic, runs_of
from .strip_mining import trip_count


class AffineDataCopyGeneratePass(Pass):
    """Move copies of the same block out of the loops of every kernel."""

    name = "affine-data-copy-generate"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for kernel in ops_of(op, KernelOp):
            while _hoist_one(kernel):
                pass


@dataclass(frozen=True)
class _Reuse:
    """A block that is produced and consumed again in each iteration of two loops."""

    group: Group
    indices: list[Operation]
    """The index arithmetic of the copies, in order."""
    producer: affine.ForOp
    consumer: affine.ForOp
    other: Side


def _hoist_one(kernel: KernelOp) -> bool:
    """Move one block out of its loops, if there is one."""
    sides = BufferSides(kernel)
    written: set[CopyOp] | None = None
    for thread in kernel.threads:
        for loop in ops_of(thread, affine.ForOp):
            for run in runs_of(loop.body.block):
                for group in run.groups.values():
                    reuse = _reuse(group, loop, sides)
                    if reuse is None:
                        continue
                    if written is None:
                        written = _depending(kernel)
                    if written.isdisjoint(group.copies):
                        _hoist(reuse)
                        return True
    return False


def _depending(kernel: KernelOp) -> set[CopyOp]:
    """The transfers of tensors that read what another one writes, or write what another one touches."""
    found = [each for each in dependences_of(kernel) if isinstance(each.memory, SSAValue)]
    return {copy for each in found for copy in (each.source, each.sink)}


def _reuse(group: Group, loop: affine.ForOp, sides: BufferSides) -> _Reuse | None:
    cb = group.acquire.cb
    own, other = sides.side(cb, produces=True), sides.side(cb, produces=False)
    if own is None or other is None or own.acquire is not group.acquire:
        return None
    consumer = other.block.parent_op()
    if not isinstance(consumer, affine.ForOp):
        return None
    count = trip_count(loop)
    if count is None or count < 2 or count != trip_count(consumer):
        return None
    indices = _invariant_arithmetic(group, loop)
    if indices is None or _is_written(other) or not _cannot_deadlock(loop, own, other, sides):
        return None
    return _Reuse(group, indices, loop, consumer, other)


def _invariant_arithmetic(group: Group, loop: affine.ForOp) -> list[Operation] | None:
    """Return what the indices of a group's copies are computed of in the loop; None if that is the loop's index."""
    if not group.copies or any(copy.direction is not Direction.READ for copy in group.copies):
        return None
    needed: set[Operation] = set()
    pending = [index for copy in group.copies for index in copy.indices]
    while pending:
        value = pending.pop()
        if value.owner is loop.body.block:
            return None
        owner = value.owner
        if isinstance(owner, Block) or owner.parent is not loop.body.block or owner in needed:
            continue
        if not is_index_arithmetic(owner):
            return None
        needed.add(owner)
        pending += owner.operands
    return [op for op in loop.body.block.ops if op in needed]


def _is_written(side: Side) -> bool:
    """Return whether the consumer stores into a block that it waited for."""
    return any(acquisition_of(store.place) is side.acquire for store in ops_of(side.thread, WritingOp))


def _cannot_deadlock(loop: affine.ForOp, own: Side, other: Side, sides: BufferSides) -> bool:
    if any(_synchronises_otherwise(op) for side in (own, other) for op in side.thread.walk()):
        return False
    inner = [op for op in loop.walk() if isinstance(op, CBOp)]
    if any(op.parent is not loop.body.block for op in inner) or sides.partner(inner) is not other.block:
        return False
    consumer_thread = {other.thread}
    of_own_thread: set[SSAValue] = set()
    for (cb, produces), found in sides.steps.items():
        if not any(thread is own.thread for thread, _ in found):
            continue
        if not produces or sides.threads_of(cb, produces=False) != consumer_thread:
            return False
        of_own_thread.add(cb)
    consumer = other.block.parent_op()
    assert consumer is not None
    taken = {op.cb for op in consumer.walk() if isinstance(op, CBOp)} & of_own_thread
    return taken == {op.cb for op in inner}


def _synchronises_otherwise(op: Operation) -> bool:
    return isinstance(op, SemaphoreOp) or (isinstance(op, CopyOp) and isinstance(op.far.type, PipeType))


def _hoist(reuse: _Reuse) -> None:
    acquire, release = reuse.group.steps
    for op in (*reuse.indices, acquire, *reuse.group.copies, *reuse.group.waits, release):
        _move(op, InsertPoint.before(reuse.producer))
    if any(not copy.handle.uses.get_length() for copy in reuse.group.copies):
        # A barrier in the loop, after other copies, too, waited for this one.
        insert_before(release, DMABarrierOp(Direction.READ))
    _move(reuse.other.acquire, InsertPoint.before(reuse.consumer))
    _move(reuse.other.release, InsertPoint.after(reuse.consumer))
    for loop in (reuse.producer, reuse.consumer):
        if not loop.results and all(map(_does_nothing, loop.body.block.ops)):
            Rewriter.erase_op(loop)


def _does_nothing(op: Operation) -> bool:
    """Return whether an operation without users in the rest of the program may be erased."""
    return is_index_arithmetic(op) or isinstance(op, DMABarrierOp) or op.has_trait(IsTerminator)


def _move(op: Operation, place: InsertPoint) -> None:
    op.detach()
    Rewriter.insert_op(op, place)
