"""Functions that make blocks, conversions of element types, and the position of a program in the grid."""

from __future__ import annotations

from tlx_xdsl.dialects import tt
from tlx_xdsl.language.core import TRITON_MAX_TENSOR_NUMEL, block_type, dtype, int32, pointer_type

from .. import semantic
from ..calls import Call, lowers
from ..conversions import ROUNDINGS
from ..values import Constexpr, Tensor, Value
from .shape import join, permute, reshape


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
        both = call.builder.tensor(tt.CatOp, first.dtype, (2 * first.shape[0],), first, second)
        message = "tl.cat(can_reorder=True) goes with Triton 3.10; without it the elements keep their order"
        call.visitor.warn(both, message)
        return both
    dim %= rank
    # The halves lie side by side in a new last dimension, which moves before `dim` and merges with it.
    order = (*range(dim), rank, *range(dim, rank))
    both = permute(call.builder, join(call.builder, first, second), order)
    shape = list(first.shape)
    shape[dim] *= 2
    return reshape(call.builder, both, tuple(shape))


# --- conversions ------------------------------------------------------------------------------------------------------


def _target(call: Call) -> dtype | pointer_type:
    target = call.python("dtype", "an element type")
    if isinstance(target, block_type):
        target = target.scalar
    if not isinstance(target, dtype | pointer_type):
        call.expected("dtype", "an element type")
    return target


@lowers("tl.cast")
def _cast(call: Call) -> Value:
    return _converted(call, call.tensor("input"))


@lowers("tl.to")
def _to(call: Call) -> Value:
    return _converted(call, call.tensor("self"))


def _converted(call: Call, value: Tensor) -> Value:
    target = _target(call)
    rounding = call.choice("fp_downcast_rounding", ROUNDINGS) if call.given("fp_downcast_rounding") else None
    if call.flag("bitcast"):
        return semantic.bitcast(call.builder, value, target)
    return semantic.cast(call.builder, value, target, rounding)


# --- the grid ---------------------------------------------------------------------------------------------------------


def _axis(call: Call) -> int:
    axis = call.integer("axis", minimum=0)
    if axis >= len(tt.AXES):
        call.fail("axis", f"{call.name.removeprefix('tl.')} axis must be 0, 1, or 2 but got {axis}")
    return axis


@lowers("tl.program_id")
def _program_id(call: Call) -> Value:
    return call.builder.value(tt.GetProgramIdOp(_axis(call)), int32)


@lowers("tl.num_programs")
def _num_programs(call: Call) -> Value:
    return call.builder.value(tt.GetNumProgramsOp(_axis(call)), int32)


@lowers("tl.sums_bfloat16")
def _sums_bfloat16(call: Call) -> Value:
    return Constexpr(call.visitor.unit.sums_bfloat16)


@lowers("tl.to_tensor")
def _to_tensor(call: Call) -> Value:
    return semantic.to_tensor(call.builder, call.args["x"])
