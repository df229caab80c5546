"""Operations of `linalg` on tensors, which are values that do not change, and on memory (MLIR, "'linalg' Dialect").

A structured operation runs its body for all iterations of its parallel dimensions at once, and those of its reduced
dimensions one after the other, as upstream's loops do: the same operations on the same numbers give the same bits.
Products are the exception: `linalg.matmul` adds in numpy's order, as `tt.dot` does here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects import arith as scalar, builtin
from xdsl.dialects.linalg import ops as upstream
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Block, Operation
from xdsl.ir.affine import AffineDimExpr, AffineMap

from tlx_xdsl.dialects import arith, linalg
from tlx_xdsl.dialects.destinations import Destination, in_step
from tlx_xdsl.numerics.arrays import Array
from tlx_xdsl.numerics.elementwise import maximum, maxnum, minimum, minnum
from tlx_xdsl.numerics.matmul import multiply

from ..faults import fault_at
from ..lanes import LaneGraph
from ..machine import Task
from ..memref import MemRef
from ..numbers import dtype_of
from ..planner import Planner
from ..registry import Built, Functions, Kind, Run, one_or_all, structured
from .arith import rounded
from .reduction import ACCUMULATES

_Builder: TypeAlias = Callable[..., Built]
_Grid: TypeAlias = Sequence[Array | np.int64]
"""For each dimension of a loop nest the numbers of its iterations, which broadcast to its parallel dimensions."""


def _structured(*classes: type[Operation]) -> Callable[[_Builder], _Builder]:
    """Register a builder for operations on tensors; on memory, they read all of it and write all of the outputs."""

    def register(builder: _Builder) -> _Builder:
        def build(op: Operation, planner: Planner) -> Built:
            kind, run = builder(op, planner)
            if not any(isinstance(value.type, builtin.MemRefType) for value in op.operands):
                return kind, run
            count = _inputs(op)

            def on_memory(task: Task, *operands: Any) -> None:
                _check_apart(op, operands, count)
                values = [value.read(task, op) if isinstance(value, MemRef) else value for value in operands]
                results = run(*values) if kind is Kind.PURE else run(task, *values)
                outputs: list[MemRef] = [value for value in operands[count:] if isinstance(value, MemRef)]
                for target, result in zip(outputs, results if len(outputs) > 1 else (results,), strict=True):
                    target.write(task, op, result)

            return Kind.EFFECT, on_memory

        structured(*classes)(build)
        return builder

    return register


def _inputs(op: Operation) -> int:
    """The number of operands that are no outputs."""
    return len(op.inputs) if isinstance(op, LinalgStructuredOperation) else 1


def _check_apart(op: Operation, operands: Sequence[Any], count: int) -> None:
    """Raise Fault for an input in memory that is written before all of it is read: the order of iterations is open."""
    for written, output in enumerate(operands[count:], count):
        for number, value in enumerate(operands[:count]):
            if not (isinstance(value, MemRef) and isinstance(output, MemRef) and value.meets(output)):
                continue
            if value.is_same(output) and in_step(op, number, Destination(written, 0, is_read=False)):
                continue
            raise fault_at(op, f"operand {number} is in memory that operand {written} is written to")


@_structured(linalg.FillOp)
def fill(op: linalg.FillOp, _planner: Planner) -> Built:
    """One number in all elements, which is held once."""
    dtypes = [dtype_of(argument.type) for argument in op.body.block.args[len(op.inputs) :]]

    def run(number: Any, *outputs: Array) -> Any:
        filled = [
            np.broadcast_to(np.asarray(number).astype(dtype), np.shape(out))
            for dtype, out in zip(dtypes, outputs, strict=True)
        ]
        return one_or_all(filled)

    return Kind.PURE, run


@_structured(linalg.CopyOp)
def copy(op: linalg.CopyOp, _planner: Planner) -> Built:
    """The elements of the input."""

    def run(value: Array, _out: Array) -> Array:
        return value

    return Kind.PURE, run


@_structured(linalg.TransposeOp)
def transpose(op: linalg.TransposeOp, _planner: Planner) -> Built:
    """The dimensions in another order."""
    order = tuple(int(dim) for dim in op.permutation.get_values())

    def run(value: Array, _out: Array) -> Array:
        return np.transpose(value, order)

    return Kind.PURE, run


@_structured(linalg.BroadcastOp)
def broadcast(op: linalg.BroadcastOp, _planner: Planner) -> Built:
    """Repeated along new dimensions."""
    added = tuple(int(dim) for dim in op.dimensions.get_values())

    def run(value: Array, out: Array) -> Array:
        return np.broadcast_to(np.expand_dims(value, added), np.shape(out))

    return Kind.PURE, run


def _whole_product(op: linalg.MatmulOp | linalg.BatchMatmulOp) -> Run | None:
    """The product as the tensor cores compute it, where that is what `op` asks for."""
    target = dtype_of(op.body.block.args[-1].type)
    usual = op.indexing_maps == type(op).get_irdl_definition().properties["indexing_maps"].default_value
    if not usual or target.name not in ("float32", "float64", "int32"):
        return None

    def run(a: Array, b: Array, c: Array) -> Array:
        return multiply(a, b, c, target)

    return run


@_structured(linalg.MatmulOp, linalg.BatchMatmulOp)
def matmul(op: linalg.MatmulOp | linalg.BatchMatmulOp, planner: Planner) -> Built:
    """Operands are converted to the type of the accumulator."""
    if (product := _whole_product(op)) is not None:
        return Kind.PURE, product
    return loop_nest(op, planner)


_IN_ORDER: dict[type[Operation], np.ufunc] = {scalar.AddfOp: np.add, scalar.MulfOp: np.multiply}
"""Operations of floats, which numpy's `accumulate` does in order."""
_EXTREMA: Functions = {
    scalar.MaximumfOp: maximum, scalar.MinimumfOp: minimum, scalar.MaxnumfOp: maxnum, scalar.MinnumfOp: minnum,
}  # fmt: skip
"""Operations of floats, for which every order gives the same number."""


