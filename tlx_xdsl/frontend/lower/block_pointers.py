"""Block pointers, which Triton had until 3.8: a block of a tensor that moves, read and written at its offsets.

They are no value of the IR here: each access makes pointers of the offsets, and a mask of the bounds that it checks. As
in Triton, offsets are int32, shape and strides int64, all in elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from tlx_xdsl.dialects import tt
from tlx_xdsl.language.core import dtype, int32, int64, pointer_type

from .. import semantic
from ..builder import Builder
from ..calls import Call, lowers, lowers_method
from ..values import NONE, BlockPointer, Constexpr, Tensor, Value

_PADDING = {"": None, "zero": 0.0, "nan": float("nan")}
"""Values of elements outside of the tensor; None for undefined ones."""


def _scalars(call: Call, parameter: str, rank: int | None, element: dtype) -> tuple[Tensor, ...]:
    """The argument: an integer for each dimension, of which there are `rank` if that is known."""
    items = call.items(parameter, "a tuple of integers")
    if rank is not None and len(items) != rank:
        call.fail(parameter, f"'{parameter}' must have {rank} items, one for each dimension, found {len(items)}")
    return tuple(call.as_scalar(parameter, item, element) for item in items)


@lowers("tl.make_block_ptr")
def _make_block_ptr(call: Call) -> Value:
    base, _ = call.pointer("base", scalar=True)
    block = call.shape("block_shape")
    rank = len(block)
    if sorted(call.integers("order")) != list(range(rank)):
        call.fail("order", f"'order' must be a permutation of the {rank} dimensions")
    return BlockPointer(
        base,
        _scalars(call, "shape", rank, int64),
        _scalars(call, "strides", rank, int64),
        _scalars(call, "offsets", rank, int32),
        block,
    )


@lowers("tl.advance")
@lowers_method(BlockPointer, "advance", "base", "offsets")
def _advance(call: Call) -> Value:
    pointer = call.of("base", BlockPointer, "a block pointer (tl.make_block_ptr)")
    steps = _scalars(call, "offsets", len(pointer.block_shape), int32)
    moved = (semantic.binary(call.builder, "+", old, step) for old, step in zip(pointer.offsets, steps, strict=True))
    return replace(pointer, offsets=cast("tuple[Tensor, ...]", tuple(moved)))


def resolved(call: Call) -> Call:
    """The call of a load or store, with pointers and a mask instead of a block pointer.

    A call with other pointers is returned as it is. Raises the error that only block pointers have bounds to check.
    """
    pointer = call.args["pointer"]
    padding = call.choice("padding_option", _PADDING) if "padding_option" in call.args else None
    checked = call.integers("boundary_check")
    if not isinstance(pointer, BlockPointer):
        for parameter, given in (("boundary_check", checked), ("padding_option", padding is not None)):
            if given:
                call.fail(parameter, f"'{parameter}' is for block pointers (tl.make_block_ptr): give a mask")
        return call
    for parameter in ("mask", "other"):
        if parameter in call.args and call.given(parameter):
            call.fail(parameter, f"'{parameter}' is not for block pointers: boundary_check names dimensions to check")
    rank = len(pointer.block_shape)
    if any(not 0 <= dim < rank for dim in checked):
        call.fail("boundary_check", f"'boundary_check' must name some of the {rank} dimensions, found {list(checked)}")
    pointers, mask = _pointers(call.builder, pointer, checked)
    args = call.args | {"pointer": pointers, "mask": NONE if mask is None else mask}
    if padding is not None and mask is not None:
        element = cast(pointer_type, pointer.base.dtype).element_ty
        if not element.is_floating():
            if padding != 0:
                call.fail("padding_option", f"{element} has no NaN")
            padding = 0
        args["other"] = Constexpr(padding)
    return replace(call, args=args)


def _pointers(builder: Builder, pointer: BlockPointer, checked: Sequence[int]) -> tuple[Tensor, Tensor | None]:
    """A pointer to each element of the block, and whether it is within the tensor along the dimensions `checked`."""
    rank = len(pointer.block_shape)
    places, mask = pointer.base, None
    for dim, size in enumerate(pointer.block_shape):
        line = _plus(builder, semantic.cast(builder, pointer.offsets[dim], int64), _range(builder, size))
        for other in range(rank):
            if other != dim:
                line = semantic.expand_dims(builder, line, other)
        step = cast(Tensor, semantic.binary(builder, "*", line, pointer.strides[dim]))
        places = _plus(builder, places, step)
        if dim in checked:
            low = semantic.compare(builder, ">=", line, Constexpr(0))
            high = semantic.compare(builder, "<", line, pointer.shape[dim])
            inside = cast(Tensor, semantic.binary(builder, "&", low, high))
            mask = inside if mask is None else cast(Tensor, semantic.binary(builder, "&", mask, inside))
    if mask is not None:
        mask = semantic.broadcast_to(builder, mask, pointer.block_shape)
    return semantic.broadcast_to(builder, places, pointer.block_shape), mask


def _plus(builder: Builder, lhs: Tensor, rhs: Tensor) -> Tensor:
    return cast(Tensor, semantic.binary(builder, "+", lhs, rhs))


def _range(builder: Builder, size: int) -> Tensor:
    """0 to `size` - 1, as int64."""
    return semantic.cast(builder, builder.tensor(tt.MakeRangeOp, int32, (size,), start=0, end=size), int64)
