"""What arithmetic makes of the numbers and masks of all programs (see `rules.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith as upstream
from xdsl.ir import Operation

from tlx_xdsl.addresses.coverage.rules import Here, bits_of, rule
from tlx_xdsl.addresses.coverage.values import (
    Booleans,
    Integers,
    Number,
    Pointer,
    Truth,
    Unknown,
    Value,
    fitted,
    merged,
    plus,
    times,
    unsigned,
    wrapped,
)
from tlx_xdsl.dialects import arith


@rule(upstream.AddiOp, upstream.SubiOp)
def _add(op: Operation, operands: Sequence[Any], here: Here) -> Value:
    left, right = operands
    if isinstance(left, Truth):
        return _bitwise(op, operands, here)
    return plus(left, right, 1 if isinstance(op, upstream.AddiOp) else -1)


@rule(upstream.MuliOp)
def _multiply(op: Operation, operands: Sequence[Any], here: Here) -> Value:
    left, right = operands
    return _bitwise(op, operands, here) if isinstance(left, Truth) else times(left, right)


_OF_TRUTH: dict[type[Operation], Callable[[Booleans, Booleans], Booleans]] = {
    upstream.AddiOp: np.not_equal,
    upstream.SubiOp: np.not_equal,
    upstream.MuliOp: np.logical_and,
    upstream.OrIOp: np.logical_or,
    upstream.XOrIOp: np.not_equal,
    upstream.MinUIOp: np.logical_and,
    upstream.MaxUIOp: np.logical_or,
    # As a signed number, the bit 1 is -1.
    upstream.MinSIOp: np.logical_or,
    upstream.MaxSIOp: np.logical_and,
}
_OF_NUMBERS: dict[type[Operation], Callable[[Integers, Integers], Integers]] = {
    upstream.AndIOp: np.bitwise_and,
    upstream.OrIOp: np.bitwise_or,
    upstream.XOrIOp: np.bitwise_xor,
    upstream.MinSIOp: np.minimum,
    upstream.MaxSIOp: np.maximum,
}


@rule(upstream.AndIOp, upstream.OrIOp, upstream.XOrIOp, upstream.MinSIOp, upstream.MaxSIOp)
def _bitwise(op: Operation, operands: Sequence[Any], _: Here) -> Value:
    left, right = operands
    if not isinstance(left, Truth):
        return fitted((_OF_NUMBERS[type(op)](left.total, right.total),), left.bits)
    if isinstance(op, upstream.AndIOp):
        return Truth((*left.factors, *right.factors), left.exact and right.exact)
    if not (left.exact and right.exact):
        return Unknown("its mask is not known")
    return Truth((_OF_TRUTH[type(op)](left.total, right.total),))


@rule(upstream.MinUIOp, upstream.MaxUIOp)
def _unsigned_extremum(op: Operation, operands: Sequence[Any], here: Here) -> Value:
    if isinstance(operands[0], Truth):
        return _bitwise(op, operands, here)
    function = np.minimum if isinstance(op, upstream.MinUIOp) else np.maximum
    return _on_unsigned(operands, function)


def _on_unsigned(operands: Sequence[Number], function: Callable[[Integers, Integers], Integers]) -> Value:
    left, right = (unsigned(each) for each in operands)
    if left is None or right is None:
        return Unknown("an unsigned number leaves 63 bits")
    return fitted((wrapped(function(left, right), operands[0].bits),), operands[0].bits)


_DIVISIONS: dict[type[Operation], Callable[[Integers, Integers], Integers]] = {
    upstream.DivSIOp: lambda a, b: np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b)),
    upstream.RemSIOp: lambda a, b: np.sign(a) * (np.abs(a) % np.abs(b)),
    upstream.DivUIOp: lambda a, b: a // b,
    upstream.RemUIOp: lambda a, b: a % b,
    upstream.FloorDivSIOp: lambda a, b: a // b,
    upstream.CeilDivSIOp: lambda a, b: -(-a // b),
}


@rule(*_DIVISIONS)
def _divide(op: Operation, operands: Sequence[Any], here: Here) -> Value:
    if isinstance(operands[0], Truth):
        return Unknown("it is divided in one bit")
    zero = operands[1].total == 0
    if np.any(zero & here.active.reshape((-1,) + (1,) * (zero.ndim - 1))):
        return Unknown("it is divided by zero")

    def divided(left: Integers, right: Integers) -> Integers:
        return _DIVISIONS[type(op)](left, np.where(zero, 1, right))

    if isinstance(op, upstream.DivUIOp | upstream.RemUIOp):
        return _on_unsigned(operands, divided)
    return fitted((divided(operands[0].total, operands[1].total),), operands[0].bits)


@rule(upstream.ShLIOp, upstream.ShRSIOp, upstream.ShRUIOp)
def _shift(op: Operation, operands: Sequence[Any], _: Here) -> Value:
    left, right = operands
    if isinstance(left, Truth):
        return Unknown("it is shifted in one bit")
    low, high = right.bounds()
    if low < 0 or high >= left.bits:
        return Unknown("it is shifted by more bits than it has")
    if isinstance(op, upstream.ShLIOp):
        return Unknown("a product leaves 64 bits") if high > 61 else times(left, Number((np.int64(1) << right.total,)))
    if isinstance(op, upstream.ShRUIOp):
        return _on_unsigned(operands, np.right_shift)
    return fitted((left.total >> right.total,), left.bits)


_COMPARISONS: tuple[Callable[[Any, Any], Any], ...] = (
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
    np.less, np.less_equal, np.greater, np.greater_equal,
)  # fmt: skip
"""In the order of MLIR's numbers for the predicates; the last four are unsigned."""


