"""Functions that rearrange the elements of blocks."""

from __future__ import annotations

from math import prod

from tlx_xdsl.dialects import tt
from tlx_xdsl.layouts.encodings import Ints

from .. import semantic
from ..builder import Builder, unit
from ..calls import Call, lowers
from ..types import ir_type
from ..values import Tensor, TupleValue, Value

# --- operations -----------------------------------------------------------------------------------------------------


def join(builder: Builder, first: Tensor, second: Tensor) -> Tensor:
    """Two blocks of one type and shape side by side in a new last dimension."""
    shape = (*first.shape, 2)
    return builder.tensor(tt.JoinOp, first.dtype, shape, first, second)


def permute(builder: Builder, value: Tensor, order: Ints) -> Tensor:
    """The dimensions in another order."""
    shape = tuple(value.shape[dim] for dim in order)
    return builder.tensor(tt.TransOp, value.dtype, shape, value, order=order)


def reshape(builder: Builder, value: Tensor, shape: Ints, *, can_reorder: bool = False) -> Tensor:
    """The elements under another shape of the same size."""
    return builder.tensor(tt.ReshapeOp, value.dtype, shape, value, allow_reorder=unit(can_reorder))


# --- arguments ------------------------------------------------------------------------------------------------------


def _sizes(call: Call, parameter: str) -> Ints:
    """Integers that are given one by one, or as one tuple."""
    given = call.args[parameter]
    assert isinstance(given, TupleValue)
    if len(given.items) == 1 and call.visitor.items_of(given.items[0]) is not None:
        call.args[parameter] = given.items[0]
    return call.integers(parameter)


def _shape(call: Call) -> Ints:
    return call.powers_of_two("shape", _sizes(call, "shape"))


def axis_of(call: Call, parameter: str, axis: int, rank: int) -> int:
    """`axis` counted from the first of `rank` dimensions."""
    if not -rank <= axis < rank:
        call.fail(parameter, f"'{parameter}' must be at least {-rank} and less than {rank}, found {axis}")
    return axis % rank


# --- handlers -------------------------------------------------------------------------------------------------------


@lowers("tl.broadcast")
def _broadcast(call: Call) -> Value:
    return TupleValue(semantic.broadcast(call.builder, call.tensor("input"), call.tensor("other")))


@lowers("tl.broadcast_to")
def _broadcast_to(call: Call) -> Value:
    value, shape = call.tensor("input"), _shape(call)
    if value.shape and len(value.shape) != len(shape):
        call.fail("shape", f"{value.describe()} has {len(value.shape)} dimensions, found the shape {list(shape)}")
    return semantic.broadcast_to(call.builder, value, shape)


@lowers("tl.expand_dims")
def _expand_dims(call: Call) -> Value:
    value = call.tensor("input")
    given = call.visitor.items_of(call.args["axis"])
    axes = call.integers("axis") if given is not None else (call.integer("axis"),)
    rank = len(value.shape) + len(axes)
    for axis in axes:
        if not -rank <= axis < rank:
            call.fail("axis", f"invalid axis {axis}: the result's are {-rank} to {rank - 1}")
    places = [axis % rank for axis in axes]
    if len(set(places)) != len(places):
        call.fail("axis", f"duplicate axes, normalized axes = {places}: each axis is inserted once")
    for place in sorted(places):
        value = semantic.expand_dims(call.builder, value, place)
    return value


@lowers("tl.trans")
def _trans(call: Call) -> Value:
    value = call.block("input", "a block of at least two dimensions")
    rank = len(value.shape)
    order = _sizes(call, "dims")
    if not order:
        if rank < 2:
            call.expected("input", "a block of at least two dimensions")
        order = (*range(rank - 2), rank - 1, rank - 2)
    return _permuted(call, value, order)


@lowers("tl.permute")
def _permute(call: Call) -> Value:
    return _permuted(call, call.block("input"), _sizes(call, "dims"))


def _permuted(call: Call, value: Tensor, order: Ints) -> Tensor:
    if sorted(order) != list(range(len(value.shape))):
        expected = ", ".join(map(str, range(len(value.shape))))
        call.fail("dims", f"'dims' must be {expected} in some order, found {list(order)}")
    return permute(call.builder, value, order)


