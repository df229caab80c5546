"""Rotation of a loop by its stages: the early stage of the first turn, a loop, the late stage of the last turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl.dialects.arith import CmpiOp
from tlx_xdsl.dialects.base import enclosing
from tlx_xdsl.dialects.tt import FuncOp

from ...rewriting import constant_integer
from ..accesses.arguments import add_conditions
from .folding import folded
from .ring_links import HELD_OVER
from .stages import Stages
from .trip_counts import conditions_to_run

Values = dict[SSAValue, SSAValue]
"""What stands for each value of the loop in a copy of its body."""


def rotate(loop: scf.ForOp, stages: Stages) -> scf.ForOp:
    """Replace a loop by its rotated form; return the new loop."""
    return _Rotation(loop, stages).replace()


@dataclass
class _End:
    """A place of new operations: before one of a block, or at the end of a block."""

    point: InsertPoint
    holder: Operation
    """An operation of the task, for its constants."""

    def add(self, op: Operation, like: Operation) -> Operation:
        op.location = like.location
        Rewriter.insert_op(op, self.point)
        return op


class _Rotation:
    def __init__(self, loop: scf.ForOp, stages: Stages):
        self.loop = loop
        self.stages = stages
        self.body = loop.body.block
        self.induction = self.body.args[0]
        end = self.body.last_op
        assert end is not None
        self.yielded: Sequence[SSAValue] = end.operands
        self.early = [n for n in range(len(self.yielded)) if n not in stages.late_arguments]
        """Numbers of the carried values that the early stage computes."""
        self.carries_turn = constant_integer(loop.step) != 1
        """True where the number of the last turn does not follow from the bounds alone."""

    def replace(self) -> scf.ForOp:
        """Put the three parts in the place of the loop."""
        conditions = conditions_to_run(self.loop)
        if conditions is not None:
            function = enclosing(self.loop, FuncOp)
            if conditions and function is not None:
                add_conditions(function, conditions)
            made, results = self._parts(_End(InsertPoint.before(self.loop), self.loop))
            for old, new in zip(self.loop.results, results, strict=True):
                old.replace_all_uses_with(new)
        else:
            made = self._guarded()
        Rewriter.erase_op(self.loop)
        return made

    def _guarded(self) -> scf.ForOp:
        """Put the three parts in a branch that is taken where the loop makes a turn."""
        at = _End(InsertPoint.before(self.loop), self.loop)
        runs = at.add(CmpiOp("sgt", self.loop.ub, self.loop.lb), self.loop)
        block, other = Block(), Block()
        made, results = self._parts(_End(InsertPoint.at_end(block), self.loop))
        for end, values in ((block, results), (other, self.loop.iter_args)):
            end.add_op(scf.YieldOp(*values))
        types = [result.type for result in self.loop.results]
        branch = at.add(scf.IfOp(runs.results[0], types, Region(block), Region(other)), self.loop)
        for old, new in zip(self.loop.results, branch.results, strict=True):
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        return made

    def _parts(self, at: _End) -> tuple[scf.ForOp, list[SSAValue]]:
        """Insert the three parts; return the loop, and what the results of the old one are."""
        values: Values = {self.induction: self.loop.lb}
        values.update(zip(self.body.args[1:], self.loop.iter_args, strict=True))
        self._copy([*self.stages.first, *self.stages.between, *self.stages.last], values, at, is_early=True)
        starts = self._carried(values)
        loop = self._loop(starts, at)
        values = self._late_values(loop.results)
        values[self.induction] = loop.results[-1] if self.carries_turn else self._turn_before(self.loop.ub, at)
        self._copy([*self.stages.late, *self.stages.tail], values, at)
        results = dict(zip(self.early, loop.results, strict=False))
        return loop, [results[n] if n in results else values.get(v, v) for n, v in enumerate(self.yielded)]

    def _carried(self, values: Values) -> list[SSAValue]:
        """Return what a turn hands to the next one: what the early stage carries, and what crosses."""
        handed = [*(self.yielded[n] for n in self.early), *self.stages.crossing]
        handed += [self.induction] if self.carries_turn else []
        return [values.get(value, value) for value in handed]

    def _late_values(self, carried: Sequence[SSAValue]) -> Values:
        """Return the values that the late stage takes from what a turn hands to the next one."""
        return dict(zip(self.stages.crossing, carried[len(self.early) :], strict=False))

    def _loop(self, starts: Sequence[SSAValue], at: _End) -> scf.ForOp:
        old = self.loop
        block = Block(arg_types=[self.induction.type, *(value.type for value in starts)])
        names = [self.induction, *(self.body.args[1 + n] for n in self.early), *self.stages.crossing]
        for new, value in zip(block.args, names, strict=False):
            new.name_hint, new.location = value.name_hint, self.induction.location
        if self.carries_turn:
            block.args[-1].name_hint, block.args[-1].location = "before", self.induction.location
        within = _End(InsertPoint.at_end(block), old)
        values: Values = {self.induction: block.args[0]}
        values.update((self.body.args[1 + n], block.args[1 + i]) for i, n in enumerate(self.early))
        self._copy(self.stages.first, values, within, is_early=True)
        late = self._late_values(block.args[1:])
        late[self.induction] = block.args[-1] if self.carries_turn else self._turn_before(block.args[0], within)
        self._copy(self.stages.late, late, within)
        self._copy(self.stages.between, values, within, is_early=True)
        self._copy(self.stages.tail, late, within)
        for n in self.stages.late_arguments:
            values[self.body.args[1 + n]] = late[self.yielded[n]]
        self._copy(self.stages.last, values, within, is_early=True)
        within.add(scf.YieldOp(*self._carried(values)), old)
        second = self._fold(arith.AddiOp(old.lb, old.step), at)
        loop = scf.ForOp(second, old.ub, old.step, starts, block)
        loop.attributes.update(old.attributes)
        at.add(loop, old)
        for result, argument in zip(loop.results, block.args[1:], strict=True):
            result.name_hint = argument.name_hint
        return loop

    def _turn_before(self, turn: SSAValue, at: _End) -> SSAValue:
        """Insert the induction variable of the turn before."""
        return at.add(arith.SubiOp(turn, self.loop.step), self.loop).results[0]

    def _copy(self, ops: Iterable[Operation], values: Values, at: _End, *, is_early: bool = False) -> None:
        """Insert copies of operations, and add their results to `values`."""
        for op in ops:
            copy = op.clone(values)
            known = folded(copy, at.holder)
            if known is not None:
                values[op.results[0]] = known
                copy.erase()
                continue
            at.add(copy, op)
            if is_early and op in self.stages.held_over:
                copy.attributes[HELD_OVER] = UnitAttr()
            for inner, model in zip(copy.walk(), op.walk(), strict=True):
                inner.location = model.location
            for old, new in zip(op.results, copy.results, strict=True):
                new.name_hint = old.name_hint
                values[old] = new

    def _fold(self, op: Operation, at: _End) -> SSAValue:
        known = folded(op, at.holder)
        if known is None:
            return at.add(op, self.loop).results[0]
        op.erase()
        return known