@rule(arith.CmpiOp)
def _compare(op: Any, operands: Sequence[Any], _: Here) -> Value:
    predicate = int(op.predicate.value.data)
    left, right = operands
    if isinstance(left, Truth):
        if predicate > 1:
            return Unknown("single bits are compared by size")
        if not (left.exact and right.exact):
            return Unknown("its mask is not known")
        return Truth((_COMPARISONS[predicate](left.total, right.total),))
    if not isinstance(left, Number):
        return Unknown("pointers are compared")
    if predicate < 6:
        return Truth((_COMPARISONS[predicate](left.total, right.total),))
    a, b = unsigned(left), unsigned(right)
    if a is None or b is None:
        return Unknown("an unsigned number leaves 63 bits")
    return Truth((_COMPARISONS[predicate](a, b),))


@rule(arith.SelectOp)
def _select(_: Any, operands: Sequence[Any], __: Here) -> Value:
    condition, yes, no = operands
    if not condition.exact:
        return Unknown("its mask is not known")
    choice = condition.total
    if all(size == 1 for size in choice.shape[1:]):
        return merged(choice.reshape(-1), yes, no)
    match yes, no:
        case Number(), Number():
            return fitted((np.where(choice, yes.total, no.total),), yes.bits)
        case Truth(), Truth():
            return Truth((np.where(choice, yes.total, no.total),), yes.exact and no.exact)
        case Pointer(), Pointer() if yes.base is no.base:
            offset = fitted((np.where(choice, yes.offset.total, no.offset.total),), 64)
            return offset if isinstance(offset, Unknown) else Pointer(yes.base, offset)
        case _:
            return Unknown("it points into one array or another")


@rule(arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp, upstream.IndexCastOp)
def _cast(op: Operation, operands: Sequence[Any], _: Here) -> Value:
    (operand,) = operands
    bits = bits_of(op.results[0].type)
    assert bits is not None
    if isinstance(operand, Truth):
        if not operand.exact:
            return Unknown("its mask is not known")
        return Number((operand.total.astype(np.int64) * (-1 if isinstance(op, arith.ExtSIOp) else 1),), bits)
    if bits == 1:
        return Truth(((operand.total & 1).astype(bool),))
    if isinstance(op, arith.ExtUIOp) and operand.bounds()[0] < 0:
        total = unsigned(operand)
        return Unknown("an unsigned number leaves 63 bits") if total is None else fitted((total,), bits)
    return fitted(operand.parts, bits)
