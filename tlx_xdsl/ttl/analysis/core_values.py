"""The integers that a core computes with: indices, conditions and coordinates, as far as nothing else decides them.

A kernel's control flow follows from the coordinates of the core and from the indices of loops around it. Both are known
for one core and one iteration, so its trip counts and branches are, too. A value that anything else decides is unknown,
and whoever asks must accept what it can't decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from xdsl.dialects import affine, arith, scf
from xdsl.dialects.builtin import IntAttr, IntegerAttr, IntegerType, i1
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineMap

from tlx_xdsl.dialects.arith import CMPI_PREDICATES

from ..dialects.ttcore import GridAttr
from ..dialects.ttl import CoreOp, GetShardIdOp


class Core(NamedTuple):
    """A core of a grid, by its column and row."""

    x: int
    y: int
    columns: int

    @property
    def number(self) -> int:
        """Its number in the grid, row by row."""
        return self.x + self.y * self.columns

    @property
    def place(self) -> tuple[int, int]:
        """Its coordinates."""
        return self.x, self.y


def cores_of(grid: GridAttr) -> list[Core]:
    """All cores of a grid, row by row."""
    return [Core(x, y, grid.x) for y in range(grid.y) for x in range(grid.x)]


def _divide(left: int, right: int) -> int:
    """The quotient, rounded to zero."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}

_BINARY: Mapping[str, Callable[[int, int], int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divsi": _divide,
    "arith.remsi": lambda a, b: a - b * _divide(a, b),
    "arith.floordivsi": lambda a, b: a // b,
    "arith.ceildivsi": lambda a, b: -(-a // b),
    "arith.minsi": min,
    "arith.maxsi": max,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
}
"""By name, since upstream's operations and those in their place (`dialects.arith`) have nothing else in common."""


def _compare(predicate: str, left: int, right: int) -> int | None:
    if predicate.startswith("u") and (left < 0 or right < 0):
        return None
    return int(_COMPARISONS[predicate[-2:]](left, right))


def _fits(number: int, type_: Attribute) -> bool:
    """Whether a number is what hardware would have, too."""
    match type_:
        case IntegerType(width=IntAttr(data=width)):
            bits = width
        case _:
            bits = _INDEX_BITS
    return -(1 << bits - 1) <= number < 1 << (1 if bits == 1 else bits - 1)


_INDEX_BITS = 32
"""Indices become integers of the cores, which have 32 bits."""


class CoreValues:
    """What values are on one core; loops give their indices to it while one walks through them."""

    def __init__(self, core: Core | None):
        self.core = core
        """None where a value must be the same on all cores to be known."""
        self.known: dict[SSAValue, int | None] = {}
        """Indices of loops, what loops carry, and the results of control flow."""
        self._found: dict[Operation, int | None] | None = None
        """What was computed for the value that is being asked for: others may have many ways to it."""

    def of(self, value: SSAValue) -> int | None:
        """The number that `value` is; None if that is unknown. A condition is 0 or 1."""
        if value in self.known:
            return self.known[value]
        if not isinstance(value, OpResult):
            return None
        if self._found is None:
            self._found = {}
            try:
                return self._result(value)
            finally:
                self._found = None
        if len(value.owner.results) > 1:
            return self._result(value)
        if value.owner not in self._found:
            self._found[value.owner] = self._result(value)
        return self._found[value.owner]

    def _result(self, value: OpResult) -> int | None:
        op = value.owner
        match op:
            case arith.ConstantOp(value=IntegerAttr(value=number)):
                # The one of i1 is written as -1.
                return number.data & 1 if op.result.type == i1 else number.data
            case affine.ApplyOp():
                return self.map(op.map.data, op.mapOperands, lambda results: next(iter(results)))
            case affine.MinOp():
                return self.map(op.map.data, op.arguments, min)
            case CoreOp() | GetShardIdOp():
                if self.core is None:
                    return None
                return self.core.place[value.index] if len(op.results) == 2 else self.core.number
            case _:
                return self._arithmetic(op)

    def _arithmetic(self, op: Operation) -> int | None:
        match op.name:
            case "arith.index_cast" | "arith.extui":
                return self.of(op.operands[0])
            case "arith.select":
                condition = self.of(op.operands[0])
                return None if condition is None else self.of(op.operands[1 if condition else 2])
            case "arith.cmpi":
                left, right = map(self.of, op.operands)
                predicate = op.properties.get("predicate")
                if left is None or right is None or not isinstance(predicate, IntegerAttr):
                    return None
                return _compare(CMPI_PREDICATES[predicate.value.data], left, right)
            case name if name in _BINARY:
                left, right = map(self.of, op.operands)
                if left is None or right is None:
                    # A conjunction with false is false, whatever the other side is.
                    return 0 if name == "arith.andi" and 0 in (left, right) else None
                try:
                    number = _BINARY[name](left, right)
                except ZeroDivisionError:
                    return None
                return number if _fits(number, op.results[0].type) else None
            case _:
                return None

    def map(self, map_: AffineMap, operands: Sequence[SSAValue], combine: Callable[[Iterable[int]], int]) -> int | None:
        """What `combine` makes of the results of an affine map; its operands are dimensions, then symbols."""
        numbers = [self.of(operand) for operand in operands]
        if None in numbers:
            return None
        known = [number for number in numbers if number is not None]
        dims, symbols = known[: map_.num_dims], known[map_.num_dims :]
        try:
            return combine([each.eval(dims, symbols) for each in map_.results])
        except ZeroDivisionError:
            return None

    def range_of(self, loop: affine.ForOp | scf.ForOp) -> range | None:
        """The indices of a loop; None if a bound is unknown."""
        if isinstance(loop, affine.ForOp):
            lower = self.map(loop.lowerBoundMap.data, loop.lowerBoundOperands, max)
            upper = self.map(loop.upperBoundMap.data, loop.upperBoundOperands, min)
            step: int | None = loop.step.value.data
        else:
            lower, upper, step = self.of(loop.lb), self.of(loop.ub), self.of(loop.step)
        if lower is None or upper is None or step is None or step < 1:
            return None
        return range(lower, upper, step)
