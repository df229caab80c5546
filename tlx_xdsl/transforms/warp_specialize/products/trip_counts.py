"""Loops that are known to make a turn: by bounds of integers, and of what their difference is made of."""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tlx_xdsl.dialects import tlx, tt, ttg

from ...rewriting import constant_integer

Sum = dict[SSAValue | None, int]
"""A sum of values, each with a factor; the factor of None is a number."""


def is_known_to_run(loop: scf.ForOp) -> bool:
    """Return whether a loop makes a turn at every launch."""
    length = _sum_of(loop.ub)
    for value, factor in _sum_of(loop.lb).items():
        length[value] = length.get(value, 0) - factor
    least = length.pop(None, 0)
    for value, factor in length.items():
        bound = at_least(value) if value is not None else None
        if factor < 0 or (factor and bound is None):
            return False
        least += factor * (bound or 0)
    return least > 0


def at_least(value: SSAValue) -> int | None:
    """Return a number that an integer is never below, or None where none is known."""
    known = constant_integer(value)
    if known is not None:
        return known
    owner = value.owner
    if isinstance(owner, Block):
        assert isinstance(value, BlockArgument)
        return _argument_at_least(value, owner)
    match owner:
        case tt.GetProgramIdOp() | tlx.ReplicaIdOp():
            return 0
        case tt.GetNumProgramsOp():
            return 1
        case arith.AddiOp() | arith.MuliOp() | arith.DivSIOp() | arith.RemSIOp() | arith.MinSIOp() | arith.MaxSIOp():
            return _combined(owner)
        case _:
            return None


def _combined(op: Operation) -> int | None:
    a, b = (at_least(operand) for operand in op.operands)
    if isinstance(op, arith.MaxSIOp) and (a is not None or b is not None):
        return max(each for each in (a, b) if each is not None)
    if a is None or b is None:
        return None
    match op:
        case arith.AddiOp():
            return a + b
        case arith.MinSIOp():
            return min(a, b)
        case arith.MuliOp():
            return a * b if a >= 0 and b >= 0 else None
        case arith.DivSIOp():
            divisor = constant_integer(op.operands[1])
            return (a // divisor if divisor else 0) if a >= 0 and b > 0 else None
        case _:
            return 0 if a >= 0 and b >= 0 else None


def _argument_at_least(value: BlockArgument, block: Block) -> int | None:
    match parent := block.parent_op():
        case scf.ForOp() if value.index == 0:
            step = at_least(parent.step)
            return at_least(parent.lb) if step is not None and step > 0 else None
        case ttg.WarpSpecializePartitionsOp():
            return at_least(parent.explicit_captures[value.index])
        case _:
            return None


def _sum_of(value: SSAValue, factor: int = 1) -> Sum:
    """Return the sum that a value is, down to what is no sum."""
    known = constant_integer(value)
    if known is not None:
        return {None: known * factor}
    op = value.owner
    match op:
        case arith.AddiOp():
            return _added(_sum_of(op.lhs, factor), _sum_of(op.rhs, factor))
        case arith.SubiOp():
            return _added(_sum_of(op.lhs, factor), _sum_of(op.rhs, -factor))
        case arith.MuliOp():
            for one, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
                known = constant_integer(one)
                if known is not None:
                    return _sum_of(other, factor * known)
        case _:
            pass
    return {value: factor}


def _added(a: Sum, b: Sum) -> Sum:
    return {value: a.get(value, 0) + b.get(value, 0) for value in (*a, *(each for each in b if each not in a))}
