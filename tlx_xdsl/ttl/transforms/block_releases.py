"""The pushes and pops that a thread leaves out."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.diagnostics import error_at

from ..analysis.protocol import VIOLATION, name_of, place_of
from ..dialects.ttl import AcquireOp, BlockOp, CBOp, CBPopOp, CBPushOp, KernelOp, ReleaseOp


def complete_releases(kernel: KernelOp) -> dict[ReleaseOp, AcquireOp]:
    """Give every block back that a thread acquires, after its last use; the steps that were added, for which blocks.

    A push or pop that a thread leaves out is put after the last use of the block and of all that is computed from it,
    before the next step that acquires a block of the same buffer: otherwise that one would give the same block.

    Raises CompilationError for a block that is used after it was given back.
    """
    added: dict[ReleaseOp, AcquireOp] = {}
    for thread in kernel.threads:
        for acquire in [op for op in thread.walk() if isinstance(op, AcquireOp)]:
            _complete(acquire, added)
    return added


def _complete(acquire: AcquireOp, added: dict[ReleaseOp, AcquireOp]) -> None:
    """Add the push or pop for one acquisition, if it is missing; `added` has those that were."""
    block = acquire.parent
    assert block is not None
    end = _next_acquisition(acquire)
    own = [op for op in _between(acquire, end) if _releases(op, acquire)]
    uses = _uses(acquire.view, block)
    if own:
        _check_uses(acquire, own, uses)
    elif (end is not None and _releases_first(end, acquire)) or _is_released_outside(acquire):
        return
    else:
        if isinstance(end, AcquireOp):
            _check_order(acquire, end)
        last = _last(acquire, [op for op in _uses(acquire.view, block, transitive=True) if not _ends_block(op)])
        if end is not None and not _comes_before(last, end):
            if any(not _comes_before(op, end) for op in uses):
                raise _used_late(acquire, next(op for op in uses if not _comes_before(op, end)), end)
            last = _before_of(end)
        number = acquire.num_blocks if acquire.blocks is not None else None
        release = (CBPushOp if acquire.PRODUCES else CBPopOp)(acquire.cb, number)
        release.location = acquire.location
        # In the order in which the blocks were acquired.
        while isinstance(last.next_op, ReleaseOp) and last.next_op in added:
            last = last.next_op
        Rewriter.insert_op(release, InsertPoint.after(last))
        added[release] = acquire


def _next_acquisition(acquire: AcquireOp) -> Operation | None:
    """The next operation of the same block of code that acquires of the same buffer, or has such a step in a region."""
    for op in _after(acquire):
        if any(isinstance(each, type(acquire)) and each.cb is acquire.cb for each in op.walk()):
            return op
    return None


def _after(op: Operation) -> Iterator[Operation]:
    following = op.next_op
    while following is not None:
        yield following
        following = following.next_op


def _between(op: Operation, end: Operation | None) -> Iterator[Operation]:
    for each in _after(op):
        if each is end:
            return
        yield each


def _releases(op: Operation, acquire: AcquireOp) -> bool:
    """Return whether `op` gives a block of this side of the buffer back, or has an operation in a region that does."""
    return any(
        isinstance(each, ReleaseOp) and each.cb is acquire.cb and each.PRODUCES is acquire.PRODUCES
        for each in op.walk()
    )


def _releases_first(op: Operation, acquire: AcquireOp) -> bool:
    """Return whether the first step in the regions of `op` gives the block back."""
    return isinstance(
        next(each for each in op.walk() if isinstance(each, CBOp) and _same_side(each, acquire)), ReleaseOp
    )


def _is_released_outside(acquire: AcquireOp) -> bool:
    """Return whether the block is given back after the loop or branch that acquires it."""
    around = acquire.parent_op()
    while around is not None and not isinstance(around, KernelOp):
        for op in _after(around):
            if any(isinstance(each, AcquireOp) and _same_side(each, acquire) for each in op.walk()):
                break
            if _releases(op, acquire):
                return True
        around = around.parent_op()
    return False


def _same_side(op: CBOp, other: CBOp) -> bool:
    return op.cb is other.cb and op.PRODUCES is other.PRODUCES


def _uses(view: SSAValue, block: Block, *, transitive: bool = False) -> list[Operation]:
    """The operations of `block` that use a view, or have a use in a region.

    With `transitive` also the uses of what is made of it: values of tiles, and handles of transfers.
    """
    found: list[Operation] = []
    pending, seen = [view], {view}
    while pending:
        for use in pending.pop().uses:
            op = use.operation
            lifted = block.find_ancestor_op_in_block(op)
            if lifted is not None:
                found.append(lifted)
            # A result is the block itself, or what the operation makes of it; a region passes its values on.
            results = op.results if transitive or isinstance(op, BlockOp) else ()
            parent = op.parent_op()
            if transitive and op.next_op is None and parent is not None and parent.parent is not None:
                results = (*results, *parent.results)
            for result in results:
                if result not in seen:
                    seen.add(result)
                    pending.append(result)
    return found


def _ends_block(op: Operation) -> bool:
    # A value of tiles that a loop carries on needs a buffer of its own, which `ttl-bufferize` makes.
    return op.has_trait(IsTerminator, value_if_unregistered=False)


def _last(first: Operation, ops: list[Operation]) -> Operation:
    """The last of some operations of one block."""
    last = first
    for op in ops:
        if _comes_before(last, op):
            last = op
    return last


def _comes_before(op: Operation, other: Operation) -> bool:
    """Return whether `op` is before `other` in their block."""
    return op is not other and op.is_before_in_block(other)


def _before_of(op: Operation) -> Operation:
    before = op.prev_op
    assert before is not None, "an acquisition of the same buffer comes before"
    return before


def _check_order(acquire: AcquireOp, following: AcquireOp) -> None:
    """Check that the blocks of two acquisitions in a row are not both given back afterwards."""
    releases = _between(following, _next_acquisition(following))
    given_back = sum(op.num_blocks for op in releases if isinstance(op, ReleaseOp) and _releases(op, following))
    if given_back > following.num_blocks:
        verb, back = ("reserve", "push") if acquire.PRODUCES else ("wait", "pop")
        raise error_at(
            following,
            f"{VIOLATION}this {verb} would give the same block of {name_of(acquire.cb)} again: {back} the first one "
            f"before the next {verb}, or {verb} for several blocks at once",
            [f"the first {verb} at {place_of(acquire)}"],
        )


def _check_uses(acquire: AcquireOp, releases: list[Operation], uses: list[Operation]) -> None:
    """Check that the block itself is not used after it was given back."""
    given_back = sum(op.num_blocks for op in releases if isinstance(op, ReleaseOp))
    last = releases[-1]
    if given_back < acquire.num_blocks or not isinstance(last, ReleaseOp):
        return
    before = {*_between(acquire, last), last}
    for op in uses:
        if op not in before:
            verb = "pushed" if acquire.PRODUCES else "popped"
            raise error_at(
                op,
                f"{VIOLATION}a block of {name_of(acquire.cb)} is used after it was {verb}: "
                f"{'push' if acquire.PRODUCES else 'pop'} it after its last use",
                [f"it is {verb} at {place_of(last)}"],
            )


def _used_late(acquire: AcquireOp, use: Operation, end: Operation) -> CompilationError:
    verb = "reserved" if acquire.PRODUCES else "waited for"
    return error_at(
        use,
        f"{VIOLATION}a block of {name_of(acquire.cb)} is used after the next one is {verb}: use it before",
        [f"the next one is {verb} at {place_of(end)}"],
    )
