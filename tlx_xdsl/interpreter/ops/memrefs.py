"""Memory of upstream MLIR: `memref`, `bufferization` and `affine`, and casts between pointers and memrefs.

A tensor is a value: what `bufferization.to_tensor` gives does not change when the memory does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import affine, bufferization as upstream_bufferization, builtin, memref as upstream
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from tlx_xdsl.dialects import bufferization, memref
from tlx_xdsl.dialects.base import PointerType, groups_of, tensor_type
from tlx_xdsl.dialects.memref import box_type, element_of, is_memref, kept_dimensions, ranked, sizes_of, strides_of
from tlx_xdsl.numerics.arrays import Array, Dtype, poison, unsigned
from tlx_xdsl.numerics.elementwise import maximum, maxnum, minimum, minnum

from ..faults import fault_at
from ..machine import Task
from ..memref import MemRef, mismatch
from ..numbers import dtype_of
from ..planner import Planner
from ..registry import Built, Kind, Run, Unary, effect, immediate, one_or_all, pure, structured

_Lists: TypeAlias = Callable[[Sequence[Any]], list[list[int]]]
"""From the operands that stand for numbers of some lists to the lists."""


def _dtype(value: SSAValue) -> Dtype:
    return dtype_of(element_of(value.type))


def _lists(*static: builtin.DenseArrayBase[builtin.IntegerType]) -> _Lists:
    """Return what fills lists, some numbers of which are operands."""
    known = [each.get_values() for each in static]

    def fill(operands: Sequence[Any]) -> list[list[int]]:
        rest = iter(operands)
        return [[int(next(rest)) if number == builtin.DYNAMIC_INDEX else number for number in each] for each in known]

    return fill


# Views ---------------------------------------------------------------------------------------------------------------


@pure(memref.ReinterpretCastOp)
def reinterpret_cast(op: memref.ReinterpretCastOp) -> Run:
    """View memory from the base on, whatever the offset and the sizes of the source are."""
    lists = _lists(op.static_offsets, op.static_sizes, op.static_strides)

    def run(source: MemRef, *numbers: Any) -> MemRef:
        (offset,), sizes, strides = lists(numbers)
        return source.view(offset, sizes, strides)

    return run


@pure(upstream.SubviewOp, memref.SubviewOp)
def subview(op: upstream.SubviewOp) -> Run:
    """A box, which must be inside of the source."""
    lists = _lists(op.static_offsets, op.static_sizes, op.static_strides)
    kept = kept_dimensions(box_type(op), ranked(op.result.type))
    assert kept is not None, "the verifier says so"

    def run(source: MemRef, *numbers: Any) -> MemRef:
        offsets, sizes, steps = lists(numbers)
        return source.box(op, offsets, sizes, steps, kept)

    return run


@pure(memref.ExpandShapeOp, memref.CollapseShapeOp)
def reshape_memory(op: memref.ExpandShapeOp | memref.CollapseShapeOp) -> Run:
    """Dimensions split into several, or several as one: those of sizes other than 1 must have one stride."""
    groups, sizes = groups_of(op.reassociation), [int(size) for size in sizes_of(op.result.type) if size is not None]
    expands = isinstance(op, memref.ExpandShapeOp)

    def run(source: MemRef, *_sizes: Any) -> MemRef:
        return source.expanded(groups, sizes) if expands else source.collapsed(op, groups)

    return run


@pure(memref.CastOp)
def cast_memory(op: memref.CastOp) -> Run:
    """The same view; what the type states must be so."""
    if isinstance(op.dest.type, builtin.UnrankedMemRefType):
        return _same
    sizes, (strides, offset) = sizes_of(op.dest.type), strides_of(op.dest.type)

    def run(source: MemRef) -> MemRef:
        fault = (
            mismatch(op, source.shape, sizes, "sizes")
            or mismatch(op, source.strides, strides, "strides")
            or mismatch(op, [source.offset], [offset], "offset")
        )
        if fault is not None:
            raise fault
        return source

    return run


@pure(upstream.MemorySpaceCastOp, upstream.AssumeAlignmentOp)
def same_memory(_op: Operation) -> Unary:
    """The same view: there is one memory, and nothing relies on the alignment."""
    return _same


def _same(source: MemRef) -> MemRef:
    return source


@pure(upstream.DimOp)
def size_of(op: upstream.DimOp) -> Run:
    """One size."""

    def run(source: MemRef, index: Any) -> np.int64:
        if not 0 <= index < len(source.shape):
            raise fault_at(op, f"there is no dimension {index} of {len(source.shape)}")
        return np.int64(source.shape[int(index)])

    return run


@pure(upstream.RankOp)
def rank_of(_op: upstream.RankOp) -> Unary:
    """The number of dimensions."""
    return lambda source: np.int64(len(source.shape))


@pure(upstream.ExtractStridedMetaDataOp)
def metadata(_op: upstream.ExtractStridedMetaDataOp) -> Run:
    """The base as memory of rank 0, the offset, the sizes and the strides."""

    def run(source: MemRef) -> Sequence[Any]:
        return source.view(0, (), ()), *map(np.int64, (source.offset, *source.shape, *source.strides))

    return run


@pure(memref.ExtractAlignedPointerAsIndexOp)
def base_address(op: memref.ExtractAlignedPointerAsIndexOp) -> Unary:
    """The address of the base, without the offset."""
    return lambda source: source.address(op)


def memory_cast(op: builtin.UnrealizedConversionCastOp) -> Unary | None:
    """Memory of any type at a pointer, at an address, or where memory begins; memory as the pointer to its start.

    None for casts of other types.
    """
    types: list[Attribute] = [value.type for value in (*op.inputs, *op.outputs)]
    if len(types) == 2:
        source, result = types
        begins_at = _begin(op, source)
        if begins_at is not None and isinstance(result, builtin.UnrankedMemRefType):
            dtype = dtype_of(element_of(types[1]))
            return lambda value: MemRef(begins_at(value), dtype)
        if begins_at is not None and is_memref(source) and isinstance(result, PointerType):
            return begins_at
    return None


def _begin(op: Operation, type_: Attribute) -> Callable[[Any], Any] | None:
    """Return what gives the address of a pointer, of an i64 or of memory; None for other types."""
    if isinstance(type_, PointerType) or type_ == builtin.i64:
        return np.int64
    return (lambda memory: np.int64(memory.address(op, memory.offset))) if is_memref(type_) else None


# Allocations ---------------------------------------------------------------------------------------------------------


def _shape(type_: Attribute) -> Callable[[Sequence[Any]], list[int]]:
    """Return what fills the sizes of a memref or tensor, some of which are operands."""
    known = ranked(type_).get_shape() if is_memref(type_) else tensor_type(type_).get_shape()

    def fill(operands: Sequence[Any]) -> list[int]:
        rest = iter(operands)
        return [int(next(rest)) if size == builtin.DYNAMIC_INDEX else size for size in known]

    return fill


@pure(upstream.AllocOp, upstream.AllocaOp)
def allocate(op: upstream.AllocOp | upstream.AllocaOp) -> Run:
    """Memory that holds poison."""
    dtype, shape = _dtype(op.memref), _shape(op.memref.type)

    def run(*sizes: Any) -> MemRef:
        return MemRef.allocate(op, dtype, shape(sizes))

    return run


@immediate(upstream.DeallocOp)
def deallocate(_task: Task, op: upstream.DeallocOp, source: MemRef) -> None:
    """The end of the lifetime of an allocation."""
    source.free(op)


@immediate(upstream_bufferization.CloneOp)
def clone(task: Task, op: upstream_bufferization.CloneOp, source: MemRef) -> MemRef:
    """New memory with the same elements."""
    return MemRef.allocate(op, source.dtype, source.shape, source.read(task, op))


@pure(upstream_bufferization.AllocTensorOp)
def allocate_tensor(op: upstream_bufferization.AllocTensorOp) -> Run:
    """The elements of `copy`, or poison."""
    dtype, shape = dtype_of(op.tensor.type), _shape(op.tensor.type)
    copies, sizes = op.copy is not None, len(op.dynamic_sizes)

    def run(*operands: Any) -> Array:
        return np.array(operands[0]) if copies else poison(tuple(shape(operands[:sizes])), dtype)

    return run


# Whole memory --------------------------------------------------------------------------------------------------------


@immediate(memref.CopyOp)
def copy(task: Task, op: memref.CopyOp, source: MemRef, target: MemRef) -> None:
    """All elements, which are read before any is written."""
    target.write(task, op, source.read(task, op))


@immediate(bufferization.ToTensorOp)
def to_tensor(task: Task, op: bufferization.ToTensorOp, source: MemRef) -> Array:
    """The elements as they are now."""
    return source.read(task, op)


@pure(bufferization.ToBufferOp)
def to_buffer(op: bufferization.ToBufferOp) -> Unary:
    """New memory with the elements of the tensor."""
    dtype = _dtype(op.buffer)
    return lambda source: MemRef.allocate(op, dtype, np.shape(source), source)


@immediate(bufferization.MaterializeInDestinationOp)
def materialize(task: Task, op: bufferization.MaterializeInDestinationOp, source: Array, dest: Any) -> Array:
    """Write memory; of a tensor, all elements are others."""
    if isinstance(dest, MemRef):
        dest.write(task, op, source)
    return source


# Single elements -----------------------------------------------------------------------------------------------------


@immediate(upstream.LoadOp, memref.LoadOp)
def load(task: Task, op: upstream.LoadOp, source: MemRef, *indices: Any) -> Any:
    """One element."""
    return source.load(task, op, source.place(op, indices))


@immediate(upstream.StoreOp, memref.StoreOp)
def store(task: Task, op: upstream.StoreOp, value: Any, target: MemRef, *indices: Any) -> None:
    """One element."""
    target.store(task, op, target.place(op, indices), value)


def _mapped(map_: AffineMap, operands: Sequence[Any]) -> tuple[int, ...]:
    """Return what an affine map makes of its operands, the dimensions first."""
    numbers = [int(each) for each in operands]
    return map_.eval(numbers[: map_.num_dims], numbers[map_.num_dims :])


@immediate(affine.LoadOp)
def affine_load(task: Task, op: affine.LoadOp, source: MemRef, *operands: Any) -> Any:
    """One element, whose indices are a map of the operands."""
    return source.load(task, op, source.place(op, _mapped(op.map.data, operands)))


@immediate(affine.StoreOp)
def affine_store(task: Task, op: affine.StoreOp, value: Any, target: MemRef, *operands: Any) -> None:
    """One element, whose indices are a map of the operands."""
    target.store(task, op, target.place(op, _mapped(op.map.data, operands)), value)


@pure(affine.ApplyOp, affine.MinOp)
def affine_number(op: affine.ApplyOp | affine.MinOp) -> Run:
    """The only result of a map, or the least of its results."""
    map_ = op.map.data

    def run(*operands: Any) -> np.int64:
        return np.int64(min(_mapped(map_, operands)))

    return run


# Atomic operations ---------------------------------------------------------------------------------------------------

_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "addf": np.add,
    "addi": np.add,
    "assign": lambda _old, new: new,
    "maximumf": maximum,
    "maxs": np.maximum,
    "maxu": np.maximum,
    "minimumf": minimum,
    "mins": np.minimum,
    "minu": np.minimum,
    "mulf": np.multiply,
    "muli": np.multiply,
    "ori": np.bitwise_or,
    "andi": np.bitwise_and,
    "maxnumf": maxnum,
    "minnumf": minnum,
    "xori": np.bitwise_xor,
}


@effect(memref.AtomicRMWOp)
def read_modify_write(op: memref.AtomicRMWOp) -> Run:
    """The element as it was; programs of other processes have no turn in between."""
    function, dtype = _FUNCTIONS[op.kind_name], dtype_of(op.value.type)
    held = unsigned(dtype) if op.kind_name in ("maxu", "minu") else dtype

    def run(task: Task, value: Any, target: MemRef, *indices: Any) -> Any:
        place = target.place(op, indices)
        with task.global_memory.exclusive:
            old = target.load(task, op, place)
            new = function(old.view(held), value.view(held)).astype(held).view(dtype)
            target.store(task, op, place, new)
        return old

    return run


@structured(memref.GenericAtomicRMWOp)
def generic_read_modify_write(op: memref.GenericAtomicRMWOp, planner: Planner) -> Built:
    """The element as it was, as upstream's lowering gives it; the region makes the new one."""
    body = planner.body(op.body.block)
    if body.suspends:
        raise fault_at(op, "the region of an atomic operation must not wait")

    def run(task: Task, target: MemRef, *indices: Any) -> Any:
        place = target.place(op, indices)
        with task.global_memory.exclusive:
            old = target.load(task, op, place)
            target.store(task, op, place, one_or_all(body.call(task, old)))
        return old

    return Kind.EFFECT, run
