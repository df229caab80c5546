"""Indices that are never negative, for which division that rounds to zero is division that rounds down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

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
    """Return whether the value is surely 0 or more, as long as no arithmetic wraps."""
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
    """Return whether all results of a map are 0 or more; its operands are dimensions, then symbols."""
    return all(results_of(map_, [*map(is_non_negative, operands)], _is_non_negative, keeps_sign))


def _is_non_negative(number: int) -> bool:
    return number >= 0


def keeps_sign(_: AffineBinaryOpExpr, left: bool, right: bool) -> bool:
    """Return whether an expression is 0 or more: it is if both operands are, since divisors are positive."""
    return left and right


T = TypeVar("T")


def results_of(
    map_: AffineMap,
    operands: Sequence[T],
    constant: Callable[[int], T],
    binary: Callable[[AffineBinaryOpExpr, T, T], T],
) -> list[T]:
    """The results of a map of its operands, dimensions before symbols; `binary` gives those of its operations."""

    def of(expression: AffineExpr) -> T:
        match expression:
            case AffineConstantExpr():
                return constant(expression.value)
            case AffineDimExpr():
                return operands[expression.position]
            case AffineSymExpr():
                return operands[map_.num_dims + expression.position]
            case AffineBinaryOpExpr():
                return binary(expression, of(expression.lhs), of(expression.rhs))
            case _:
                raise ValueError(f"unknown affine expression {expression}")

    return [*map(of, map_.results)]


def _counts_up(argument: BlockArgument) -> bool:
    """Return whether an argument is the index of a loop that begins at 0 or more."""
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
