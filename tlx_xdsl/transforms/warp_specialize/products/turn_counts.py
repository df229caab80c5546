"""Counts of turns: integers that grow by one with each turn of a loop."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ...rewriting import constant_integer, insert_before
from .numbers import number


@dataclass(frozen=True)
class Turns:
    """An integer of the body of a loop that is one more in each turn."""

    value: SSAValue
    loop: scf.ForOp

    @property
    def runs(self) -> bool:
        """True if the loop is known to run at least once."""
        first, last = constant_integer(self.loop.lb), constant_integer(self.loop.ub)
        return first is not None and last is not None and first < last

    def after_loop(self, place: Operation) -> SSAValue:
        """Insert what the count would be in the turn after the last one; return it."""
        return _with_turn(self.value, self.loop, _end(self.loop, place), place)


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
        case arith.DivSIOp() | arith.DivUIOp() as op:
            return _counts_steps(op.lhs, op.rhs, loop)
        case _:
            return False


def _counts_steps(value: SSAValue, step: SSAValue, loop: scf.ForOp) -> bool:
    """Return whether `value` is the induction variable, from 0 on, and `step` the loop's."""
    if step is not loop.step and (
        constant_integer(step) is None or constant_integer(step) != constant_integer(loop.step)
    ):
        return False
    induction = loop.body.block.args[0]
    if value is induction:
        return constant_integer(loop.lb) == 0
    op = value.owner
    return isinstance(op, arith.SubiOp) and op.lhs is induction and op.rhs is loop.lb


def _end(loop: scf.ForOp, place: Operation) -> SSAValue:
    """Insert the value of the induction variable after the last turn."""
    if constant_integer(loop.step) == 1:
        return loop.ub
    length = insert_before(place, arith.SubiOp(loop.ub, loop.lb)).result
    less = insert_before(place, arith.SubiOp(loop.step, number(place, 1, loop.lb.type))).result
    rounded = insert_before(place, arith.AddiOp(length, less)).result
    turns = insert_before(place, arith.DivSIOp(rounded, loop.step)).result
    steps = insert_before(place, arith.MuliOp(turns, loop.step)).result
    return insert_before(place, arith.AddiOp(loop.lb, steps)).result


def _with_turn(value: SSAValue, loop: scf.ForOp, induction: SSAValue, place: Operation) -> SSAValue:
    """Insert the operations that compute `value`, with another induction variable; return the result."""
    if isinstance(value, BlockArgument) and value.block is loop.body.block:
        return induction if value.index == 0 else loop.results[value.index - 1]
    if is_outside(value, loop):
        return value
    op = value.owner
    assert isinstance(op, Operation), "a count is computed of arguments"
    operands = [_with_turn(operand, loop, induction, place) for operand in op.operands]
    copy = op.clone(dict(zip(op.operands, operands, strict=True)))
    insert_before(place, copy)
    return copy.results[0]
