"""Integer arithmetic before an operation, for passes that compute addresses; constants are folded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, i32
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects.arith import ExtUIOp, SelectOp
from tlx_xdsl.transforms.rewriting import constant_integer, insert_before

Number: TypeAlias = SSAValue | int
"""A value, or a number that is known now."""


class Integers:
    """Makes i32 and i64 arithmetic before `anchor`, at its location."""

    def __init__(self, anchor: Operation):
        self.anchor = anchor

    def value(self, number: Number, type_: IntegerType = i32) -> SSAValue:
        """`number` as a scalar value."""
        if isinstance(number, SSAValue):
            return number
        return insert_before(self.anchor, arith.ConstantOp(IntegerAttr(number, type_))).result

    def add(self, left: Number, right: Number) -> Number:
        """The sum."""
        if left == 0 or right == 0:
            return right if left == 0 else left
        return self._binary(arith.AddiOp, lambda a, b: a + b, left, right)

    def sums(self, lefts: Sequence[SSAValue], rights: Sequence[int]) -> list[SSAValue]:
        """The sums of values and numbers, one by one."""
        return [self.value(self.add(left, right)) for left, right in zip(lefts, rights, strict=True)]

    def xor(self, left: Number, right: Number) -> Number:
        """The exclusive or."""
        if left == 0 or right == 0:
            return right if left == 0 else left
        return self._binary(arith.XOrIOp, lambda a, b: a ^ b, left, right)

    def either(self, left: Number, right: Number) -> Number:
        """All bits of both."""
        return self._binary(arith.OrIOp, lambda a, b: a | b, left, right)

    def both(self, left: Number, mask: int) -> Number:
        """The bits of `left` that `mask` has, too."""
        return 0 if mask == 0 else self._binary(arith.AndIOp, lambda a, b: a & b, left, mask)

    def shifted(self, value: Number, distance: int) -> Number:
        """`value` moved up by `distance` bits, or down where that is negative; `value` is not negative."""
        if distance == 0:
            return value
        if distance > 0:
            return self._binary(arith.ShLIOp, lambda a, b: a << b, value, distance)
        return self._binary(arith.ShRUIOp, lambda a, b: a >> b, value, -distance)

    def select(self, condition: SSAValue, then: int, otherwise: int) -> SSAValue:
        """Choose between two numbers."""
        op = SelectOp(condition, self.value(then), self.value(otherwise))
        return insert_before(self.anchor, op).result

    def unsigned(self, value: SSAValue) -> SSAValue:
        """A shorter integer as an i32 of the same, unsigned value."""
        return value if value.type == i32 else insert_before(self.anchor, ExtUIOp(value, i32)).result

    def _binary(
        self,
        make: type[arith.SignlessIntegerBinaryOperation],
        fold: Callable[[int, int], int],
        left: Number,
        right: Number,
    ) -> Number:
        known = [_known(left), _known(right)]
        if known[0] is not None and known[1] is not None:
            return fold(known[0], known[1])
        return insert_before(self.anchor, make(self.value(left), self.value(right))).result


def _known(number: Number) -> int | None:
    return constant_integer(number) if isinstance(number, SSAValue) else number


def is_true(predicate: SSAValue) -> bool:
    """True if an i1 is the constant true."""
    return bool(constant_integer(predicate))