def _only_combination(block: Block) -> Operation | None:
    """The operation of a body that does nothing else than one to its two arguments, of which it may widen the first."""
    if len(block.args) != 2:
        return None
    element, combined = block.args
    *before, combine, last = block.ops
    match before:
        case []:
            pass
        case [arith.ExtFOp(input=widened, result=wide)] if widened is element:
            element = wide
        case _:
            return None
    both = {*combine.operands} == {element, combined} and [*last.operands] == [*combine.results]
    return combine if both else None


def _whole_reduction(block: Block) -> Callable[[Array], Array] | None:
    """A function that reduces the first dimension of arrays to what `block` makes of it; None for most bodies."""
    if (combine := _only_combination(block)) is None:
        return None
    dtype, class_ = dtype_of(combine.results[0].type), type(combine)
    if (function := ACCUMULATES.get(class_)) is not None and dtype.kind != "b":
        return lambda rows: function.reduce(rows, 0, dtype)
    if (function := _IN_ORDER.get(class_)) is not None and dtype.name in ("float32", "float64"):
        return lambda rows: function.accumulate(rows, 0)[-1]
    if (extremum := _EXTREMA.get(class_)) is not None:
        return lambda rows: _by_halves(rounded(combine, extremum), rows)
    return None


def _by_halves(function: Callable[..., Array], rows: Array) -> Array:
    while len(rows) > 1:
        half = len(rows) // 2
        rows = np.concatenate((function(rows[:half], rows[half : 2 * half]), rows[2 * half :]))
    return rows[0]


@_structured(linalg.ReduceOp)
def reduce(op: linalg.ReduceOp, planner: Planner) -> Built:
    """Reduce in the order of the elements, from the initial value on."""
    function, dimensions = _whole_reduction(op.body.block), op.dimensions.get_values()
    if function is None or len(dimensions) != 1:
        return loop_nest(op, planner)
    axis = int(dimensions[0])

    def run(values: Array, initial: Array) -> Array:
        rows = np.moveaxis(values, axis, 0).astype(initial.dtype, copy=False)
        return function(np.concatenate((initial[None], rows)))

    return Kind.PURE, run


@_structured(
    linalg.GenericOp, upstream.AddOp, upstream.SubOp, upstream.MulOp, upstream.MaxOp, upstream.MinOp, upstream.ExpOp,
    upstream.LogOp, upstream.SqrtOp, upstream.SelectOp, upstream.CopyOp,
)  # fmt: skip
def generic(op: LinalgStructuredOperation, planner: Planner) -> Built:
    """Any loop nest."""
    return loop_nest(op, planner)


