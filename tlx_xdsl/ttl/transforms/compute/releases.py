"""Pops of blocks that are still read: an operation that was fused reads its operands later than the text says.

A pop moves after the last reader, as long as no other block of the buffer is waited for until there: then the two
would be the same place.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import affine, scf
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.diagnostics import error_at, source_location
from tlx_xdsl.ttl.analysis.block_values import acquired_by
from tlx_xdsl.ttl.dialects import ttl


def sink_releases(thread: ttl.ComputeThreadOp) -> bool:
    """Move pops after the `ttl.compute` operations that read their blocks; whether there are any.

    Raises CompilationError where that is not possible.
    """
    moved: set[Operation] = set()
    for reader in [op for op in thread.walk() if isinstance(op, ttl.ComputeOp)]:
        for view in dict.fromkeys(reader.inputs):
            wait = acquired_by(view)
            assert wait is not None, "inputs of computes are blocks"
            after, pops = _to_sink(wait, reader)
            while (following := after.next_op) in moved and following is not None:
                after = following
            for pop in reversed(pops):
                pop.detach()
                Rewriter.insert_op(pop, InsertPoint.after(after))
            moved.update(pops)
    return bool(moved)


def release_after_last_use(wait: ttl.CBWaitOp) -> None:
    """Pop a block after the last operation that uses it."""
    block = wait.parent
    assert block is not None
    users = [_in_block(use.operation, block) for use in wait.view.uses]
    last = max(users, key=block.get_operation_index)
    pop = ttl.CBPopOp(wait.cb)
    pop.location = wait.location
    Rewriter.insert_op(pop, InsertPoint.after(last))


def _to_sink(wait: ttl.AcquireOp, reader: ttl.ComputeOp) -> tuple[Operation, list[ttl.ReleaseOp]]:
    """The operation around a reader in the block of a wait, and the pops that are between the two."""
    block = wait.parent
    assert block is not None
    around = _in_block(reader, block)
    pops: list[ttl.ReleaseOp] = []
    for op in _between(wait, around):
        for step in _steps(op, wait.cb):
            if isinstance(step, ttl.AcquireOp) and pops:
                raise _read_after(reader, pops[0])
            if isinstance(step, ttl.ReleaseOp):
                if step is not op:
                    raise _read_after(reader, step)
                pops.append(step)
    _check_inside(around, reader, wait.cb, pops)
    return around, pops


def _check_inside(around: Operation, reader: ttl.ComputeOp, cb: SSAValue, pops: list[ttl.ReleaseOp]) -> None:
    """Check the steps in the operation around a reader, which the reader's block was waited for outside of."""
    inside = [op for op in around.walk() if op is reader or (isinstance(op, ttl.CBOp) and op in [*_steps(op, cb)])]
    before = inside[: inside.index(reader)]
    for step in inside:
        if isinstance(step, ttl.AcquireOp) and (pops or step in before):
            raise _read_after(reader, pops[0] if pops else step)
        if isinstance(step, ttl.ReleaseOp) and (step in before or _in_loop(step, around)):
            raise _read_after(reader, step)


def _read_after(reader: ttl.ComputeOp, step: ttl.CBOp) -> CompilationError:
    place = source_location(step.location)
    where = "" if place is None else f" at {place}"
    verb = "popped" if isinstance(step, ttl.ReleaseOp) else "waited for again"
    return error_at(
        reader,
        f"a block is read after its circular buffer was {verb}{where}",
        ["pop it after the last store of a value that is computed from it, or wait for two blocks at once"],
    )


def _steps(op: Operation, cb: SSAValue) -> Iterator[ttl.CBOp]:
    """The consumer's steps of a buffer in `op`."""
    return (each for each in op.walk() if isinstance(each, ttl.CBOp) and each.cb is cb and not each.PRODUCES)


def _between(first: Operation, last: Operation) -> Iterator[Operation]:
    """The operations of a block after `first`, before `last`."""
    op = first.next_op
    while op is not None and op is not last:
        yield op
        op = op.next_op


def _in_block(op: Operation, block: Block) -> Operation:
    """`op`, or the operation of `block` around it."""
    found = block.find_ancestor_op_in_block(op)
    assert found is not None and not found.has_trait(IsTerminator), "values are used where they dominate"
    return found


def _in_loop(op: Operation, around: Operation) -> bool:
    """Return whether `op` is in a loop that is `around` or in it."""
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, affine.ForOp | scf.ForOp):
            return True
        if parent is around:
            return False
        parent = parent.parent_op()
    return False
