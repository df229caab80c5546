"""The copy of a function's code for one task: what its slice holds, and a count for each ring that it passes.

A count says how often a ring was filled before a point of the program. In a loop that fills the ring once per turn it
is the count before the loop plus the number of the turn; elsewhere loops and branches carry it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerType, StringAttr, UnitAttr, i32
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from tlx_xdsl.dialects.arith import TruncIOp
from tlx_xdsl.dialects.scf import WhileOp

from ..rewriting import constant, constant_integer
from .refusal import refusal_at
from .rings import CountKey
from .slices import Slice
from .tasks_of import NOTE, REST, UNEVEN


class Code:
    """Operations that are written to the end of a block, with the location of what they stand for."""

    def __init__(self, block: Block):
        self.block = block
        self.at: Operation | None = None
        """The operation whose location new ones get."""
        self._constants: dict[int, SSAValue] = {}
        self._places: dict[tuple[SSAValue, int], tuple[SSAValue, SSAValue]] = {}

    def add(self, op: Operation, name: str | None = None) -> Operation:
        """Add an operation; `name` is the hint of its result."""
        if self.at is not None:
            op.location = self.at.location
        self.block.add_op(op)
        if name is not None:
            op.results[0].name_hint = name
        return op

    def value(self, op: Operation, name: str | None = None) -> SSAValue:
        """Add an operation and return its result."""
        return self.add(op, name).results[0]

    def number(self, number: int) -> SSAValue:
        """Return an i32 constant of this block."""
        if number not in self._constants:
            self._constants[number] = self.value(constant(number, i32))
        return self._constants[number]

    def sum(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """Return the sum of two i32, as a constant where it is known."""
        numbers = constant_integer(left), constant_integer(right)
        if numbers[0] is not None and numbers[1] is not None:
            return self.number(numbers[0] + numbers[1])
        if 0 in numbers:
            return right if numbers[0] == 0 else left
        return self.value(arith.AddiOp(left, right))

    def product(self, left: SSAValue, right: SSAValue) -> SSAValue:
        """Return the product of two i32, as a constant where it is known."""
        numbers = constant_integer(left), constant_integer(right)
        if numbers[0] is not None and numbers[1] is not None:
            return self.number(numbers[0] * numbers[1])
        return self.value(arith.MuliOp(left, right))

    def place(self, count: SSAValue, depth: int, name: str) -> tuple[SSAValue, SSAValue]:
        """Return the slot and the parity of the phase of a ring that was filled `count` times before."""
        known = constant_integer(count)
        if known is not None:
            return self.number(known % depth), self.number(known // depth % 2)
        key = count, depth
        if depth == 1 and key not in self._places:
            self._places[key] = self.number(0), self.value(arith.AndIOp(count, self.number(1)), f"{name}phase")
        if key not in self._places:
            slots = self.number(depth)
            stage = self.value(arith.RemSIOp(count, slots), f"{name}stage")
            turns = self.value(arith.DivSIOp(count, slots))
            self._places[key] = stage, self.value(arith.AndIOp(turns, self.number(1)), f"{name}phase")
        return self._places[key]

    def flipped(self, phase: SSAValue) -> SSAValue:
        """Return the other parity."""
        known = constant_integer(phase)
        return self.value(arith.XOrIOp(phase, self.number(1))) if known is None else self.number(known ^ 1)


Point = Callable[[Code, dict[SSAValue, SSAValue], SSAValue], None]
"""Write what stands in the place of a filling, given the values of the copy and the count."""


@dataclass
class Copier:
    """Copies code for one task."""

    slice_: Slice
    points: dict[Operation, tuple[CountKey, Point]]
    """Operations in whose place something else is written, and what counts how often that was passed."""
    most: Callable[[Code, SSAValue, dict[SSAValue, SSAValue]], SSAValue | None] | None = None
    """Write the most that the bound of a loop is in any copy of the task; None where all copies have the same."""
    releases: Mapping[Operation, Point] | None = None
    """What stands for points in the turns that other copies have more; None for a task that does these."""
    carried: Collection[CountKey] = ()
    """Counts that loops carry in any case."""

    def block(
        self, source: Block, code: Code, values: dict[SSAValue, SSAValue], counts: dict[CountKey, SSAValue]
    ) -> None:
        """Copy the operations of a block but its end; `values` and `counts` become those at its end."""
        for op in source.ops:
            code.at = op
            if op in self.points:
                key, write = self.points[op]
                write(code, values, counts[key])
                if self._is_last(op, key):
                    counts[key] = plus(code, counts[key], 1)
            elif op in self.slice_.ops and not op.has_trait(IsTerminator):
                self._operation(op, code, values, counts)

    def _operation(
        self, op: Operation, code: Code, values: dict[SSAValue, SSAValue], counts: dict[CountKey, SSAValue]
    ) -> None:
        match op:
            case scf.ForOp():
                self._for(op, code, values, counts)
            case scf.IfOp():
                self._if(op, code, values, counts)
            case scf.WhileOp():
                self._while(op, code, values, counts)
            case _:
                copy = code.add(op.clone(values))
                same(op.results, copy.results, values)

    # --- loops and branches --------------------------------------------------------------------------------------

    def _is_last(self, point: Operation, key: CountKey) -> bool:
        """True for the last point of its block that is counted so; those before it fill the same slot elsewhere."""
        following = point.next_op
        while following is not None:
            if following in self.points and self.points[following][0] == key:
                return False
            following = following.next_op
        return True

    def _passed(self, op: Operation) -> dict[CountKey, set[Block | None]]:
        """The blocks with points below an operation, by what counts them."""
        found: dict[CountKey, set[Block | None]] = {}
        for inner in op.walk():
            if inner in self.points:
                found.setdefault(self.points[inner][0], set()).add(inner.parent)
        return found

    def _is_counted_on(self, op: scf.ForOp, key: CountKey) -> bool:
        """True if what the count is after a loop matters, and follows from the loop's bounds by a division at most.

        Such a count is carried: then nothing has to be known of how the turns follow from the bounds.
        """
        if key in self.carried:
            return True
        around = op.parent_op()
        if isinstance(around, scf.ForOp):
            counts_up = constant_integer(op.lb) == 0 and constant_integer(op.step) == 1
            return not counts_up and constant_integer(around.step) is not None
        following = op.next_op
        while following is not None:
            if any(inner in self.points and self.points[inner][0] == key for inner in following.walk()):
                return True
            following = following.next_op
        return False

    def _for(
        self, op: scf.ForOp, code: Code, values: dict[SSAValue, SSAValue], counts: dict[CountKey, SSAValue]
    ) -> None:
        body = op.body.block
        passed = self._passed(op)
        by_turn = [key for key, blocks in passed.items() if blocks == {body} and not self._is_counted_on(op, key)]
        carried_counts = [key for key in passed if key not in by_turn]
        numbers = sorted(self.slice_.carried.get(op, ()))
        lower, upper, step = (values.get(value, value) for value in (op.lb, op.ub, op.step))
        most = self.most(code, op.ub, values) if passed and self.most is not None else None
        if most is not None and carried_counts:
            raise refusal_at(op, "groups of warps would do other loops inside of this one, each for another time")
        upper = most if most is not None and self.releases is None else upper

        inner = Block(arg_types=[op.lb.type, *(op.iter_args[n].type for n in numbers), *[i32] * len(carried_counts)])
        arguments = [body.args[0], *(body.args[1 + n] for n in numbers)]
        for old, new in zip(arguments, inner.args, strict=False):
            new.name_hint, new.location = old.name_hint, old.location
        for key, new in zip(carried_counts, inner.args[len(arguments) :], strict=True):
            new.name_hint, new.location = counts[key].name_hint or "filled", body.args[0].location
        inside = dict(values)
        inside.update(zip(arguments, inner.args, strict=False))
        within = Code(inner)
        within.at = op
        counts_inside = dict(counts)
        if by_turn:
            turn = turn_number(within, inner.args[0], lower, step)
            for key in by_turn:
                counts_inside[key] = plus(within, counts[key], turn)
        counts_inside.update(zip(carried_counts, inner.args[len(arguments) :], strict=True))
        self.block(body, within, inside, counts_inside)
        end = body.last_op
        assert end is not None
        within.at = end
        within.add(scf.YieldOp(*(inside.get(v, v) for v in (end.operands[n] for n in numbers)),
                               *(counts_inside[key] for key in carried_counts)))  # fmt: skip

        starts = [values.get(op.iter_args[n], op.iter_args[n]) for n in numbers]
        starts += [counts[key] for key in carried_counts]
        code.at = op
        if by_turn:
            turns = turn_count(code, lower, upper if most is None else most, step)
        loop = code.add(scf.ForOp(lower, upper, step, starts, inner))
        loop.attributes.update(op.attributes)
        same([op.results[n] for n in numbers], loop.results, values)
        if most is not None and self.releases is not None:
            loop.attributes[UNEVEN] = UnitAttr()
            own = turn_count(code, lower, upper, step)
            self._rest(body, code, counts, own, turns)  # pyright: ignore[reportPossiblyUnboundVariable]
        for key in by_turn:
            counts[key] = plus(code, counts[key], turns)  # pyright: ignore[reportPossiblyUnboundVariable]
        for key, result in zip(carried_counts, loop.results[len(numbers) :], strict=True):
            result.name_hint = counts[key].name_hint or "filled"
            counts[key] = result

    def _rest(self, body: Block, code: Code, counts: dict[CountKey, SSAValue], own: SSAValue, turns: SSAValue) -> None:
        """Write the turns that other copies of the task have more: each gives its slots back, unread."""
        assert self.releases is not None, "asked for"
        block = Block(arg_types=[i32])
        block.args[0].name_hint, block.args[0].location = "rest", body.args[0].location
        within = Code(block)
        for point in [op for op in body.ops if op in self.points]:
            within.at = point
            self.releases[point](within, {}, plus(within, counts[self.points[point][0]], block.args[0]))
        within.add(scf.YieldOp())
        loop = code.add(scf.ForOp(own, turns, code.number(1), [], block))
        loop.attributes[REST] = UnitAttr()
        loop.attributes[NOTE] = StringAttr(
            "other consumers have these turns; an arrival must not be for a block before"
        )

    def _if(self, op: scf.IfOp, code: Code, values: dict[SSAValue, SSAValue], counts: dict[CountKey, SSAValue]) -> None:
        keys = list(self._passed(op))
        numbers = sorted(self.slice_.carried.get(op, ()))
        regions: list[Region] = []
        for region in op.regions:
            block, inside, counts_inside = Block(), dict(values), dict(counts)
            within = Code(block)
            within.at = op
            if region.blocks:
                self.block(region.block, within, inside, counts_inside)
            end = region.block.last_op if region.blocks else None
            results = [] if end is None else [inside.get(v, v) for v in (end.operands[n] for n in numbers)]
            within.at = op if end is None else end
            within.add(scf.YieldOp(*results, *(counts_inside[key] for key in keys)))
            regions.append(Region(block))
        types = [*(op.results[n].type for n in numbers), *[i32] * len(keys)]
        condition = values.get(op.cond, op.cond)
        if not types and not op.false_region.blocks:
            regions[1] = Region()
        code.at = op
        branch = code.add(scf.IfOp(condition, types, regions[0], regions[1]))
        same([op.results[n] for n in numbers], branch.results, values)
        for key, result in zip(keys, branch.results[len(numbers) :], strict=True):
            counts[key] = result

    def _while(
        self, op: scf.WhileOp, code: Code, values: dict[SSAValue, SSAValue], counts: dict[CountKey, SSAValue]
    ) -> None:
        keys = list(self._passed(op))
        regions: list[Region] = []
        for region in op.regions:
            source = region.block
            block = Block(arg_types=[*(arg.type for arg in source.args), *[i32] * len(keys)])
            inside, counts_inside = dict(values), dict(counts)
            same(source.args, block.args, inside)
            counts_inside.update(zip(keys, block.args[len(source.args) :], strict=True))
            within = Code(block)
            self.block(source, within, inside, counts_inside)
            end = source.last_op
            assert end is not None
            copy = end.clone(inside)
            copy.operands = [*copy.operands, *(counts_inside[key] for key in keys)]
            within.at = end
            within.add(copy)
            regions.append(Region(block))
        starts = [*(values.get(v, v) for v in op.arguments), *(counts[key] for key in keys)]
        types = [*op.result_types, *[i32] * len(keys)]
        code.at = op
        loop = code.add(WhileOp(starts, types, regions[0], regions[1]))
        same(op.results, loop.results, values)
        for key, result in zip(keys, loop.results[len(op.results) :], strict=True):
            counts[key] = result


def same(old: Sequence[SSAValue], new: Sequence[SSAValue], values: dict[SSAValue, SSAValue]) -> None:
    """Let new values stand for the first of as many old ones, with their names."""
    for before, after in zip(old, new, strict=False):
        values[before] = after
        after.name_hint = before.name_hint
        if isinstance(before, BlockArgument) and isinstance(after, BlockArgument):
            after.location = before.location


def plus(code: Code, count: SSAValue, more: SSAValue | int) -> SSAValue:
    """Add to a count."""
    known = constant_integer(count)
    if isinstance(more, int):
        return code.number(known + more) if known is not None else code.value(arith.AddiOp(count, code.number(more)))
    return more if known == 0 else code.value(arith.AddiOp(count, more), "filled")


def _as_i32(code: Code, value: SSAValue) -> SSAValue:
    return value if value.type == i32 or not isinstance(value.type, IntegerType) else code.value(TruncIOp(value, i32))


def turn_number(code: Code, position: SSAValue, lower: SSAValue, step: SSAValue) -> SSAValue:
    """The number of a loop's turn, from its induction variable."""
    distance = _distance(code, position, lower)
    return _as_i32(code, distance if constant_integer(step) == 1 else _divided(code, distance, step))


def turn_count(code: Code, lower: SSAValue, upper: SSAValue, step: SSAValue) -> SSAValue:
    """The number of all turns of a loop; no part of it is negative, so that slots are remainders of it."""
    nothing = code.value(constant(0, upper.type))
    distance = code.value(arith.MaxSIOp(_distance(code, upper, lower), nothing))
    known = constant_integer(step)
    if known != 1:
        one = code.value(constant(1, step.type))
        less = code.value(arith.SubiOp(step, one)) if known is None else code.value(constant(known - 1, step.type))
        distance = _divided(code, code.value(arith.AddiOp(distance, less)), step)
    turns = _as_i32(code, distance)
    turns.name_hint = "turns"
    return turns


def _distance(code: Code, to: SSAValue, lower: SSAValue) -> SSAValue:
    return to if constant_integer(lower) == 0 else code.value(arith.SubiOp(to, lower))


def _divided(code: Code, distance: SSAValue, step: SSAValue) -> SSAValue:
    known = constant_integer(step)
    divisor = step if known is None else code.value(constant(known, step.type))
    return code.value(arith.DivSIOp(distance, divisor))
