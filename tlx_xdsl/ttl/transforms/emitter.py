"""Emits integer arithmetic, with the constants of a function at its beginning.

A number is a Python integer as long as it is known, so that `row * 1 + 0` emits nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, LocationAttr, UnknownLoc, i32
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl.transforms.rewriting import OpT, constant, constant_integer, forward

Number = SSAValue | int
"""An integer, as a Python one if it is known."""
Scalar = IndexType | IntegerType
INDEX = IndexType()


def known(number: Number) -> Number:
    """A number as a Python integer, if it is a constant."""
    if isinstance(number, int):
        return number
    found = constant_integer(number)
    return number if found is None else found


class Constants:
    """The integer constants of a thread function: each once, at the beginning of its body."""

    def __init__(self, block: Block):
        self._block = block
        self._last: Operation | None = None
        self._known: dict[tuple[int, Scalar], SSAValue] = {}
        for op in [*block.ops]:
            if isinstance(op, arith.ConstantOp) and (number := constant_integer(op.result)) is not None:
                self._keep(op, number)

    def _keep(self, op: arith.ConstantOp, number: int) -> None:
        """Move a constant of an earlier pass to the beginning, or let its users take the one that is there."""
        key = number, cast(Scalar, op.result.type)
        if key in self._known:
            forward(op, self._known[key])
            return
        op.detach()
        self._known[key] = self.insert_after(op, op.location).result

    def get(self, number: int, type_: Scalar, location: LocationAttr) -> SSAValue:
        """The constant; a new one is located where it is needed first."""
        if (number, type_) not in self._known:
            self._known[number, type_] = self.insert_after(constant(number, type_), location).result
        return self._known[number, type_]

    def insert_after(self, op: OpT, location: LocationAttr) -> OpT:
        """Insert an operation that every place of the function shall see, after the constants and others like it."""
        op.location = location
        at = InsertPoint.at_start(self._block) if self._last is None else InsertPoint.after(self._last)
        Rewriter.insert_op(op, at)
        self._last = op
        return op


class Emitter:
    """Emits operations at one place, located there."""

    def __init__(self, constants: Constants, anchor: Operation, point: InsertPoint | None = None):
        self.constants = constants
        self.location: LocationAttr = anchor.location
        self.point = InsertPoint.before(anchor) if point is None else point

    def add_op(self, op: OpT) -> OpT:
        """Insert an operation; it and what is inside of it get the location, unless they have one."""
        for inner in op.walk():
            if isinstance(inner.location, UnknownLoc):
                inner.location = self.location
        Rewriter.insert_op(op, self.point)
        return op

    def result(self, op: Operation) -> SSAValue:
        """Insert an operation with one result."""
        return self.add_op(op).results[0]

    def value(self, number: Number, type_: Scalar) -> SSAValue:
        """A number as a value of this type."""
        if isinstance(number, int):
            return self.constants.get(number, type_, self.location)
        if number.type == type_:
            return number
        assert isinstance(number.type, IndexType) or isinstance(type_, IndexType)
        return self.result(arith.IndexCastOp(number, type_))

    def index(self, number: Number) -> SSAValue:
        """A number as an index."""
        return self.value(number, INDEX)

    def i32(self, number: Number) -> SSAValue:
        """A number as an i32."""
        return self.value(number, i32)

    def add(self, left: Number, right: Number, type_: Scalar = INDEX) -> Number:
        """The sum."""
        left, right = known(left), known(right)
        if isinstance(left, int) and isinstance(right, int):
            return left + right
        if left == 0 or right == 0:
            return right if left == 0 else left
        return self.result(arith.AddiOp(self.value(left, type_), self.value(right, type_)))

    def sub(self, left: Number, right: Number, type_: Scalar = INDEX) -> Number:
        """The difference."""
        left, right = known(left), known(right)
        if isinstance(left, int) and isinstance(right, int):
            return left - right
        if right == 0:
            return left
        return self.result(arith.SubiOp(self.value(left, type_), self.value(right, type_)))

    def mul(self, left: Number, right: Number, type_: Scalar = INDEX) -> Number:
        """The product."""
        left, right = known(left), known(right)
        if isinstance(left, int) and isinstance(right, int):
            return left * right
        if left == 0 or right == 0:
            return 0
        if left == 1 or right == 1:
            return right if left == 1 else left
        return self.result(arith.MuliOp(self.value(left, type_), self.value(right, type_)))

    def div(self, left: Number, right: int, type_: Scalar = INDEX) -> Number:
        """The quotient of a number that is not negative and a positive one."""
        left = known(left)
        if isinstance(left, int):
            return left // right
        return left if right == 1 else self.result(arith.DivSIOp(left, self.value(right, type_)))

    def mod(self, left: Number, right: int, type_: Scalar = INDEX) -> Number:
        """The remainder of a number that is not negative by a positive one."""
        left = known(left)
        if isinstance(left, int):
            return left % right
        return 0 if right == 1 else self.result(arith.RemSIOp(left, self.value(right, type_)))

    def compare(self, predicate: str, left: Number, right: Number, type_: Scalar = INDEX) -> SSAValue:
        """Whether `left` is `predicate` (`eq`, `sge`, ...) `right`."""
        return self.result(arith.CmpiOp(self.value(left, type_), self.value(right, type_), predicate))

    def true(self) -> SSAValue:
        """The condition that holds."""
        return self.constants.get(1, IntegerType(1), self.location)

    def all_of(self, conditions: Sequence[SSAValue]) -> SSAValue:
        """Whether all of these hold."""
        if not conditions:
            return self.true()
        found, *rest = conditions
        for condition in rest:
            found = self.result(arith.AndIOp(found, condition))
        return found

    def loop(self, count: int) -> tuple[SSAValue, Emitter]:
        """A loop over 0 to `count - 1`: its index, and what emits in its body."""
        end = scf.YieldOp()
        body = Block([end], arg_types=[INDEX])
        body.args[0].location = self.location
        self.add_op(scf.ForOp(self.index(0), self.index(count), self.index(1), [], Region(body)))
        return body.args[0], Emitter(self.constants, end)


def integer(number: int, type_: Scalar = i32) -> IntegerAttr[Scalar]:
    """An integer attribute."""
    return IntegerAttr(number, type_)
