"""Tensors as values with a place in memory: which operands an operation may overwrite, and which results are views.

This is what bufferization asks of an operation (MLIR's `DestinationStyleOpInterface` and a part of its
`BufferizableOpInterface`). An operation in *destination style* takes a tensor for each one that it makes, in whose
place the result may be; a *view* has the elements of its source, or some of them. What is not listed is neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import NamedTuple

from xdsl.dialects import scf, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from . import linalg


class Destination(NamedTuple):
    """A result that may be in the place of an operand."""

    operand: int
    """The number of the operand."""
    result: int
    is_read: bool
    """Whether the elements that the operand has before play a part."""


@singledispatch
def destinations(op: Operation) -> Sequence[Destination]:
    """Return the destinations of the results of `op`, in their order; none for most operations."""
    return ()


@singledispatch
def in_step(op: Operation, operand: int, destination: Destination) -> bool:
    """Return whether an element of an operand is read only for the element at the same place of that result.

    Then the two may be one memory: no element is read after it was written.
    """
    return False


@singledispatch
def viewed(op: Operation) -> SSAValue | None:
    """Return the tensor of which the only result of `op` is a view; None for other operations."""
    return None


@destinations.register
def _structured(op: LinalgStructuredOperation) -> Sequence[Destination]:
    first = len(op.inputs)
    arguments = op.body.block.args[first:]
    overwrites = isinstance(op, linalg.FillOp | linalg.BroadcastOp | linalg.TransposeOp)
    tensors = [number for number, value in enumerate(op.outputs) if isinstance(value.type, TensorType)]
    return [
        Destination(first + number, result, not overwrites and arguments[number].first_use is not None)
        for result, number in enumerate(tensors)
    ]


@destinations.register(linalg.BroadcastOp)
@destinations.register(linalg.TransposeOp)
def _one_of_two(op: Operation) -> Sequence[Destination]:
    return (Destination(1, 0, False),) if op.results else ()


@destinations.register(tensor.InsertOp)
@destinations.register(tensor.InsertSliceOp)
def _into_second(_op: Operation) -> Sequence[Destination]:
    return (Destination(1, 0, True),)


_FIRST_CARRIED = 3
"""The operands of a `scf.for` before those that it carries: its bounds and its step."""


@destinations.register
def _carried(op: scf.ForOp) -> Sequence[Destination]:
    return [
        Destination(_FIRST_CARRIED + number, number, True)
        for number, value in enumerate(op.results)
        if isinstance(value.type, TensorType)
    ]


@in_step.register
def _same_map(op: linalg.GenericOp, operand: int, destination: Destination) -> bool:
    if any(kind.data is not IteratorType.PARALLEL for kind in op.iterator_types):
        return False
    maps = op.indexing_maps.data
    map_ = maps[destination.operand].data
    dims = {expr.position for expr in map_.results if isinstance(expr, AffineDimExpr)}
    return maps[operand].data == map_ and len(dims) == map_.num_dims


@viewed.register(tensor.ExtractSliceOp)
@viewed.register(tensor.ExpandShapeOp)
@viewed.register(tensor.CollapseShapeOp)
def _first_operand(op: Operation) -> SSAValue:
    return op.operands[0]