@lowers("tl.reshape")
def _reshape(call: Call) -> Value:
    value, shape = call.tensor("input"), _shape(call)
    if shape:
        result = _reshaped(call, call.block("input"), shape, call.flag("can_reorder"))
        if call.flag("can_reorder"):
            message = "tl.reshape(can_reorder=True) goes with Triton 3.10; without it the elements keep their order"
            call.visitor.warn(result, message)
        return result
    # No dimensions: the number itself.
    if prod(value.shape) != 1:
        call.fail("shape", f"'shape' must keep the {prod(value.shape)} elements of the block, found []")
    return semantic.unsplat(call.builder, value) if value.shape else value


@lowers("tl.view")
def _view(call: Call) -> Value:
    return _reshaped(call, call.block("input"), _shape(call), True)


def _reshaped(call: Call, value: Tensor, shape: Ints, can_reorder: bool) -> Tensor:
    if not shape or prod(shape) != prod(value.shape):
        call.fail("shape", f"'shape' must keep the {prod(value.shape)} elements of the block, found {list(shape)}")
    return reshape(call.builder, value, shape, can_reorder=can_reorder)


@lowers("tl.ravel")
def _ravel(call: Call) -> Value:
    value = call.block("x")
    return reshape(call.builder, value, (prod(value.shape),), can_reorder=call.flag("can_reorder"))


@lowers("tl.squeeze")
def _squeeze(call: Call) -> Value:
    value = call.block("x")
    dim = axis_of(call, "dim", call.integer("dim"), len(value.shape))
    if value.shape[dim] != 1 or len(value.shape) == 1:
        call.fail(
            "dim", f"'dim' must be a dimension of size 1 beside others, found dimension {dim} of {value.describe()}"
        )
    return reshape(call.builder, value, value.shape[:dim] + value.shape[dim + 1 :])


@lowers("tl.unsqueeze")
def _unsqueeze(call: Call) -> Value:
    value = call.block("x")
    dim = axis_of(call, "dim", call.integer("dim"), len(value.shape) + 1)
    return reshape(call.builder, value, (*value.shape[:dim], 1, *value.shape[dim:]))


def _pair(call: Call) -> tuple[Tensor, Tensor]:
    first, second = call.tensor("a"), call.tensor("b")
    if first.dtype != second.dtype:
        call.fail("b", f"both values must have one type, found {first.describe()} and {second.describe()}")
    first, second = semantic.broadcast(call.builder, first, second)
    return first, second


def _joined(call: Call) -> Tensor:
    first, second = _pair(call)
    if first.shape:
        return join(call.builder, first, second)
    blocks = (semantic.splat(call.builder, value, (1,)) for value in (first, second))
    return reshape(call.builder, join(call.builder, *blocks), (2,))


@lowers("tl.join")
def _join(call: Call) -> Value:
    return _joined(call)


@lowers("tl.interleave")
def _interleave(call: Call) -> Value:
    joined = _joined(call)
    if len(joined.shape) == 1:
        return joined
    *outer, last, _ = joined.shape
    return reshape(call.builder, joined, (*outer, 2 * last))


@lowers("tl.split")
def _split(call: Call) -> Value:
    value = call.block("a", "a block whose last dimension has size 2")
    if value.shape[-1] != 2:
        call.expected("a", "a block whose last dimension has size 2")
    builder = call.builder
    is_pair = len(value.shape) == 1
    if is_pair:
        value = semantic.expand_dims(builder, value, 0)
    half = value.shape[:-1]
    op = builder.emit(tt.SplitOp, value, results=[ir_type(value.dtype, half)] * 2)
    halves = tuple(Tensor(result, value.dtype, half) for result in op.results)
    return TupleValue(tuple(semantic.unsplat(builder, part) for part in halves) if is_pair else halves)


@lowers("tl.item")
def _item(call: Call) -> Value:
    value = call.of("self", Tensor, "a block of one element")
    if prod(value.shape) != 1:
        call.expected("self", "a block of one element")
    return semantic.unsplat(call.builder, value) if value.shape else value
