"""Indices that are multiples of a number, whatever the run."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from xdsl.dialects import affine, arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr


def is_multiple_of(value: SSAValue, divisor: int) -> bool:
    """Return whether the index is surely a multiple of `divisor`."""
    return divisor == 1 or _divisor(value) % divisor == 0


def _divisor(value: SSAValue) -> int:
    """A number of which the index is a multiple: 0 of the number 0, 1 where nothing is known."""
    if isinstance(value, BlockArgument):
        loop = value.block.parent_op()
        match loop:
            case scf.ForOp() if value.index == 0:
                return gcd(_divisor(loop.lb), _divisor(loop.step))
            case affine.ForOp() if value.index == 0:
                lower = loop.lowerBoundMap.data.results
                operands = loop.lowerBoundOperands
                return gcd(loop.step.value.data, *(_of_expression(each, operands) for each in lower))
            case _:
                return 1
    match value.owner:
        case arith.ConstantOp(value=IntegerAttr(value=number)):
            return abs(number.data)
        case arith.IndexCastOp() as cast:
            return _divisor(cast.input)
        case arith.AddiOp() | arith.SubiOp() as op:
            return gcd(_divisor(op.lhs), _divisor(op.rhs))
        case arith.MuliOp() as op:
            return _divisor(op.lhs) * _divisor(op.rhs)
        case affine.ApplyOp() as op:
            return _of_expression(op.map.data.results[0], op.mapOperands)
        case _:
            return 1


def _of_expression(expression: AffineExpr, operands: Sequence[SSAValue]) -> int:
    match expression:
        case AffineConstantExpr():
            return abs(expression.value)
        case AffineDimExpr():
            return _divisor(operands[expression.position])
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add):
            return gcd(_of_expression(expression.lhs, operands), _of_expression(expression.rhs, operands))
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mul):
            return _of_expression(expression.lhs, operands) * _of_expression(expression.rhs, operands)
        case _:
            return 1
