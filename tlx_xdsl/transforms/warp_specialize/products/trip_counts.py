"""Loops that are known to make a turn: by bounds of integers, and of what their difference is made of."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tlx_xdsl.dialects import tlx, tt, ttg
from tlx_xdsl.dialects.arith import ExtSIOp, TruncIOp
from tlx_xdsl.dialects.base import enclosing

from ...rewriting import constant_integer
from ..accesses.arguments import HOST_VALUE

Sum = dict[SSAValue | None, int]
"""A sum of values, each with a factor; the factor of None is a number."""


def is_known_to_run(loop: scf.ForOp) -> bool:
    """Return whether a loop makes a turn at every launch."""
    return _Bounds(()).has_turns(loop)


def conditions_to_run(loop: scf.ForOp) -> list[str] | None:
    """Return conditions at a launch under which a loop makes a turn; None where there are none.

    They say of arguments of the kernel that they are above 0, as lengths are.
    """
    function = enclosing(loop, tt.FuncOp)
    if function is None:
        return None
    entry = function.body.blocks[0]
    bounds = _Bounds(argument for argument in entry.args if argument.name_hint and "." not in argument.name_hint)
    if not bounds.has_turns(loop):
        return None
    # What the host gives beside the plain kernel's arguments are sizes of its grid, which are never 0.
    held = () if function.arg_attrs is None else function.arg_attrs.data
    of_grid = {argument for argument, each in zip(entry.args, held, strict=False) if HOST_VALUE in each.data}
    return [f"{argument.name_hint} > 0" for argument in bounds.used if argument not in of_grid]


class _Bounds:
    """Lower bounds of integers, where some arguments are above 0."""

    def __init__(self, above_zero: Iterable[BlockArgument]):
        self.above_zero = {argument for argument in above_zero if isinstance(argument.type, IntegerType)}
        self.used: dict[BlockArgument, None] = {}

    def has_turns(self, loop: scf.ForOp) -> bool:
        """Return whether the upper bound of a loop is above the lower one, and the step too is above 0."""
        step = self.at_least(loop.step)
        if step is None or step < 1:
            return False
        length = _sum_of(loop.ub)
        for value, factor in _sum_of(loop.lb).items():
            length[value] = length.get(value, 0) - factor
        least = length.pop(None, 0)
        for value, factor in length.items():
            bound = self.at_least(value) if value is not None and factor else 0
            if factor < 0 or bound is None:
                return False
            least += factor * bound
        return least > 0

    def at_least(self, value: SSAValue) -> int | None:
        """Return a number that an integer is never below, or None where none is known."""
        known = constant_integer(value)
        if known is not None:
            return known
        owner = value.owner
        if isinstance(owner, Block):
            assert isinstance(value, BlockArgument)
            return self._argument(value, owner)
        match owner:
            case tt.GetProgramIdOp() | tlx.ReplicaIdOp():
                return 0
            case tt.GetNumProgramsOp():
                return 1
            case TruncIOp() | ExtSIOp():
                return self.at_least(owner.operands[0])
            case (
                arith.AddiOp()
                | arith.MuliOp()
                | arith.DivSIOp()
                | arith.RemSIOp()
                | arith.MinSIOp()
                | arith.MaxSIOp()
                | arith.SubiOp()
            ):
                return self._combined(owner)
            case _:
                return None

    def _combined(self, op: Operation) -> int | None:
        a, b = (self.at_least(operand) for operand in op.operands)
        if isinstance(op, arith.MaxSIOp) and (a is not None or b is not None):
            return max(each for each in (a, b) if each is not None)
        if a is None or b is None:
            return None
        match op:
            case arith.AddiOp():
                return a + b
            case arith.SubiOp():
                return None if (known := constant_integer(op.rhs)) is None else a - known
            case arith.MinSIOp():
                return min(a, b)
            case arith.MuliOp():
                return a * b if a >= 0 and b >= 0 else None
            case arith.DivSIOp():
                # A divisor that is not below 0 is above it.
                divisor = constant_integer(op.operands[1])
                return (a // divisor if divisor else 0) if a >= 0 and b >= 0 else None
            case _:
                return 0 if a >= 0 and b >= 0 else None

    def _argument(self, value: BlockArgument, block: Block) -> int | None:
        if value in self.above_zero:
            self.used[value] = None
            return 1
        match parent := block.parent_op():
            case scf.ForOp() if value.index == 0:
                step = self.at_least(parent.step)
                return self.at_least(parent.lb) if step is not None and step > 0 else None
            case ttg.WarpSpecializePartitionsOp():
                return self.at_least(parent.explicit_captures[value.index])
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
