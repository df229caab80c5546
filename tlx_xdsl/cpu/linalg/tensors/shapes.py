"""Operations that make tensors or rearrange their elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

from xdsl.dialects import arith as scalar, ub
from xdsl.dialects.builtin import DenseArrayBase, DenseIntOrFPElementsAttr, i32, i64
from xdsl.ir import SSAValue

from tlx_xdsl.dialects import linalg, tt
from tlx_xdsl.dialects.base.tensors import as_tensor, scalar_type, shape_of_tensor

from .emitter import Emitter, Options, like, lowers


@lowers(scalar.ConstantOp)
def constant(emit: Emitter, op: scalar.ConstantOp, _options: Options) -> Sequence[SSAValue]:
    """A `linalg.fill`, which fuses into its users and may be the accumulator of a product; elements that differ stay.

    (A dense constant becomes a read-only global, which upstream copies wherever it is written to.)
    """
    value, type_ = op.value, op.result.type
    assert isinstance(value, DenseIntOrFPElementsAttr)
    if not value.is_splat():
        return op.results
    number = cast(float, next(iter(value.iter_values())))
    return [emit.filled(emit.constant(number, scalar_type(type_)), type_)]


@lowers(ub.PoisonOp)
def poison(emit: Emitter, op: ub.PoisonOp, _options: Options) -> Sequence[SSAValue]:
    """A tensor whose elements may be anything."""
    return [emit.empty(op.result.type)]


@lowers(tt.SplatOp)
def splat(emit: Emitter, op: tt.SplatOp, _options: Options) -> Sequence[SSAValue]:
    """A `linalg.fill`."""
    number = op.src if as_tensor(op.src.type) is None else emit.element(op.src, [])
    return [emit.filled(number, op.result.type)]


@lowers(tt.UnsplatOp)
def unsplat(emit: Emitter, op: tt.UnsplatOp, _options: Options) -> Sequence[SSAValue]:
    """A `tensor.extract` of the first element."""
    indices = [emit.index(0) for _ in shape_of_tensor(op.src.type)]
    return [emit.element(op.src, indices)]


@lowers(tt.MakeRangeOp)
def make_range(emit: Emitter, op: tt.MakeRangeOp, _options: Options) -> Sequence[SSAValue]:
    """A `linalg.generic` of its own index."""
    start = op.start.value.data

    def body(inner: Emitter, _values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        number = inner.result(scalar.IndexCastOp(inner.result(linalg.IndexOp(0)), i32))
        return [inner.result(scalar.AddiOp(number, inner.constant(start, i32))) if start else number]

    return emit.generic([], [op.result.type], body)


@lowers(tt.BroadcastOp)
def broadcast(emit: Emitter, op: tt.BroadcastOp, _options: Options) -> Sequence[SSAValue]:
    """A `linalg.broadcast` along the dimensions that grow, which the source loses first."""
    source, result = shape_of_tensor(op.src.type), shape_of_tensor(op.result.type)
    grown = [dim for dim, size in enumerate(source) if size != result[dim]]
    if not grown:
        return [op.src]
    kept = emit.reshaped(op.src, [size for dim, size in enumerate(source) if dim not in grown])
    dimensions = DenseArrayBase.from_list(i64, grown)
    return [emit.result(linalg.BroadcastOp(kept, emit.empty(op.result.type), dimensions))]


@lowers(tt.ReshapeOp, tt.ExpandDimsOp)
def reshape(emit: Emitter, op: tt.ReshapeOp | tt.ExpandDimsOp, _options: Options) -> Sequence[SSAValue]:
    """A `tensor.expand_shape` or a `tensor.collapse_shape`, or both by way of one dimension, in row-major order."""
    return [emit.reshaped(op.src, shape_of_tensor(op.result.type))]


@lowers(tt.TransOp)
def transpose(emit: Emitter, op: tt.TransOp, _options: Options) -> Sequence[SSAValue]:
    """A `linalg.transpose`."""
    order = DenseArrayBase.from_list(i64, list(op.order.get_values()))
    return [emit.result(linalg.TransposeOp(op.src, emit.empty(op.result.type), order))]


@lowers(tt.JoinOp)
def join(emit: Emitter, op: tt.JoinOp, _options: Options) -> Sequence[SSAValue]:
    """Two `tensor.insert_slice`."""
    return [stacked(emit, [op.lhs, op.rhs])]


def stacked(emit: Emitter, values: Sequence[SSAValue]) -> SSAValue:
    """Tensors of one type along a new last dimension."""
    shape = shape_of_tensor(values[0].type)
    whole = emit.empty(like(values[0].type, (*shape, len(values))))
    for number, value in enumerate(values):
        whole = emit.inserted(value, whole, [*([0] * len(shape)), number], [*shape, 1])
    return whole


def unstacked(emit: Emitter, value: SSAValue) -> list[SSAValue]:
    """The parts of a tensor along its last dimension, which vanishes."""
    *shape, count = shape_of_tensor(value.type)
    return [emit.slice(value, [*([0] * len(shape)), number], [*shape, 1], shape) for number in range(count)]


@lowers(tt.SplitOp)
def split(emit: Emitter, op: tt.SplitOp, _options: Options) -> Sequence[SSAValue]:
    """Two `tensor.extract_slice`."""
    return unstacked(emit, op.src)


@lowers(tt.CatOp)
def cat(emit: Emitter, op: tt.CatOp, _options: Options) -> Sequence[SSAValue]:
    """The elements of the first, then those of the second, in row-major order."""
    shape = shape_of_tensor(op.result.type)
    half = prod(shape) // 2
    whole = emit.empty(like(op.result.type, [2 * half]))
    for start, part in ((0, op.lhs), (half, op.rhs)):
        whole = emit.inserted(emit.reshaped(part, [half]), whole, [start], [half])
    return [emit.reshaped(whole, shape)]


@lowers(tt.GatherOp)
def gather(emit: Emitter, op: tt.GatherOp, _options: Options) -> Sequence[SSAValue]:
    """A `linalg.generic` that extracts the elements."""
    source, axis = op.src, op.axis.value.data
    rank = len(shape_of_tensor(source.type))

    def body(inner: Emitter, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        indices = [
            inner.to_index(values[0]) if dim == axis else inner.result(linalg.IndexOp(dim)) for dim in range(rank)
        ]
        return [inner.element(source, indices)]

    return emit.generic([op.indices], [op.result.type], body)
