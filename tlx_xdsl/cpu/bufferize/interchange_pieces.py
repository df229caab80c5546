"""Interchange of a loop with the loop over pieces inside of it, so that each piece is found once.

Before, where `%length` does not depend on `%c`:
```mlir
scf.for %c = %zero to %n step %one {
  %offset = arith.muli %c, %w : index
  scf.while (%p = %low) : (index) -> index { ... cmpi slt, %p, %high ... } do {
  ^bb0(%p: index):
    %row = arith.divsi %p, %w : index
    ...                                            // adds the elements at %offset, of the length %length, to a sum
    scf.yield %next : index
  }
}
```
After:
```mlir
%some = arith.cmpi slt, %zero, %n : index
%end = arith.select %some, %high, %low : index     // no turns, no pieces
scf.while (%p = %low) : (index) -> index { ... cmpi slt, %p, %end ... } do {
^bb0(%p: index):
  %row = arith.divsi %p, %w : index
  scf.for %c = %zero to %n step %one {
    %offset = arith.muli %c, %w : index
    ...
  }
  scf.yield %next : index
}
```
All that is written is parts of the program's own memory of which each piece reads and writes its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import cf, scf
from xdsl.dialects.builtin import i1
from xdsl.ir import Block, Operation, Region, SSAValue

from tlx_xdsl.dialects import arith, memref
from tlx_xdsl.dialects.scf import WhileOp
from tlx_xdsl.transforms.rewriting import constant, insert_before

from ..codegen.forwarding import HARMLESS, PURE, buffer_of

_AROUND = HARMLESS | {"scf.if", "scf.yield"}
"""Operations that may stand beside the loop over pieces, and are then done for each of them."""


def interchange(walk: WhileOp, rest: Sequence[Operation], written: Iterable[SSAValue]) -> None:
    """Move a loop over pieces out of the loops around it, as far as that changes nothing.

    `rest` are operations beside it that write other parts of the buffers that are `written` than the pieces.
    """
    buffers = {buffer_of(value) for value in written}
    while isinstance(loop := walk.parent_op(), scf.ForOp) and _is_possible(loop, walk, rest, buffers):
        walk, rest = _interchanged(loop, walk, rest)


def _is_possible(loop: scf.ForOp, walk: WhileOp, rest: Sequence[Operation], written: set[SSAValue | None]) -> bool:
    """Return whether the pieces are the same in all turns, and nothing else reads what they write."""
    beside = [op for op in loop.body.block.ops if op is not walk and op not in rest]
    if any(memref.is_memref(value.type) for value in loop.iter_args) or any(result.uses for result in walk.results):
        return False
    for op in (inner for each in beside for inner in each.walk()):
        if op.name not in _AROUND or any(
            buffer_of(value) in written for value in op.operands if memref.is_memref(value.type)
        ):
            return False
    variant = _variant(loop, walk)
    bounds = (walk.arguments[0], _end(walk))
    step = walk.after_region.block.last_op
    assert step is not None
    checks = (op.arg for op in beside if isinstance(op, cf.AssertOp))
    return not variant.intersection((*bounds, *step.operands, *checks))


def _variant(loop: scf.ForOp, walk: WhileOp) -> set[SSAValue]:
    """The values of a loop, and of the pieces in it, that may differ from turn to turn."""
    found: set[SSAValue] = set(loop.body.block.args)
    for block in (loop.body.block, walk.after_region.block):
        for op in block.ops:
            if not _is_invariant(op, found):
                found.update(op.results)
    return found


def _is_invariant(op: Operation, variant: set[SSAValue]) -> bool:
    return op.name in PURE and not variant.intersection(op.operands)


def _interchanged(loop: scf.ForOp, walk: WhileOp, rest: Sequence[Operation]) -> tuple[WhileOp, Sequence[Operation]]:
    """Move the loop over pieces out of a loop; gives it, and what is left beside it."""
    body, old = loop.body.block, walk.after_region.block
    variant = _variant(loop, walk)
    known: dict[SSAValue, SSAValue] = {}
    beside = [op for op in body.ops if op is not walk and op not in rest and op is not body.last_op]
    some = insert_before(loop, arith.CmpiOp("slt", loop.lb, loop.ub)).result
    for op in beside:
        if isinstance(op, cf.AssertOp):
            always = insert_before(loop, constant(1, i1)).results[0]
            holds = insert_before(loop, arith.SelectOp(some, known.get(op.arg, op.arg), always)).results[0]
            insert_before(loop, cf.AssertOp(holds, op.msg), located_at=op)
        elif _is_invariant(op, variant):
            insert_before(loop, op.clone(known), located_at=op)
    low, high = (known.get(each, each) for each in (walk.arguments[0], _end(walk)))
    end = insert_before(loop, arith.SelectOp(some, high, low)).results[0]

    position = Block(arg_types=[old.args[0].type])
    known[old.args[0]] = position.args[0]
    inner = Block(arg_types=[argument.type for argument in body.args])
    known |= dict(zip(body.args, inner.args, strict=True))
    for op in beside:
        if not _is_invariant(op, variant) and not isinstance(op, cf.AssertOp):
            inner.add_op(op.clone(known))
    for op in old.ops:
        if op is not old.last_op:
            (position if _is_invariant(op, variant) else inner).add_op(op.clone(known))
    assert body.last_op is not None and old.last_op is not None
    inner.add_op(body.last_op.clone(known))
    position.add_op(scf.ForOp(loop.lb, loop.ub, loop.step, loop.iter_args, Region(inner)))
    position.add_op(old.last_op.clone(known))
    before = walk.before_region.clone()
    test = before.block.first_op
    assert test is not None
    test.operands[1] = end
    made = insert_before(loop, WhileOp([low], [low.type], before, Region(position)))
    for op in position.ops:
        if isinstance(op, scf.ForOp) and op.body.block is inner:
            op.location = loop.location
    walk.detach()
    walk.erase()
    if rest or any(result.uses for result in loop.results):
        return made, [loop]
    loop.detach()
    loop.erase()
    return made, []


def _end(walk: WhileOp) -> SSAValue:
    """The position after the last piece."""
    test = walk.before_region.block.first_op
    assert isinstance(test, arith.CmpiOp)
    return test.rhs
