"""`ttl-lower-affine`: loops, index arithmetic and conditions of `affine` become `scf` and `arith`.

Before:
```mlir
affine.for %i = 0 to min affine_map<(d0) -> (4, -d0 + 9)> (%x) {
  %p = affine.apply affine_map<(d0, d1) -> (d0 * 4 + d1)> (%x, %i)
  "ttkernel.use"(%p) : (index) -> ()
}
```
After:
```mlir
%0 = arith.muli %x, %c-1 : index
%1 = arith.addi %0, %c9 : index
%2 = arith.minsi %c4, %1 : index
scf.for %i = %c0 to %2 step %c1 {
  %3 = arith.muli %x, %c4 : index
  %p = arith.addi %3, %i : index
  "ttkernel.use"(%p) : (index) -> ()
}
```
xDSL's `lower-affine` takes constant bounds only, and its remainders are wrong below 0. Quotients and remainders here
are affine's: they round down. That takes a comparison more, unless the dividend can't be negative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import singledispatch

from xdsl.dialects import affine, arith, func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSymExpr,
)
from xdsl.ir.affine.affine_set import AffineConstraintKind

from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import Pass, forward, ops_of, replace
from tlx_xdsl.ttl.analysis.signs import is_expression_non_negative, is_non_negative

from ..thread_function import INDEX, Constants, Emitter, Number

_PREDICATES = {AffineConstraintKind.ge: "sge", AffineConstraintKind.le: "sle", AffineConstraintKind.eq: "eq"}


class LowerAffinePass(Pass):
    """Rewrite every operation of `affine` in the functions of the module."""

    name = "ttl-lower-affine"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place.

        Raises CompilationError for an operation of `affine` that this does not know.
        """
        for function in ops_of(op, func.FuncOp):
            if not function.is_declaration:
                _lower_function(function)


def _lower_function(function: func.FuncOp) -> None:
    constants = Constants(function.body.block)
    # Terminators change with the operation around them.
    inner = [each for each in function.walk() if each.name.startswith("affine.")]
    for op in inner:
        if not isinstance(op, affine.YieldOp):
            _lower(op, Emitter(constants, op))


@singledispatch
def _lower(op: Operation, emitter: Emitter) -> None:
    """Rewrite an operation of `affine`."""
    raise error_at(op, f"'{op.name}' can't be lowered to scf and arith: use affine.for, affine.apply, affine.min or "
                       "affine.if, or index arithmetic of arith")  # fmt: skip


@_lower.register
def _for(op: affine.ForOp, emitter: Emitter) -> None:
    lower = _bound(op.lowerBoundMap.data, op.lowerBoundOperands, arith.MaxSIOp, emitter)
    upper = _bound(op.upperBoundMap.data, op.upperBoundOperands, arith.MinSIOp, emitter)
    step = emitter.index(op.step.value.data)
    _end_in_scf(op.body.block)
    loop = scf.ForOp(emitter.index(lower), emitter.index(upper), step, op.inits, op.detach_region(op.body))
    loop.attributes |= op.attributes
    replace(op, loop)


@_lower.register
def _if(op: affine.IfOp, emitter: Emitter) -> None:
    dims, symbols = _split(op.args, op.condition.data.num_dims)
    holds = [
        emitter.compare(
            _PREDICATES[each.kind],
            _expression(each.lhs, dims, symbols, emitter),
            _expression(each.rhs, dims, symbols, emitter),
        )
        for each in op.condition.data.constraints
    ]
    for region in op.regions:
        for block in region.blocks:
            _end_in_scf(block)
    then, otherwise = (op.detach_region(region) for region in [*op.regions])
    branch = scf.IfOp(emitter.all_of(holds), op.result_types, then, otherwise)
    branch.attributes |= op.attributes
    replace(op, branch)


@_lower.register
def _apply(op: affine.ApplyOp, emitter: Emitter) -> None:
    map_ = op.map.data
    forward(op, emitter.index(_expression(map_.results[0], *_split(op.mapOperands, map_.num_dims), emitter)))


@_lower.register
def _min(op: affine.MinOp, emitter: Emitter) -> None:
    forward(op, emitter.index(_bound(op.map.data, op.arguments, arith.MinSIOp, emitter)))


def _end_in_scf(block: Block) -> None:
    end = block.last_op
    if isinstance(end, affine.YieldOp):
        replace(end, scf.YieldOp(*end.arguments))


def _split(operands: Sequence[SSAValue], num_dims: int) -> tuple[Sequence[SSAValue], Sequence[SSAValue]]:
    return operands[:num_dims], operands[num_dims:]


def _bound(
    map_: AffineMap,
    operands: Sequence[SSAValue],
    combine: Callable[[SSAValue, SSAValue], Operation],
    emitter: Emitter,
) -> Number:
    """The results of a map, combined to one."""
    found, *rest = [_expression(each, *_split(operands, map_.num_dims), emitter) for each in map_.results]
    for each in rest:
        found = emitter.result(combine(emitter.index(found), emitter.index(each)))
    return found


def _expression(
    expression: AffineExpr, dims: Sequence[SSAValue], symbols: Sequence[SSAValue], emitter: Emitter
) -> Number:
    """The value of an affine expression."""
    match expression:
        case AffineConstantExpr():
            return expression.value
        case AffineDimExpr():
            return dims[expression.position]
        case AffineSymExpr():
            return symbols[expression.position]
        case AffineBinaryOpExpr():
            left = _expression(expression.lhs, dims, symbols, emitter)
            right = _expression(expression.rhs, dims, symbols, emitter)
            if expression.kind is AffineBinaryOpKind.Add:
                return emitter.add(left, right)
            if expression.kind is AffineBinaryOpKind.Mul:
                return emitter.mul(left, right)
            known = [is_non_negative(each) for each in dims], [is_non_negative(each) for each in symbols]
            rounded = _Division(emitter, is_expression_non_negative(expression.lhs, *known))
            return rounded.of(expression.kind, left, right)
        case _:
            raise error_at(emitter.location, f"the affine expression '{expression}' can't be lowered to arith")


class _Division:
    """Quotients and remainders by a positive number that round down or up, by divisions that round to zero."""

    def __init__(self, emitter: Emitter, is_non_negative: bool):
        self._emitter = emitter
        self._is_non_negative = is_non_negative

    def of(self, kind: AffineBinaryOpKind, left: Number, right: Number) -> Number:
        """The quotient, rounded down or up, or the remainder."""
        if not isinstance(right, int) or right < 1:
            raise error_at(
                self._emitter.location,
                f"an affine index is divided by {right if isinstance(right, int) else 'a value'}: "
                "expected a positive constant; divide with arith instead",
            )
        if kind is AffineBinaryOpKind.Mod:
            return self._remainder(left, right)
        if kind is AffineBinaryOpKind.CeilDiv:
            left = self._emitter.add(left, right - 1)
        return self._quotient(left, right)

    def _remainder(self, left: Number, right: int) -> Number:
        rest = self._emitter.mod(left, right)
        if self._is_non_negative or isinstance(rest, int):
            return rest
        is_below = self._emitter.compare("slt", rest, 0)
        raised = self._emitter.index(self._emitter.add(rest, right))
        return self._emitter.result(arith.SelectOp(is_below, raised, rest))

    def _quotient(self, left: Number, right: int) -> Number:
        if self._is_non_negative or isinstance(left, int):
            return self._emitter.div(left, right)
        # What is left is a multiple of the divisor, of which the quotient needs no rounding.
        multiple = self._emitter.sub(left, self._remainder(left, right), INDEX)
        return self._emitter.div(multiple, right)
