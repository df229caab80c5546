"""`tlx-ws-overlap-products`: work that does not need a product runs while the product does.

Where the products of a loop depend on each other, as in a gated delta rule, each is waited for before the next one is
issued, and only work between a product's issue and its wait costs nothing. So what the product does not need comes
after its issue, such as stores of results and loads for the next turn; and what does not need the product comes before
its wait.

Before:
```mlir
tt.descriptor_store %h[%i, %j], %state : ...
%d = ttng.warp_group_dot %w, %operand, %zero {isAsync = true} : ...
%r:1 = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : ...
%v = arith.subf %u, %r : ...
%decayed = arith.mulf %state, %decay : ...
```
After:
```mlir
%d = ttng.warp_group_dot %w, %operand, %zero {isAsync = true} : ...
tt.descriptor_store %h[%i, %j], %state : ...
%decayed = arith.mulf %state, %decay : ...
%r:1 = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : ...
%v = arith.subf %u, %r : ...
```
Loops that carry products in flight, or issue one before the wait for another one, stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator, is_side_effect_free

from tlx_xdsl.dialects import tt, ttg, ttng
from tlx_xdsl.dialects.base import Kind, Space, accesses_of, effects_of, global_access, is_set
from tlx_xdsl.dialects.dimensions import shape_of_value

from ...rewriting import Pass, ops_of
from ..origins import origins_of
from ..split_masks import REARRANGED
from .dot_operands import root_of

_Product: TypeAlias = tuple[ttng.WarpGroupDotOp, ttng.WarpGroupDotWaitOp]
"""A product with the wait for it."""


class OverlapProductsPass(Pass):
    """Move work of tasks beside their products."""

    name = "tlx-ws-overlap-products"

    def run(self, op: ModuleOp) -> None:
        """Handle the body of each loop of each partition by itself."""
        for tasks in ops_of(op, ttg.WarpSpecializeOp):
            for region in tasks.partitions.partition_regions:
                for loop in [inner for inner in region.walk() if isinstance(inner, scf.ForOp)]:
                    _overlap(loop.body.block)


def _overlap(block: Block) -> None:
    products = _one_after_the_other(block)
    start: Operation | None = None
    for number, (product, wait) in enumerate(products):
        _move_after(_between(block, start, product), product)
        end = products[number + 1][0] if number + 1 < len(products) else block.last_op
        _move_before(_between(block, wait, end), wait)
        start = wait


def _one_after_the_other(block: Block) -> Sequence[_Product]:
    """Return the products of a block with their waits; none where two of them are in flight together."""
    found: list[_Product] = []
    flying: ttng.WarpGroupDotOp | None = None
    for op in block.ops:
        if isinstance(op, ttng.WarpGroupDotOp):
            if flying is not None or not op.is_async.value.data:
                return ()
            flying = op
        elif isinstance(op, ttng.WarpGroupDotWaitOp):
            if flying is None or op.pendings.value.data or flying.d not in op.operands:
                return ()
            found.append((flying, op))
            flying = None
        elif any(isinstance(inner, ttng.WarpGroupDotOp | ttng.WarpGroupDotWaitOp) for inner in op.walk()):
            return ()
    return found if flying is None else ()


def _between(block: Block, start: Operation | None, end: Operation | None) -> Sequence[Operation]:
    """Return the operations of a block after one, or from its start, and before another one."""
    found: list[Operation] = []
    op = block.first_op if start is None else start.next_op
    while op is not end and op is not None:
        found.append(op)
        op = op.next_op
    return found


def _move_after(ops: Sequence[Operation], product: Operation) -> None:
    """Move those of `ops` after a product that neither it needs nor what stays before it."""
    later = set(product.walk())
    for op in reversed(ops):
        is_needed = any(use.operation in later for result in op.results for use in result.uses)
        if not is_needed and _may_follow(op, later):
            op.detach()
            Rewriter.insert_op(op, InsertPoint.after(product))
        else:
            later.update(op.walk())


def _may_follow(op: Operation, later: Iterable[Operation]) -> bool:
    """Say whether an operation is work that may be done after `later`, whose results it does not give."""
    match op:
        case tt.StoreOp() | tt.DescriptorStoreOp():
            return not any(_is_ordered_with(op, each) for each in later)
        case tt.LoadOp() if all(use.operation.has_trait(IsTerminator) for use in op.result.uses):
            # It is for the next turn.
            return not is_set(op, "isVolatile") and not any(_is_ordered_with(op, each) for each in later)
        case ttg.LocalLoadOp():
            # The buffer is this task's until it arrives at a barrier, and unchanged until it writes itself.
            return not any(isinstance(each, ttng.ArriveBarrierOp) or _writes(each, op.src) for each in later)
        case _:
            return _is_work(op)


def _is_work(op: Operation) -> bool:
    """Say whether an operation only computes a block, and does more than to repeat or rearrange one."""
    return (
        is_side_effect_free(op)
        and not op.regions
        and not isinstance(op, (tt.SplatOp, *REARRANGED))
        and any(map(shape_of_value, op.results))
    )


def _is_ordered_with(op: Operation, later: Operation) -> bool:
    """Say whether an access to global memory must stay before an operation: others may see the order, or it itself."""
    if isinstance(later, ttng.WaitBarrierOp | ttng.ArriveBarrierOp | ttng.FenceAsyncSharedOp | ttng.WarpGroupDotOp):
        return False
    accesses, access = accesses_of(later), global_access(op)
    if accesses is None or effects_of(later).sync or access is None:
        return True
    mine = origins_of(access.value)
    others = [
        origins_of(each.value)
        for each in accesses
        if each.space is Space.GLOBAL and not each.kind is access.kind is Kind.READ
    ]
    return bool(others) and (mine is None or any(each is None or each & mine for each in others))


def _writes(op: Operation, buffer: SSAValue) -> bool:
    """Say whether an operation may write to the array of a buffer."""
    accesses = accesses_of(op)
    return accesses is None or any(
        each.kind is not Kind.READ and isinstance(each.value.type, ttg.MemDescType)
        and root_of(each.value) is root_of(buffer)
        for each in accesses
    )  # fmt: skip


def _move_before(ops: Sequence[Operation], wait: Operation) -> None:
    """Move blocks that need no result of a wait before it, with what they are computed from."""
    ready: list[Operation] = []
    late: set[Operation] = {wait}
    for op in ops:
        if is_side_effect_free(op) and not op.regions and not any(value.owner in late for value in op.operands):
            ready.append(op)
        else:
            late.add(op)
    needed: set[Operation] = set()
    for op in reversed(ready):
        if _is_work(op) or any(use.operation in needed for result in op.results for use in result.uses):
            needed.add(op)
    for op in ready:
        if op in needed:
            op.detach()
            Rewriter.insert_op(op, InsertPoint.before(wait))
            for result in op.results:
                # In source, what has a name is computed where that is given.
                if result.name_hint is None and any(use.operation not in needed for use in result.uses):
                    result.name_hint = "meanwhile"
