"""Reductions, scans and maps: the region combines whole tensors of elements at once, in about log2(n) steps.

Any association of the elements is right for the hardware's purposes, and it picks its own; here neighbours are
combined first, and always the lower one stands on the left.

Comparisons of a NaN are false, so that functions which choose by them are not associative there: for them elements are
combined one after the other, as the loops after `linalg-lower-tensors` do, and native code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import Block, Operation, Region

from tlx_xdsl.dialects import tt
from tlx_xdsl.numerics.arrays import Array, is_float
from tlx_xdsl.text.diagnostics import report_remark

from ..lanes import LaneGraph, every_lane
from ..machine import Task
from ..numbers import dtype_of
from ..planner import Planner
from ..registry import Built, Kind, Unary, one_or_all, structured

Combine: TypeAlias = Callable[[Task, Sequence[Array], Sequence[Array]], Sequence[Array]]
"""Elements on the left and on the right, of each operand, to what the region makes of them."""

ACCUMULATES: dict[type[Operation], np.ufunc] = {
    arith.AddiOp: np.add,
    arith.MuliOp: np.multiply,
    arith.AndIOp: np.bitwise_and,
    arith.OrIOp: np.bitwise_or,
    arith.XOrIOp: np.bitwise_xor,
    arith.MinSIOp: np.minimum,
    arith.MaxSIOp: np.maximum,
}
"""Integer operations for which every association gives the same bits."""


def _only_operation(block: Block) -> Operation | None:
    """The operation of a region that does nothing else than one to its two arguments."""
    ops = list(block.ops)
    if len(ops) == 2 and len(block.args) == 2 and tuple(ops[0].operands) == tuple(block.args):
        return ops[0]
    return None


def _ufunc(block: Block) -> np.ufunc | None:
    only = _only_operation(block)
    if only is None or dtype_of(only.results[0].type).kind == "b":
        return None
    return ACCUMULATES.get(type(only))


def _at_once(method: Callable[..., Any], axis: int) -> Unary:
    return lambda values: method(values, axis, values.dtype)


def _combine(planner: Planner, region: Region) -> Combine:
    only = _only_operation(region.block)
    if only is not None:
        kind, run = planner.build(only)
        if kind == Kind.PURE:
            return lambda _task, left, right: (run(left[0], right[0]),)
    graph = LaneGraph(planner, region)
    return lambda task, left, right: every_lane(graph, task, [*left, *right])


@structured(tt.ReduceOp)
def reduce(op: tt.ReduceOp, planner: Planner) -> Built:
    """Reduce along one axis, which vanishes."""
    axis = op.axis.value.data
    if (function := _ufunc(op.combine_op.block)) is not None:
        return Kind.PURE, _at_once(function.reduce, axis)
    combine, chooses = _combine(planner, op.combine_op), _only_operation(op.combine_op.block) is None

    def run(task: Task, *sources: Array) -> Any:
        values: Sequence[Array] = [np.moveaxis(source, axis, 0) for source in sources]
        if chooses and _have_nan(sources):
            _remark_on_order(op, sources)
            *_, last = _one_by_one(combine, task, values)
            values = [value[None] for value in last]
        while (count := len(values[0])) > 1:
            even = count // 2 * 2
            joined = combine(task, [value[0:even:2] for value in values], [value[1:even:2] for value in values])
            if even != count:
                joined = [np.concatenate((a, b[even:])) for a, b in zip(joined, values, strict=True)]
            values = joined
        results = [value[0] for value in values]
        return one_or_all(results)

    return Kind.EFFECT, run


@structured(tt.ScanOp)
def scan(op: tt.ScanOp, planner: Planner) -> Built:
    """Each element with all before it, by doubling the number of elements that are combined."""
    axis = op.axis.value.data
    is_reverse = bool(op.reverse.value.data)
    if (function := _ufunc(op.combine_op.block)) is not None:
        forward = _at_once(function.accumulate, axis)
        backward: Unary = lambda values: np.flip(forward(np.flip(values, axis)), axis)  # noqa: E731
        return Kind.PURE, backward if is_reverse else forward
    combine, chooses = _combine(planner, op.combine_op), _only_operation(op.combine_op.block) is None

    def run(task: Task, *sources: Array) -> Any:
        values: Sequence[Array] = [np.moveaxis(source, axis, 0) for source in sources]
        if is_reverse:
            values = [value[::-1] for value in values]
        count, step = len(values[0]), 1
        if chooses and _have_nan(sources):
            _remark_on_order(op, sources)
            columns = zip(*_one_by_one(combine, task, values), strict=True)
            values, step = [np.stack(column) for column in columns], count
        while step < count:
            joined = combine(task, [value[:-step] for value in values], [value[step:] for value in values])
            values = [np.concatenate((a[:step], b)) for a, b in zip(values, joined, strict=True)]
            step *= 2
        if is_reverse:
            values = [value[::-1] for value in values]
        results = [np.moveaxis(value, 0, axis) for value in values]
        return one_or_all(results)

    return Kind.EFFECT, run


def _have_nan(sources: Sequence[Array]) -> bool:
    return any(is_float(source.dtype) and bool(np.isnan(source).any()) for source in sources)


def _one_by_one(combine: Combine, task: Task, values: Sequence[Array]) -> Iterator[Sequence[Array]]:
    """Give each element along the first axis combined with all before it, in their order."""
    found: Sequence[Array] = [value[0] for value in values]
    yield found
    for at in range(1, len(values[0])):
        found = combine(task, found, [value[at] for value in values])
        yield found


def _remark_on_order(op: Operation, sources: Sequence[Array]) -> None:
    """Say where an index is chosen by comparisons of NaN."""
    if any(source.dtype.kind in "iu" for source in sources):
        report_remark(
            op,
            "a NaN is among the numbers: which index this gives depends on the order in which they are compared",
            ("on a GPU the order follows layouts and num_warps; tl.where(x == x, x, ...) before it decides",),
        )


# Maps ----------------------------------------------------------------------------------------------------------------


@structured(tt.MapElementwiseOp)
def map_elementwise(op: tt.MapElementwiseOp, planner: Planner) -> Built:
    """All groups of `pack` elements at once; a group is made of neighbours in row-major order."""
    graph, pack = LaneGraph(planner, op.scalar_op), op.pack.value.data

    def run(task: Task, *sources: Array) -> Any:
        shape = sources[0].shape
        columns = [column for source in sources for column in source.reshape(-1, pack).T]
        out = every_lane(graph, task, columns)
        results = [stacked(out[at : at + pack], shape) for at in range(0, len(out), pack)]
        return one_or_all(results)

    return Kind.EFFECT, run


def stacked(columns: list[Array], shape: tuple[int, ...]) -> Array:
    """The elements of groups, back in one tensor."""
    return np.stack(columns, -1).reshape(shape)
