"""Operations of MLIR's `tensor`: tensors are values, and no operand changes.

What was never written has every bit set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import tensor as upstream
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Attribute, Operation

from tlx_xdsl.dialects import tensor
from tlx_xdsl.dialects.base import shape_of_tensor
from tlx_xdsl.numerics.arrays import Array, poison

from ..faults import fault_at
from ..numbers import dtype_of
from ..registry import Binary, Run, Unary, pure


def _sizes(static: Sequence[int], dynamic: Iterator[Any]) -> tuple[int, ...]:
    """Sizes, of which those that are not in the type come from operands."""
    return tuple(int(next(dynamic)) if size == DYNAMIC_INDEX else size for size in static)


@pure(upstream.EmptyOp)
def empty(op: upstream.EmptyOp) -> Run:
    """Elements that were never written."""
    shape, dtype = shape_of_tensor(op.tensor.type), dtype_of(op.tensor.type)
    return lambda *sizes: poison(_sizes(shape, iter(sizes)), dtype)


@pure(upstream.SplatOp)
def splat(op: upstream.SplatOp) -> Run:
    """One number in all elements, which is held once."""
    shape = shape_of_tensor(op.result.type)

    def run(value: Any, *sizes: Any) -> Array:
        return np.broadcast_to(value, _sizes(shape, iter(sizes)))

    return run


@pure(upstream.FromElementsOp)
def from_elements(op: upstream.FromElementsOp) -> Run:
    """Numbers in row-major order."""
    shape, dtype = shape_of_tensor(op.result.type), dtype_of(op.result.type)
    return lambda *numbers: np.array(numbers, dtype).reshape(shape)


@pure(upstream.ExtractOp)
def extract(op: upstream.ExtractOp) -> Run:
    """One element; or in a body that runs for many, one for each.

    An index of -1 picks an element with every bit set, as `tt.gather` does. Raises Fault for all others outside.
    """
    undefined = poison((), dtype_of(op.result.type))[()]

    def run(values: Array, *indices: Any) -> Any:
        if not indices:
            return values[()]
        masked: Any = np.False_
        for index in indices:
            masked = masked | (np.asarray(index) == -1)
        held = [np.where(masked, 0, index) for index in indices] if masked.any() else indices
        _check_inside(op, np.shape(values), held)
        picked = values[tuple(held)]
        return np.where(masked, undefined, picked)[()] if masked.any() else picked

    return run


def _check_inside(op: Operation, shape: Sequence[int], indices: Sequence[Any]) -> None:
    for axis, (index, size) in enumerate(zip(indices, shape, strict=True)):
        if np.any((np.asarray(index) < 0) | (np.asarray(index) >= size)):
            wrong = np.ravel(index)[np.argmax((np.ravel(index) < 0) | (np.ravel(index) >= size))]
            raise fault_at(op, f"index {int(wrong)} is outside of the {size} elements of dimension {axis}")


@pure(upstream.InsertOp)
def insert(op: upstream.InsertOp) -> Run:
    """A tensor with one element replaced.

    Raises Fault for an index outside.
    """

    def run(number: Any, values: Array, *indices: Any) -> Array:
        _check_inside(op, np.shape(values), indices)
        result = np.array(values)
        result[tuple(indices)] = number
        return result

    return run


# Slices --------------------------------------------------------------------------------------------------------------


def _part(op: upstream.ExtractSliceOp | upstream.InsertSliceOp) -> Callable[[Sequence[Any], Sequence[int]], Any]:
    """Return what gives the numpy index of a slice from its dynamic numbers and the shape that it is a slice of.

    Raises Fault for a slice that does not lie inside.
    """
    static = [tuple(each.get_values()) for each in (op.static_offsets, op.static_sizes, op.static_strides)]

    def index(numbers: Sequence[Any], shape: Sequence[int]) -> tuple[slice, ...]:
        dynamic = iter(numbers)
        parts = list(zip(*(_sizes(each, dynamic) for each in static), strict=True))
        for axis, ((offset, size, stride), held) in enumerate(zip(parts, shape, strict=True)):
            last = offset + (size - 1) * stride
            if size < 0 or (size and not (0 <= offset < held and 0 <= last < held)):
                raise fault_at(
                    op, f"elements {offset} to {last} are not inside of the {held} elements of dimension {axis}"
                )
        return tuple(slice(offset, offset + size * stride, stride) for offset, size, stride in parts)

    return index


def _dropped(type_: Attribute, sizes: Sequence[int]) -> tuple[int, ...]:
    """The shape of a tensor of `type_` with those sizes, of which some that are 1 are left out."""
    held = iter(sizes)
    shape: list[int] = []
    for size in shape_of_tensor(type_):
        # Sizes are kept in order; those of 1 that do not match are the ones that are left out.
        found = next(held)
        while size != DYNAMIC_INDEX and found != size:
            found = next(held)
        shape.append(found)
    return tuple(shape)


@pure(upstream.ExtractSliceOp)
def extract_slice(op: upstream.ExtractSliceOp) -> Run:
    """Part of a tensor; dimensions of size 1 may be left out."""
    part, type_ = _part(op), op.result.type

    def run(values: Array, *numbers: Any) -> Array:
        picked = values[part(numbers, np.shape(values))]
        return picked.reshape(_dropped(type_, picked.shape))

    return run


@pure(upstream.InsertSliceOp)
def insert_slice(op: upstream.InsertSliceOp) -> Run:
    """A tensor with a part replaced, in which dimensions of size 1 may be left out."""
    part = _part(op)

    def run(values: Array, whole: Array, *numbers: Any) -> Array:
        result = np.array(whole)
        index = part(numbers, np.shape(whole))
        result[index] = np.reshape(values, np.shape(result[index]))
        return result

    return run


# Shapes --------------------------------------------------------------------------------------------------------------


@pure(tensor.CollapseShapeOp)
def collapse_shape(op: tensor.CollapseShapeOp) -> Unary:
    """Neighbouring dimensions become one."""
    groups = [[dim.value.data for dim in group] for group in op.reassociation]

    def run(values: Array) -> Array:
        sizes = np.shape(values)
        return values.reshape([int(np.prod([sizes[dim] for dim in group])) for group in groups])

    return run


@pure(tensor.ExpandShapeOp)
def expand_shape(op: tensor.ExpandShapeOp) -> Run:
    """One dimension becomes several."""
    static = tuple(op.static_output_shape.get_values())

    def run(values: Array, *sizes: Any) -> Array:
        return np.reshape(values, _sizes(static, iter(sizes)))

    return run


@pure(upstream.ReshapeOp)
def reshape(_op: upstream.ReshapeOp) -> Binary:
    """Any shape, in row-major order."""
    return lambda values, shape: np.reshape(values, [int(size) for size in shape])


@pure(upstream.CastOp)
def cast_tensor(op: upstream.CastOp) -> Unary:
    """The same tensor, of which more or fewer sizes are known.

    Raises Fault where a size is not what the type says.
    """
    shape = shape_of_tensor(op.dest.type)

    def run(values: Array) -> Array:
        if any(size not in (DYNAMIC_INDEX, held) for size, held in zip(shape, values.shape, strict=True)):
            raise fault_at(op, f"a tensor of sizes {list(values.shape)} is no {op.dest.type}")
        return values

    return run


@pure(upstream.DimOp)
def dim(_op: upstream.DimOp) -> Binary:
    """The size of a dimension."""
    return lambda values, number: np.int64(np.shape(values)[int(number)])


@pure(upstream.ConcatOp)
def concat(op: upstream.ConcatOp) -> Run:
    """Tensors one after the other along a dimension."""
    axis = int(op.dim.value.data)
    return lambda *values: np.concatenate(values, axis)
