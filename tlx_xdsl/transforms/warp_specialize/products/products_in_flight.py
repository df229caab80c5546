"""Waits for asynchronous products: as late as the rule of `analysis/dots_in_flight.py` allows.

A result stays in flight while nothing but other products adds to it. A loop may carry it so: then one turn's products
are in flight while the next turn's are issued, and a wait after the last product of the body lets no more than that
be. All other results are waited for where something first uses them; the products that were issued in between may
stay in flight, for they complete in order.

Registers that a product reads must stay as they are until its end, and so must a buffer that the consumer itself
fills. So such products end in the turn of the loop in which they begin.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl.dialects.ttg import LocalStoreOp, MemDescType
from tlx_xdsl.dialects.ttng import WarpGroupDotOp, WarpGroupDotWaitOp

from .dot_operands import root_of


def wait_for_products(region: Region, held_over: set[WarpGroupDotOp]) -> None:
    """Insert the waits for all products of a region; their results are used as if they were complete.

    Those that read a slot which is held over to the next turn end in their own.
    """
    products = [op for op in region.walk() if _is_issued(op)]
    carried = [op for op in products if isinstance(op, WarpGroupDotOp) and _is_carried(op, held_over)]
    early = [op for op in products if isinstance(op, WarpGroupDotOp) and op not in carried and not _is_added_to(op.d)]
    for product in early:
        wait_before_use(product.d)
    for product in carried:
        _wait_across_turns(product)


def products_between(first: Operation | None, last: Operation | None, block: Block) -> int:
    """Count the products of a block after `first`, or from its start, and before `last`, or to its end."""
    op = block.first_op if first is None else first.next_op
    count = 0
    while op is not last and op is not None:
        count += _is_issued(op)
        op = op.next_op
    return count


def in_block(op: Operation, block: Block) -> Operation:
    """Return the operation of a block that holds `op`, or `op` itself."""
    while op.parent is not block:
        parent = op.parent_op()
        assert parent is not None, "the operation lies in the block"
        op = parent
    return op


def _is_issued(op: Operation) -> bool:
    return isinstance(op, WarpGroupDotOp) and bool(op.is_async.value.data)


def _only_use(value: SSAValue) -> tuple[Operation, int] | None:
    uses = list(value.uses)
    return (uses[0].operation, uses[0].index) if len(uses) == 1 else None


def _is_added_to(value: SSAValue) -> bool:
    """Return whether nothing but one product of the same block uses a value, and that adds to it."""
    use = _only_use(value)
    if use is None or not _is_issued(use[0]):
        return False
    op, index = use
    assert isinstance(op, WarpGroupDotOp)
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    return op.operands[index] is op.c and op.parent is block and op.a is not value


def _is_carried(product: WarpGroupDotOp, held_over: set[WarpGroupDotOp]) -> bool:
    """Return whether a loop may carry the result in flight to the next turn."""
    use = _only_use(product.d)
    block = product.parent
    loop = product.parent_op()
    if use is None or block is None or not isinstance(use[0], scf.YieldOp) or not isinstance(loop, scf.ForOp):
        return False
    argument = block.args[1 + use[1]]
    return _is_added_to(argument) and _reads_only_rings(product, held_over)


def _reads_only_rings(product: WarpGroupDotOp, held_over: set[WarpGroupDotOp]) -> bool:
    """Return whether all products that add up to this one read nothing but slots that they may hold."""
    op: WarpGroupDotOp | None = product
    while op is not None:
        if not isinstance(op.a.type, MemDescType) or _is_filled_here(op.a) or _is_filled_here(op.b):
            return False
        if op in held_over:
            return False
        before = op.c
        op = before.op if isinstance(before, OpResult) and isinstance(before.op, WarpGroupDotOp) else None
    return True


def _is_filled_here(buffer: SSAValue) -> bool:
    pending = [root_of(buffer)]
    for value in pending:
        for use in value.uses:
            if isinstance(use.operation, LocalStoreOp):
                return True
            pending += [result for result in use.operation.results if isinstance(result.type, MemDescType)]
    return False


def wait_before_use(value: OpResult) -> None:
    """Insert the wait for a result before its first use in its block."""
    product, block = value.op, value.op.parent
    assert block is not None
    users = {in_block(use.operation, block) for use in value.uses}
    place = next((op for op in _after(product) if op in users), block.last_op)
    assert place is not None, "a block ends in an operation"
    _wait(value, place, products_between(product, place, block))


def _after(op: Operation) -> Sequence[Operation]:
    found: list[Operation] = []
    while (following := op.next_op) is not None:
        found.append(following)
        op = following
    return found


def _wait(value: SSAValue, place: Operation, pendings: int) -> WarpGroupDotWaitOp:
    """Insert a wait for a value before an operation, and let all users take its result."""
    wait = WarpGroupDotWaitOp(
        operands=[[value]], properties={"pendings": IntegerAttr(pendings, i32)}, result_types=[[value.type]]
    )
    owner = value.owner
    wait.location = owner.location if isinstance(owner, Operation) else place.location
    Rewriter.insert_op(wait, InsertPoint.before(place))
    wait.outputs[0].name_hint = value.name_hint
    value.replace_uses_with_if(wait.outputs[0], lambda use: use.operation is not wait)
    return wait


def _wait_across_turns(product: WarpGroupDotOp) -> None:
    """Let one turn's products be in flight at the end of the body, and none after the loop."""
    use, block, loop = _only_use(product.d), product.parent, product.parent_op()
    assert use is not None
    assert block is not None
    assert isinstance(loop, scf.ForOp)
    last = [op for op in block.ops if _is_issued(op)][-1]
    place = last.next_op
    while isinstance(place, WarpGroupDotWaitOp):
        place = place.next_op
    assert place is not None, "a block ends in an operation"
    _wait(product.d, place, products_between(None, None, block))
    result = loop.results[use[1]]
    after = loop.next_op
    while isinstance(after, WarpGroupDotWaitOp):
        after = after.next_op
    assert after is not None, "a block ends in an operation"
    if result.uses.get_length():
        _wait(result, after, 0)
