"""Shapes of runtime values: repeating, broadcasting, inserting dimensions."""

from __future__ import annotations

from tlx_xdsl.dialects import tt
from tlx_xdsl.layouts.encodings import Ints

from .builder import Builder
from .types import SemanticError
from .values import Tensor


def splat(builder: Builder, value: Tensor, shape: Ints) -> Tensor:
    """A block of `shape` with the scalar `value` everywhere."""
    if not shape:
        return value
    return builder.tensor(tt.SplatOp, value.dtype, shape, value)


def unsplat(builder: Builder, value: Tensor) -> Tensor:
    """The only element of a block."""
    return builder.tensor(tt.UnsplatOp, value.dtype, (), value)


def expand_dims(builder: Builder, value: Tensor, axis: int) -> Tensor:
    """Insert a dimension of size 1; a scalar becomes a block of one element."""
    if not value.shape:
        return splat(builder, value, (1,))
    shape = (*value.shape[:axis], 1, *value.shape[axis:])
    return builder.tensor(tt.ExpandDimsOp, value.dtype, shape, value, axis=axis)


def broadcast_to(builder: Builder, value: Tensor, shape: Ints) -> Tensor:
    """`value` repeated to `shape`; missing dimensions are the first ones.

    Raises SemanticError when a dimension is neither 1 nor the wanted size.
    """
    if value.shape == shape:
        return value
    if not value.shape:
        return splat(builder, value, shape)
    padded = (1,) * (len(shape) - len(value.shape)) + value.shape
    if len(padded) != len(shape) or any(have not in (1, want) for have, want in zip(padded, shape, strict=True)):
        raise SemanticError(f"cannot broadcast the shape {list(value.shape)} to {list(shape)}")
    while len(value.shape) < len(shape):
        value = expand_dims(builder, value, 0)
    if value.shape == shape:
        return value
    return builder.tensor(tt.BroadcastOp, value.dtype, shape, value)


def common_shape(*shapes: Ints) -> Ints:
    """The shape that all of `shapes` broadcast to.

    Raises SemanticError when there is none.
    """
    rank = max(len(shape) for shape in shapes)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    result: list[int] = []
    for sizes in zip(*padded, strict=True):
        wanted = {size for size in sizes if size != 1}
        if len(wanted) > 1:
            shown = " and ".join(str(list(shape)) for shape in shapes)
            raise SemanticError(f"shapes {shown} do not broadcast: sizes must be equal or 1")
        result.append(wanted.pop() if wanted else 1)
    return tuple(result)


def broadcast(builder: Builder, *values: Tensor) -> tuple[Tensor, ...]:
    """All values, repeated to their common shape.

    Raises SemanticError when there is none.
    """
    shape = common_shape(*(value.shape for value in values))
    return tuple(broadcast_to(builder, value, shape) for value in values)
