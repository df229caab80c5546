"""Counts of turns: integers that grow by one with each turn of a loop."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tlx_xdsl.dialects.arith import ExtSIOp, TruncIOp

from ...rewriting import constant_integer, insert_before
from .numbers import number


@dataclass(frozen=True)
class Turns:
    """An integer of the body of a loop that is one more in each turn."""

    value: SSAValue
    loop: scf.ForOp

    def after_loop(self, place: Operation) -> SSAValue:
        """Insert what the count would be in the turn after the last one; return it."""
        return _after(self.value, self.loop, place)


def turns_of(value: SSAValue, loop: scf.ForOp) -> Turns | None:
    """Return `value` as a count of turns, or None where it is not known to be one."""
    return Turns(value, loop) if _grows_by_one(value, loop) else None


def is_outside(value: SSAValue, loop: scf.ForOp) -> bool:
    """Return whether a value is defined outside of a loop."""
    owner = value.owner
    block: Block | None = owner if isinstance(owner, Block) else owner.parent
    while block is not None:
        if block is loop.body.block:
            return False
        parent = block.parent_op()
        block = None if parent is None else parent.parent
    return True


def _grows_by_one(value: SSAValue, loop: scf.ForOp) -> bool:
    body = loop.body.block
    if isinstance(value, BlockArgument) and value.block is body:
        if value.index == 0:
            return constant_integer(loop.step) == 1
        end = body.last_op
        assert end is not None
        following = end.operands[value.index - 1].owner
        return isinstance(following, arith.AddiOp) and (
            (following.lhs is value and constant_integer(following.rhs) == 1)
            or (following.rhs is value and constant_integer(following.lhs) == 1)
        )
    match value.owner:
        case arith.AddiOp() as op:
            return (_grows_by_one(op.lhs, loop) and is_outside(op.rhs, loop)) or (
                is_outside(op.lhs, loop) and _grows_by_one(op.rhs, loop)
            )
        case arith.SubiOp() as op:
            return _grows_by_one(op.lhs, loop) and is_outside(op.rhs, loop)
        case arith.DivSIOp() as op:
            return _counts_steps(op.lhs, op.rhs, loop)
        case TruncIOp() | ExtSIOp() as op:
            return _grows_by_one(op.operands[0], loop)
        case _:
            return False


def _counts_steps(value: SSAValue, step: SSAValue, loop: scf.ForOp) -> bool:
    """Return whether `value` is the induction variable, from 0 on, and `step` the loop's."""
    if step is not loop.step and constant_integer(step) in (None, 0):
        return False
    if constant_integer(step) != constant_integer(loop.step):
        return False
    induction = loop.body.block.args[0]
    if value is induction:
        return constant_integer(loop.lb) == 0
    op = value.owner
    return isinstance(op, arith.SubiOp) and op.lhs is induction and op.rhs is loop.lb


def _after(value: SSAValue, loop: scf.ForOp, place: Operation) -> SSAValue:
    """Insert the operations that compute a count in the turn after the last one; return the result."""
    if is_outside(value, loop):
        return value
    if isinstance(value, BlockArgument):
        return loop.results[value.index - 1] if value.index else _not_below(loop.ub, loop.lb, place)
    op = value.owner
    assert isinstance(op, Operation), "a count is computed of arguments"
    if isinstance(op, arith.DivSIOp):
        return _turns(loop, op.rhs, place)
    copy = op.clone({operand: _after(operand, loop, place) for operand in op.operands})
    return insert_before(place, copy).results[0]


def _not_below(value: SSAValue, least: SSAValue, place: Operation) -> SSAValue:
    """Return the larger number; bounds from 0 on, as the length of an array is, are not compared."""
    return value if constant_integer(least) == 0 else insert_before(place, arith.MaxSIOp(value, least)).result


def _turns(loop: scf.ForOp, step: SSAValue, place: Operation) -> SSAValue:
    """Insert the number of turns of a loop."""
    known = constant_integer(step)
    type_ = loop.lb.type
    distance = loop.ub
    if constant_integer(loop.lb) != 0:
        distance = insert_before(place, arith.SubiOp(loop.ub, loop.lb)).result
    # Not negative, so that divisions by the slots of a ring are whole.
    distance = insert_before(place, arith.MaxSIOp(distance, number(place, 0, type_))).result
    if known is None:
        less = insert_before(place, arith.SubiOp(loop.step, number(place, 1, type_))).result
    else:
        less = number(place, known - 1, type_)
    rounded = insert_before(place, arith.AddiOp(distance, less)).result
    divisor = loop.step if known is None else number(place, known, type_)
    return insert_before(place, arith.DivSIOp(rounded, divisor)).result
