"""Functions that make blocks."""

from __future__ import annotations

from tlx_xdsl.dialects import tt
from tlx_xdsl.frontend import semantic
from tlx_xdsl.frontend.calls import Call, lowers
from tlx_xdsl.frontend.lower.shape import join, permute, reshape
from tlx_xdsl.frontend.values import Constexpr, Value
from tlx_xdsl.language.core import TRITON_MAX_TENSOR_NUMEL, int32, pointer_type


@lowers("tl.arange")
def _arange(call: Call) -> Value:
    start, end = call.integer("start", minimum=0), call.integer("end", minimum=1)
    length = end - start
    if length < 1 or length & (length - 1):
        call.fail(None, f"the range {start} to {end} must have a power of two of elements, found {length}")
    if length > TRITON_MAX_TENSOR_NUMEL or end > int32.get_int_max_value():
        call.fail(None, f"the range {start} to {end} must have {TRITON_MAX_TENSOR_NUMEL} elements at most, below 2**31")
    return call.builder.tensor(tt.MakeRangeOp, int32, (length,), start=start, end=end)


@lowers("tl.full")
def _full(call: Call) -> Value:
    return semantic.full(call.builder, call.shape(scalar=True), call.args["value"], call.dtype())


@lowers("tl.zeros")
def _zeros(call: Call) -> Value:
    return semantic.full(call.builder, call.shape(scalar=True), Constexpr(0), call.dtype())


@lowers("tl.zeros_like")
def _zeros_like(call: Call) -> Value:
    like = call.tensor("input")
    if isinstance(like.dtype, pointer_type):
        call.expected("input", "a block of numbers")
    return semantic.full(call.builder, like.shape, Constexpr(0), like.dtype)


@lowers("tl.cat")
def _cat(call: Call) -> Value:
    first, second = call.block("input"), call.block("other")
    if first.dtype != second.dtype or first.shape != second.shape:
        call.fail("other", f"both blocks must have one type and shape, found {first.describe()}, {second.describe()}")
    rank = len(first.shape)
    dim = call.integer("dim")
    if not -rank <= dim < rank:
        call.fail("dim", f"'dim' must be a dimension of {first.describe()}, found {dim}")
    if call.flag("can_reorder"):
        if rank != 1:
            call.fail("input", f"blocks have one dimension when elements may be reordered, found {first.describe()}")
        return call.builder.tensor(tt.CatOp, first.dtype, (2 * first.shape[0],), first, second)
    dim %= rank
    # The halves lie side by side in a new last dimension, which moves before `dim` and merges with it.
    order = (*range(dim), rank, *range(dim, rank))
    both = permute(call.builder, join(call.builder, first, second), order)
    shape = list(first.shape)
    shape[dim] *= 2
    return reshape(call.builder, both, tuple(shape))
