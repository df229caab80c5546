"""Scalar code that runs for many elements at once: regions of reductions, scans and `tl.map_elementwise`.

Every value is an array with one number per element (a lane), or one number where all lanes agree. Where lanes take
different ways, each way runs for the lanes that take it, as a warp of the hardware does, and what they bring back is
merged. So a loop costs as many steps as the lane that stays in it longest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import cf, func, scf
from xdsl.dialects.tensor import ExtractOp
from xdsl.ir import Block, Operation, Region
from xdsl.traits import IsTerminator
from xdsl.transforms.dead_code_elimination import would_be_trivially_dead

from tlx_xdsl.dialects import arith, tt
from tlx_xdsl.dialects.linalg import IndexOp
from tlx_xdsl.dialects.memref import LoadOp
from tlx_xdsl.dialects.scf import WhileOp
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.numerics.arrays import Array, Booleans

from .code import FunctionPlan, fault_of
from .faults import Unsupported, fault_at
from .machine import Task
from .planner import Planner
from .registry import Kind

Mask: TypeAlias = Booleans
"""The lanes that run."""
LaneRun: TypeAlias = Callable[[Task, Mask, Sequence[Array]], Sequence[Array]]
"""Runs an operation for some lanes: from its operands to its results, of which only those lanes matter."""


class LaneGraph:
    """A region of blocks with branches, ready to run for many elements."""

    def __init__(self, planner: Planner, region: Region):
        blocks = list(region.blocks)
        self._bodies = [_LaneBody(planner, block) for block in blocks]
        self._numbers = {block: number for number, block in enumerate(blocks)}

    def run(self, task: Task, mask: Mask, values: Sequence[Array]) -> list[Array]:
        """Run from the first block to the ends of the region, always the lanes that have advanced least."""
        pending: dict[int, tuple[Mask, list[Array]]] = {0: (mask, list(values))}
        results: tuple[Mask, list[Array]] | None = None
        while pending:
            number = min(pending)
            active, arguments = pending.pop(number)
            body = self._bodies[number]
            out = body.run(task, active, arguments)
            match body.terminator:
                case cf.BranchOp(successor=target):
                    self._join(pending, target, active, out)
                case cf.ConditionalBranchOp() as op:
                    chosen, count = np.broadcast_to(out[0], active.shape), 1 + len(op.then_arguments)
                    self._join(pending, op.then_block, active & chosen, out[1:count])
                    self._join(pending, op.else_block, active & ~chosen, out[count:])
                case _:
                    results = merge(results, active, out)
        assert results is not None
        return results[1]

    def _join(
        self, pending: dict[int, tuple[Mask, list[Array]]], target: Block, mask: Mask, values: Sequence[Array]
    ) -> None:
        if mask.any():
            number = self._numbers[target]
            pending[number] = merge(pending.get(number), mask, values)


def merge(old: tuple[Mask, list[Array]] | None, mask: Mask, values: Sequence[Array]) -> tuple[Mask, list[Array]]:
    """The lanes of `old` and those of `mask` together, each with its own values."""
    if old is None:
        return mask, list(values)
    return old[0] | mask, [_choose(mask, new, before) for new, before in zip(values, old[1], strict=True)]


def _choose(mask: Mask, new: Array, old: Array) -> Array:
    return new if new is old else np.where(mask, new, old)


def every_lane(code: LaneGraph, task: Task, values: Sequence[Array]) -> list[Array]:
    """Run `code` for all elements of arrays of one shape; its results have that shape."""
    shape = np.shape(values[0])
    return [np.broadcast_to(result, shape) for result in code.run(task, np.ones(shape, np.bool_), values)]


class _LaneBody:
    """One block, without what nothing uses: a tensor that is made only to ask for its type has no lanes."""

    def __init__(self, planner: Planner, block: Block):
        self._arguments = [planner.slot(argument) for argument in block.args]
        self._steps: list[tuple[Operation, LaneRun, list[int], list[int]]] = []
        self._yields: list[int] = []
        self.terminator: Operation | None = None
        dead: set[Operation] = set()
        for op in reversed(list(block.ops)):
            uses = [use.operation for result in op.results for use in result.uses]
            if would_be_trivially_dead(op) and dead.issuperset(uses):
                dead.add(op)
        for op in block.ops:
            if op in dead:
                continue
            operands = [planner.slot(value) for value in op.operands]
            if op is block.last_op and op.has_trait(IsTerminator):
                self.terminator, self._yields = op, operands
                break
            self._steps.append((op, _build(planner, op), operands, [planner.slot(value) for value in op.results]))

    def run(self, task: Task, mask: Mask, values: Sequence[Array]) -> list[Array]:
        """Run for the lanes of `mask`, of which there is at least one."""
        frame = task.frame
        for slot, value in zip(self._arguments, values, strict=True):
            frame[slot] = value
        for op, run, operands, results in self._steps:
            arguments = [frame[slot] for slot in operands]
            try:
                out = run(task, mask, arguments)
            except CompilationError:
                raise
            except Exception as error:
                raise fault_of(op, arguments, error) from error
            for slot, value in zip(results, out, strict=True):
                frame[slot] = value
        return [frame[slot] for slot in self._yields]


def _build(planner: Planner, op: Operation) -> LaneRun:
    """Return what runs an operation for some lanes."""
    match op:
        case arith.SelectOp():
            return lambda _task, _mask, values: (np.where(*values)[()],)
        case scf.IfOp():
            return _if_else(planner, op)
        case scf.ForOp():
            return _for_loop(planner, op)
        case scf.WhileOp() | WhileOp():
            return _while_loop(planner, op)
        case scf.ExecuteRegionOp():
            return LaneGraph(planner, op.region).run
        case tt.CallOp() | func.CallOp():
            return _call(planner, op)
        case IndexOp():
            return _index(planner, op)
        case ExtractOp():
            return _element(planner, op)
        case LoadOp():
            return _load(op)
        case _:
            return _scalar(planner, op)


def _scalar(planner: Planner, op: Operation) -> LaneRun:
    kind, run = planner.build(op)
    if kind == Kind.STEP:
        raise fault_at(op, f"the interpreter can't run '{op.name}' for each element of a tensor", kind=Unsupported)
    is_pure, many = kind == Kind.PURE, len(op.results) != 1

    def on_lanes(task: Task, mask: Mask, values: Sequence[Array]) -> Sequence[Array]:
        if mask.all():
            return _results(run(*values) if is_pure else run(task, *values), many)
        packed = [value[mask] if np.ndim(value) else value for value in values]
        out = _results(run(*packed) if is_pure else run(task, *packed), many)
        return [_spread(mask, value) for value in out]

    return on_lanes


def _index(planner: Planner, op: IndexOp) -> LaneRun:
    """The numbers of the iterations, which the loop nest around has put there."""
    slot = planner.slot(op.result)
    return lambda task, _mask, _values: (task.frame[slot],)


def _element(planner: Planner, op: ExtractOp) -> LaneRun:
    """Elements of a tensor that all lanes share, each at its own indices."""
    _, run = planner.build(op)

    def on_lanes(_task: Task, mask: Mask, values: Sequence[Array]) -> Sequence[Array]:
        tensor, *indices = values
        return (run(tensor, *(np.where(mask, index, 0)[()] for index in indices)),)

    return on_lanes


def _load(op: LoadOp) -> LaneRun:
    """Elements of memory that all lanes share, each at its own indices; lanes that do not run read the first one."""

    def on_lanes(task: Task, mask: Mask, values: Sequence[Any]) -> Sequence[Array]:
        memory, *indices = values
        chosen = indices if mask.all() else [np.where(mask, index, 0) for index in indices]
        return (memory.gather(task, op, chosen)[()],)

    return on_lanes


def _results(out: Any, many: bool) -> Sequence[Array]:
    if many:
        return out or ()
    return (out,)


def _spread(mask: Mask, packed: Array) -> Array:
    if not np.ndim(packed):
        return packed
    result = np.zeros(mask.shape, packed.dtype)
    result[mask] = packed
    return result


def _if_else(planner: Planner, op: scf.IfOp) -> LaneRun:
    then = _LaneBody(planner, op.true_region.block)
    otherwise = _LaneBody(planner, op.false_region.block) if op.false_region.blocks else None

    def run(task: Task, mask: Mask, values: Sequence[Array]) -> Sequence[Array]:
        condition = np.broadcast_to(values[0], mask.shape)
        results: tuple[Mask, list[Array]] | None = None
        for body, active in ((then, mask & condition), (otherwise, mask & ~condition)):
            if body is not None and active.any():
                results = merge(results, active, body.run(task, active, ()))
        return [] if results is None else results[1]

    return run


def _for_loop(planner: Planner, op: scf.ForOp) -> LaneRun:
    body = _LaneBody(planner, op.body.block)

    def run(task: Task, mask: Mask, values: Sequence[Array]) -> Sequence[Array]:
        lower, upper, step, *carried = values
        if (np.broadcast_to(step, mask.shape)[mask] <= 0).any():
            raise fault_at(op, "the step of a loop must be positive")
        wide = [np.asarray(value, np.int64) for value in (lower, upper, step)]
        turns = np.broadcast_to(-((wide[0] - wide[1]) // wide[2]), mask.shape)
        index, turn = lower, 0
        while (active := mask & (turns > turn)).any():
            out = body.run(task, active, [index, *carried])
            carried = merge((mask, carried), active, out)[1]
            index, turn = index + step, turn + 1
        return carried

    return run


def _while_loop(planner: Planner, op: scf.WhileOp | WhileOp) -> LaneRun:
    before, after = _LaneBody(planner, op.before_region.block), _LaneBody(planner, op.after_region.block)

    def run(task: Task, mask: Mask, values: Sequence[Array]) -> Sequence[Array]:
        active, carried = mask, list(values)
        results: tuple[Mask, list[Array]] | None = None
        while active.any():
            go_on, *out = before.run(task, active, carried)
            results = merge(results, active, out)
            active = active & go_on
            if active.any():
                carried = after.run(task, active, out)
        return [] if results is None else results[1]

    return run


def _call(planner: Planner, op: tt.CallOp | func.CallOp) -> LaneRun:
    callee = planner.plan.functions[op.callee.string_value()].op
    if not callee.body.blocks:
        return _scalar(planner, op)
    function = FunctionPlan(callee)
    inner = Planner(planner.plan, function)
    graph = LaneGraph(inner, callee.body)
    slots = inner.count

    def run(task: Task, mask: Mask, values: Sequence[Array]) -> Sequence[Array]:
        caller = task.frame
        task.frame = [None] * slots
        results = graph.run(task, mask, values)
        task.frame = caller
        return results

    return run
