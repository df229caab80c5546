"""Indices as linear expressions over the loops around them and the coordinates of the core, and those loops."""

from __future__ import annotations

from xdsl.dialects import affine, arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap, AffineSymExpr
from xdsl.ir.affine.affine_expr import AffineBinaryOpExpr

from ..dialects.ttl import CoreOp, GetShardIdOp, KernelOp, Thread, TTLOp
from .affine_dependence import Loop
from .linear import Linear
from .signs import is_non_negative

_COLUMN, _ROW = "column of the core", "row of the core"


def parameters_of(kernel: KernelOp) -> list[Loop]:
    """What is the same in all threads of a core: its coordinates."""
    extents = ((_COLUMN, kernel.grid.x), (_ROW, kernel.grid.y))
    return [Loop(name, (Linear(0),), (Linear(extent),)) for name, extent in extents]


# --- expressions ----------------------------------------------------------------------------------------------------


def linear(value: SSAValue) -> Linear | None:
    """An index as an expression over the indices of loops and the coordinates of the core; None if it is none.

    What is computed outside of all loops in another way has one unknown value, so it is a variable, too.
    """
    if isinstance(value, BlockArgument):
        is_index = value.index == 0 and isinstance(value.block.parent_op(), affine.ForOp | scf.ForOp)
        return Linear.of(value) if is_index else None
    assert isinstance(value, OpResult)
    op = value.owner
    match op:
        case arith.ConstantOp(value=IntegerAttr(value=number)):
            return Linear(number.data)
        case affine.ApplyOp():
            return linear_map(op.map.data, list(op.mapOperands))[0]
        case CoreOp() if len(op.coordinates) == 2:
            return Linear.of(_ROW if value.index else _COLUMN)
        case CoreOp() | GetShardIdOp():
            return _core_number(op)
        case arith.IndexCastOp():
            return linear(op.input)
        case _:
            found = _arithmetic(op)
            return Linear.of(value) if found is None and not any(_loops_around(op)) else found


def _core_number(op: Operation) -> Linear | None:
    kernel = op.parent_op()
    while kernel is not None and not isinstance(kernel, KernelOp):
        kernel = kernel.parent_op()
    return None if kernel is None else Linear.of(_COLUMN) + Linear.of(_ROW) * kernel.grid.x


def _arithmetic(op: Operation) -> Linear | None:
    if not isinstance(op, arith.SignlessIntegerBinaryOperation):
        return None
    left, right = linear(op.lhs), linear(op.rhs)
    if left is None or right is None:
        return None
    match op:
        case arith.AddiOp():
            return left + right
        case arith.SubiOp():
            return left - right
        case arith.MuliOp():
            return _product(left, right)
        case arith.FloorDivSIOp() if _is_divisor(right):
            return left.floordiv(right.constant)
        # These two round to zero, which is down where nothing is negative.
        case arith.DivSIOp() if _is_divisor(right) and is_non_negative(op.lhs):
            return left.floordiv(right.constant)
        case arith.RemSIOp() if _is_divisor(right) and is_non_negative(op.lhs):
            return left.mod(right.constant)
        case _:
            return None


def _is_divisor(expression: Linear) -> bool:
    """Whether an expression is a positive number."""
    return not expression.factors and expression.constant > 0


def _product(left: Linear, right: Linear) -> Linear | None:
    if not right.factors:
        return left * right.constant
    return None if left.factors else right * left.constant


def linear_map(map_: AffineMap, operands: list[SSAValue]) -> list[Linear | None]:
    """The results of a map of values, dimensions before symbols."""
    values = [linear(each) for each in operands]
    return [_of_expression(each, values[: map_.num_dims], values[map_.num_dims :]) for each in map_.results]


def _of_expression(expression: AffineExpr, dims: list[Linear | None], symbols: list[Linear | None]) -> Linear | None:
    match expression:
        case AffineConstantExpr():
            return Linear(expression.value)
        case AffineDimExpr():
            return dims[expression.position]
        case AffineSymExpr():
            return symbols[expression.position]
        case AffineBinaryOpExpr():
            left = _of_expression(expression.lhs, dims, symbols)
            right = _of_expression(expression.rhs, dims, symbols)
            return None if left is None or right is None else _binary(expression.kind, left, right)
        case _:
            return None


def _binary(kind: AffineBinaryOpKind, left: Linear, right: Linear) -> Linear | None:
    if kind is AffineBinaryOpKind.Add:
        return left + right
    if kind is AffineBinaryOpKind.Mul:
        return _product(left, right)
    if not _is_divisor(right):
        return None
    match kind:
        case AffineBinaryOpKind.Mod:
            return left.mod(right.constant)
        case AffineBinaryOpKind.FloorDiv:
            return left.floordiv(right.constant)
        case _:
            return (left * -1).floordiv(right.constant) * -1


# --- iterations -----------------------------------------------------------------------------------------------------


def _loops_around(op: Operation) -> list[Operation]:
    """The operations around `op` in its thread that may run it repeatedly, innermost first."""
    found: list[Operation] = []
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, Thread | KernelOp):
        if not isinstance(parent, scf.IfOp | TTLOp):
            found.append(parent)
        parent = parent.parent_op()
    return found


def loops_around(op: Operation) -> list[Operation]:
    """The operations around `op` in its thread that may run it repeatedly, outermost first."""
    return _loops_around(op)[::-1]


def loop_of(op: Operation) -> Loop:
    """The iterations of a loop; those of which nothing is known are numbered without bounds."""
    match op:
        case affine.ForOp():
            lower = linear_map(op.lowerBoundMap.data, list(op.lowerBoundOperands))
            upper = linear_map(op.upperBoundMap.data, list(op.upperBoundOperands))
            step = op.step.value.data
        case scf.ForOp():
            lower, upper = [linear(op.lb)], [linear(op.ub)]
            number = linear(op.step)
            step = 0 if number is None or number.factors else number.constant
        case _:
            return Loop(op, (), ())
    iv = op.body.block.args[0]
    return Loop(iv, _known(lower), _known(upper), step) if step > 0 else Loop(iv, (), ())


def _known(bounds: list[Linear | None]) -> tuple[Linear, ...]:
    known = [each for each in bounds if each is not None]
    return tuple(known) if len(known) == len(bounds) else ()
