"""Operations of `tensor`, and constants: views, loads, stores and copies."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, cast

from xdsl.dialects import arith as scalar, bufferization, memref as upstream, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IndexType,
    MemRefType,
    StridedLayoutAttr,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue

from tlx_xdsl.dialects import linalg, memref
from tlx_xdsl.dialects.base.assembly import groups_of
from tlx_xdsl.dialects.base.tensors import scalar_type, shape_of_tensor
from tlx_xdsl.dialects.destinations import destinations
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import constant

from ..state import Place, State, bufferize, is_tensor


@bufferize.register
def empty(op: tensor.EmptyOp, state: State) -> None:
    """Remove the operation: the first write to its result gives that a place."""
    state.remove(op)


@bufferize.register
def allocate(op: bufferization.AllocTensorOp, state: State) -> None:
    """The same, unless it is a copy."""
    if op.copy is not None:
        place = state.allocate(op.tensor.type, op, op.tensor.name_hint)
        state.copy(state.place(op.copy, op).memref, place.memref, op)
        state.put(op.tensor, place)
    state.remove(op)


@bufferize.register
def constant_tensor(op: scalar.ConstantOp, state: State) -> None:
    """Memory that is filled with a number, or with one after the other."""
    value = op.value
    if not isinstance(value, DenseIntOrFPElementsAttr):
        raise error_at(op, f"'{op.name}' has no form on memory: its elements are no numbers")
    place = state.allocate(op.result.type, op, op.result.name_hint)
    element = scalar_type(op.result.type)
    if value.is_splat():
        number = state.add(op, constant(cast(float, next(iter(value.iter_values()))), element)).result
        state.add(op, linalg.FillOp([number], [place.memref], []))
    else:
        for indices, each in zip(
            product(*map(range, shape_of_tensor(op.result.type))), value.iter_values(), strict=True
        ):
            number = state.add(op, constant(cast(float, each), element)).result
            _store(state, op, number, place.memref, [_index(state, op, index) for index in indices])
    state.put(op.result, place)
    state.remove(op)


def _index(state: State, anchor: Operation, number: int) -> SSAValue:
    return state.add(anchor, constant(number, IndexType())).result


def _store(state: State, anchor: Operation, value: SSAValue, target: SSAValue, indices: Sequence[SSAValue]) -> None:
    state.add(anchor, memref.StoreOp.create(operands=[value, target, *indices]))


@bufferize.register
def extract(op: tensor.ExtractOp, state: State) -> None:
    """A load; it may be inside of a body of `linalg`."""
    source = state.place(op.tensor, op).memref
    load = memref.LoadOp.create(operands=[source, *op.indices], result_types=[op.result.type])
    op.result.replace_all_uses_with(state.add(op, load).results[0])
    state.remove(op)


@bufferize.register
def insert(op: tensor.InsertOp, state: State) -> None:
    """A store."""
    (destination,) = destinations(op)
    place = state.choose(op, destination)
    _store(state, op, op.scalar, place.memref, list(op.indices))
    state.put(op.result, place)
    state.remove(op)


# Boxes ---------------------------------------------------------------------------------------------------------------


def _box(op: tensor.ExtractSliceOp | tensor.InsertSliceOp, source: SSAValue, shape: Sequence[int]) -> memref.SubviewOp:
    """The view of a box of memory, which has that shape: some of its sizes of 1 may be left out."""
    names = ("static_offsets", "static_sizes", "static_strides")
    operands = [source, *op.offsets, *op.sizes, *op.strides]
    lists = [memref.numbers_of(cast(Any, op.properties[name])) for name in names]
    whole = memref.SubviewOp.infer_result_type(memref.ranked(source.type), *cast(Any, lists))
    return memref.SubviewOp.create(
        operands=operands,
        properties=_properties(op, len(op.operands) - len(operands)),
        result_types=[_kept(whole, shape)],
    )


def _properties(op: Operation, extra: int) -> dict[str, Attribute]:
    properties = dict(op.properties)
    if extra:
        sizes = list(cast(Any, properties["operandSegmentSizes"]).get_values())
        properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, sizes[extra:])
    return properties


def _kept(whole: MemRefType[Attribute], shape: Sequence[int]) -> MemRefType[Attribute]:
    """The type of a box without the dimensions of size 1 that `shape` lacks."""
    if len(shape) == whole.get_num_dims():
        return whole
    strides, offset = memref.strides_of(whole)
    wanted, kept = list(shape), list[int | None]()
    for size, stride in zip(whole.get_shape(), strides, strict=True):
        if wanted and wanted[0] == size:
            wanted.pop(0)
            kept.append(stride)
    return MemRefType(whole.element_type, shape, StridedLayoutAttr(kept, offset), whole.memory_space)


@bufferize.register
def extract_slice(op: tensor.ExtractSliceOp, state: State) -> None:
    """A view."""
    place = state.place(op.source, op)
    view = state.add(op, _box(op, place.memref, shape_of_tensor(op.result.type)))
    state.put_view(op.result, Place(place.buffer, view.results[0]))
    state.remove(op)


@bufferize.register
def insert_slice(op: tensor.InsertSliceOp, state: State) -> None:
    """A copy to a view of the place of the result."""
    (destination,) = destinations(op)
    source = state.place(op.source, op)
    place = state.choose(op, destination)
    view = state.add(op, _box(op, place.memref, shape_of_tensor(op.source.type)))
    state.copy(source.memref, view.results[0], op)
    state.put(op.result, place)
    state.remove(op)


@bufferize.register(tensor.CollapseShapeOp)
@bufferize.register(tensor.ExpandShapeOp)
def reshape(op: tensor.CollapseShapeOp | tensor.ExpandShapeOp, state: State) -> None:
    """A view; where the elements of a collapsed dimension have no one stride, of a copy."""
    place = state.place(op.src, op)
    shape = shape_of_tensor(op.result.type)
    groups = groups_of(op.reassociation)
    made = memref.CollapseShapeOp if isinstance(op, tensor.CollapseShapeOp) else memref.ExpandShapeOp
    if DYNAMIC_INDEX in shape:
        raise error_at(op, f"'{op.name}' has no form on memory where sizes are not known when compiling")
    type_ = made.infer_type(memref.ranked(place.memref.type), groups, shape)
    if type_ is None:
        apart = state.allocate(op.src.type, op)
        state.copy(place.memref, apart.memref, op)
        type_ = made.infer_type(memref.ranked(apart.memref.type), groups, shape)
        assert type_ is not None, "memory without gaps can be collapsed"
        place = apart
    view = state.add(op, made.of(place.memref, groups, type_))
    state.put_view(op.result, Place(place.buffer, view.results[0]))
    state.remove(op)


@bufferize.register
def dim(op: tensor.DimOp, state: State) -> None:
    """The size of memory."""
    if not is_tensor(op.source):
        return
    size = upstream.DimOp(state.place(op.source, op).memref, op.index)
    op.result.replace_all_uses_with(state.add(op, size).results[0])
    state.remove(op)
