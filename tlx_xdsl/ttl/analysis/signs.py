"""Indices that are never negative, for which division that rounds to zero is division that rounds down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from xdsl.dialects import affine, arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap, AffineSymExpr

from ..dialects.ttkernel.base import TTKernelOp
from ..dialects.ttl.base import TTLOp

_OF_OPERANDS: dict[type[Operation], Callable[[Iterable[bool]], bool]] = {
    arith.AddiOp: all,
    arith.MuliOp: all,
    arith.DivSIOp: all,
    arith.RemSIOp: all,
    arith.MinSIOp: all,
    arith.IndexCastOp: all,
    arith.MaxSIOp: any,
    arith.AndIOp: any,
}
"""How the signs of the operands make that of the result."""


def is_non_negative(value: SSAValue) -> bool:
    """Whether the value is surely 0 or more, as long as no arithmetic wraps."""
    if isinstance(value, BlockArgument):
        return _counts_up(value)
    op = value.owner
    assert isinstance(op, Operation)
    match op:
        case arith.ConstantOp(value=IntegerAttr(value=number)):
            return number.data >= 0
        case affine.ApplyOp():
            return is_map_non_negative(op.map.data, op.mapOperands)
        case affine.MinOp():
            return is_map_non_negative(op.map.data, op.arguments)
        case _ if type(op) in _OF_OPERANDS:
            return _OF_OPERANDS[type(op)](is_non_negative(operand) for operand in op.operands)
        case _:
            # What reads a coordinate says so of itself.
            return isinstance(op, TTLOp | TTKernelOp) and op.NON_NEGATIVE


def is_map_non_negative(map_: AffineMap, operands: Sequence[SSAValue]) -> bool:
    """Whether all results of a map are 0 or more; its operands are dimensions, then symbols."""
    known = [is_non_negative(operand) for operand in operands]
    dims, symbols = known[: map_.num_dims], known[map_.num_dims :]
    return all(is_expression_non_negative(each, dims, symbols) for each in map_.results)


def is_expression_non_negative(expression: AffineExpr, dims: Sequence[bool], symbols: Sequence[bool]) -> bool:
    """Whether an affine expression is 0 or more, where it is known of the operands whether they are."""
    match expression:
        case AffineConstantExpr():
            return expression.value >= 0
        case AffineDimExpr():
            return dims[expression.position]
        case AffineSymExpr():
            return symbols[expression.position]
        case AffineBinaryOpExpr():
            # Quotients and remainders are by positive numbers, so all kinds keep the sign.
            return all(is_expression_non_negative(side, dims, symbols) for side in (expression.lhs, expression.rhs))
        case _:
            return False


def _counts_up(argument: BlockArgument) -> bool:
    """Whether an argument is the index of a loop that begins at 0 or more."""
    if argument.index != 0:
        return False
    match argument.block.parent_op():
        case scf.ForOp() as loop:
            return is_non_negative(loop.lb) and is_non_negative(loop.step)
        case affine.ForOp() as loop:
            # The largest of several bounds is no less than any of them.
            return is_map_non_negative(loop.lowerBoundMap.data, loop.lowerBoundOperands)
        case _:
            return False
