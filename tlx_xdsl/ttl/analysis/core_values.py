"""The integers that a core computes with: indices, conditions and coordinates, as far as nothing else decides them.

A kernel's control flow follows from the coordinates of the core and from the indices of loops around it. Both are known
for one core and one iteration, so its trip counts and branches are, too. A value that anything else decides is unknown,
and whoever asks must accept what it can't decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from xdsl.dialects import affine, arith, scf
from xdsl.dialects.builtin import IntAttr, IntegerAttr, IntegerType, i1
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineMap

from tlx_xdsl.dialects.arith import CMPI_PREDICATES

from ..dialects.ttcore import GridAttr
from ..dialects.ttl import CBOp, CoreOp, CreatePipeOp, GetShardIdOp, IfDstOp, IfSrcOp, SemaphoreOp


class Core(NamedTuple):
    """A core of a grid, by its column and row."""

    x: int
    y: int
    columns: int

    @property
    def number(self) -> int:
        """Return the core's number in the grid, row by row."""
        return self.x + self.y * self.columns

    @property
    def place(self) -> tuple[int, int]:
        """Return the core's coordinates."""
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
    """Return whether a number is what hardware would have, too."""
    match type_:
        case IntegerType(width=IntAttr(data=width)):
            bits = width
        case _:
            bits = _INDEX_BITS
    return -(1 << bits - 1) <= number < 1 << (1 if bits == 1 else bits - 1)


_INDEX_BITS = 32
"""Indices become integers of the cores, which have 32 bits."""


class CoreValues:
    """Values on one core; loops give their indices to it while one walks through them."""

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
        """Return what `combine` makes of the results of an affine map; its operands are dimensions, then symbols."""
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


# What the thread of one core does, step by step: the operations that synchronise it with others, in order.
#
# A thread is followed through its loops and branches like a program that runs, with the steps of circular buffers and
# the operations on semaphores as its only effects. Where a branch or a trip count can't be known, the walk raises
# `Undecidable`: what was found until then has still happened.

Loop = affine.ForOp | scf.ForOp


class Undecidable(Exception):
    """A step that depends on something unknown before the thread runs."""

    def __init__(self, op: Operation):
        super().__init__(op.name)
        self.op = op


def with_steps(root: Operation, *extra: type[Operation]) -> set[Operation]:
    """The operations inside of `root` that are steps, or of the `extra` classes, or have some in their regions."""
    found: set[Operation] = set()
    for op in root.walk():
        if isinstance(op, (CBOp, SemaphoreOp, *extra)):
            around: Operation | None = op
            while around is not None and around not in found:
                found.add(around)
                around = None if around is root else around.parent_op()
    return found


def side_runs(op: IfSrcOp | IfDstOp, core: Core) -> bool | None:
    """Return whether a core is on this side of the pipe; None if the pipe is not one of the kernel's."""
    pipe = op.pipe.owner
    if not isinstance(pipe, CreatePipeOp):
        return None
    (x0, y0), (x1, y1) = pipe.sources if isinstance(op, IfSrcOp) else pipe.receivers
    return x0 <= core.x <= x1 and y0 <= core.y <= y1


class ThreadWalk:
    """A walk of one core through one of its threads."""

    def __init__(
        self,
        thread: Operation,
        core: Core,
        relevant: set[Operation] | None = None,
        also: tuple[type[Operation], ...] = (),
    ):
        self.thread = thread
        self.also = also
        """Further operations that count as steps."""
        self.values = CoreValues(core)
        self.core = core
        self.relevant = with_steps(thread, *also) if relevant is None else relevant

    def steps(self) -> Iterator[Operation]:
        """The steps of the thread; `values` has the values of a step while it is the last one.

        Raises Undecidable.
        """
        yield from self._block(self.thread.regions[0].block)

    def _block(self, block: Block) -> Iterator[Operation]:
        for op in block.ops:
            if isinstance(op, (CBOp, SemaphoreOp, *self.also)):
                yield op
            elif op.regions and op in self.relevant:
                yield from self._structure(op)

    def _structure(self, op: Operation) -> Iterator[Operation]:
        match op:
            case affine.ForOp() | scf.ForOp():
                yield from self._loop(op)
            case scf.IfOp():
                condition = self.values.of(op.cond)
                if condition is None:
                    raise Undecidable(op)
                region = op.true_region if condition else op.false_region
                if region.blocks:
                    yield from self._block(region.block)
                    self._bind(op.results, self._yielded(region.block))
            case IfSrcOp() | IfDstOp():
                runs = side_runs(op, self.core)
                if runs is None:
                    raise Undecidable(op)
                if runs:
                    yield from self._block(op.body.block)
            case _:
                raise Undecidable(op)

    def _loop(self, loop: Loop) -> Iterator[Operation]:
        indices = self.values.range_of(loop)
        if indices is None:
            raise Undecidable(loop)
        initial = loop.inits if isinstance(loop, affine.ForOp) else loop.iter_args
        carried = [self.values.of(each) for each in initial]
        block = loop.body.block
        for index in indices:
            self._bind(block.args, [index, *carried])
            yield from self._block(block)
            carried = self._yielded(block)
        self._bind(loop.results, carried)

    def _yielded(self, block: Block) -> list[int | None]:
        last = block.last_op
        return [] if last is None else [self.values.of(each) for each in last.operands]

    def _bind(self, values: tuple[SSAValue, ...] | list[SSAValue], numbers: list[int | None]) -> None:
        self.values.known.update(zip(values, numbers, strict=False))