def loop_nest(op: LinalgStructuredOperation, planner: Planner) -> Built:
    """The body of `op` for each iteration."""
    nest = _Nest(op, planner)
    return Kind.EFFECT, nest.run


class _Nest:
    """A loop nest, ready to run."""

    def __init__(self, op: LinalgStructuredOperation, planner: Planner):
        kinds = [kind.data for kind in op.get_iterator_types()]
        self._parallel = [dim for dim, kind in enumerate(kinds) if kind is IteratorType.PARALLEL]
        self._reduced = [dim for dim, kind in enumerate(kinds) if kind is not IteratorType.PARALLEL]
        self._maps = [attr.data for attr in op.get_indexing_maps()]
        self._extents = op.get_shapes_to_loops_map() if self._maps and kinds else None
        self._inputs = len(op.inputs)
        self._indices = [
            (planner.slot(inner.result), inner.dim.value.data)
            for inner in op.body.walk()
            if isinstance(inner, linalg.IndexOp) and inner.parent_block() is op.body.block
        ]
        self._body = LaneGraph(planner, op.body)

    def run(self, task: Task, *operands: Any) -> Any:
        """Run the body for all iterations; gives the outputs."""
        shapes = [size for operand in operands for size in np.shape(operand)]
        extents = () if self._extents is None else self._extents.eval(shapes, [])
        lanes = tuple(extents[dim] for dim in self._parallel)
        outputs = [self._read(each, operands[each], self._grid(extents, ())) for each in self._outputs(operands)]
        mask = np.ones(lanes, np.bool_)
        for turn in np.ndindex(*(extents[dim] for dim in self._reduced)):
            grid = self._grid(extents, turn)
            for slot, dim in self._indices:
                task.frame[slot] = np.broadcast_to(grid[dim], lanes)
            inputs = [self._read(each, operands[each], grid) for each in range(self._inputs)]
            values = [np.broadcast_to(value, lanes) for value in (*inputs, *outputs)]
            outputs = self._body.run(task, mask, values)
        written = [
            self._write(each, operands[each], np.broadcast_to(value, lanes), self._grid(extents, ()))
            for each, value in zip(self._outputs(operands), outputs, strict=True)
        ]
        return one_or_all(written)

    def _outputs(self, operands: Sequence[Any]) -> range:
        return range(self._inputs, len(operands))

    def _grid(self, extents: Sequence[int], turn: Sequence[int]) -> _Grid:
        """The numbers of the iterations of each dimension, in one turn of the reduced ones."""
        grid: list[Array | np.int64] = [np.int64(0)] * len(extents)
        for place, dim in enumerate(self._parallel):
            shape = [1] * len(self._parallel)
            shape[place] = extents[dim]
            grid[dim] = np.arange(extents[dim], dtype=np.int64).reshape(shape)
        for dim, number in zip(self._reduced, turn, strict=False):
            grid[dim] = np.int64(number)
        return grid

    def _read(self, number: int, operand: Any, grid: _Grid) -> Any:
        """The elements of an operand that the iterations take."""
        map_ = self._maps[number]
        if not map_.results:
            return operand if np.ndim(operand) == 0 else operand[()]
        if self._is_identity(map_):
            return operand
        return operand[_places(map_, grid)]

    def _write(self, number: int, operand: Any, values: Array, grid: _Grid) -> Array:
        """An output with the elements that the iterations gave."""
        map_ = self._maps[number]
        dtype = operand.dtype
        if self._is_identity(map_) or not map_.results:
            return values.astype(dtype, copy=False)
        result = np.array(operand)
        result[_places(map_, grid)] = values
        return result

    def _is_identity(self, map_: AffineMap) -> bool:
        """True if the parallel dimensions, in their order, are those of the operand."""
        dims = [expr.position if isinstance(expr, AffineDimExpr) else -1 for expr in map_.results]
        return dims == self._parallel


def _places(map_: AffineMap, grid: _Grid) -> tuple[Any, ...]:
    return tuple(expr.eval(cast(Any, grid), []) for expr in map_.results)
