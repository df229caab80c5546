"""What the functions of `tl` become."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i32

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.tt.func import AXES
from tlx_xdsl.frontend import semantic
from tlx_xdsl.frontend.calls import Call, lowers
from tlx_xdsl.frontend.types import ir_type
from tlx_xdsl.frontend.values import Constexpr, Tensor, Value
from tlx_xdsl.language.core import dtype, int1, int32, pointer_type


def _axis(call: Call) -> int:
    axis = call.integer("axis", minimum=0)
    if axis >= len(AXES):
        call.fail("axis", f"the grid has axes 0, 1 and 2, found {axis}")
    return axis


@lowers("tl.program_id")
def _program_id(call: Call) -> Value:
    return Tensor(call.builder.insert(tt.GetProgramIdOp(_axis(call))).result, int32)


@lowers("tl.num_programs")
def _num_programs(call: Call) -> Value:
    return Tensor(call.builder.insert(tt.GetNumProgramsOp(_axis(call))).result, int32)


@lowers("tl.arange")
def _arange(call: Call) -> Value:
    start, end = call.integer("start", minimum=0), call.integer("end", minimum=1)
    length = end - start
    if length < 1 or length & (length - 1):
        call.fail(None, f"the range {start} to {end} must have a power of two of elements, found {length}")
    op = tt.MakeRangeOp(
        properties={"start": IntegerAttr(start, i32), "end": IntegerAttr(end, i32)},
        result_types=[ir_type(int32, (length,))],
    )
    return Tensor(call.builder.insert(op).result, int32, (length,))


@lowers("tl.full")
def _full(call: Call) -> Value:
    return semantic.full(call.builder, call.shape(), call.args["value"], call.dtype())


@lowers("tl.zeros")
def _zeros(call: Call) -> Value:
    return semantic.full(call.builder, call.shape(), Constexpr(0), call.dtype())


@lowers("tl.cdiv")
def _cdiv(call: Call) -> Value:
    x, div = call.args["x"], call.args["div"]
    builder = call.builder
    above = semantic.binary(builder, "+", x, semantic.binary(builder, "-", div, Constexpr(1)))
    return semantic.binary(builder, "//", above, div)


@lowers("tl.minimum")
def _minimum(call: Call) -> Value:
    return semantic.binary(call.builder, "min", call.args["x"], call.args["y"])


@lowers("tl.maximum")
def _maximum(call: Call) -> Value:
    return semantic.binary(call.builder, "max", call.args["x"], call.args["y"])


@lowers("tl.where")
def _where(call: Call) -> Value:
    return semantic.where(call.builder, call.args["condition"], call.args["x"], call.args["y"])


def _pointer(call: Call) -> tuple[Tensor, dtype]:
    pointer = call.of("pointer", Tensor, "a pointer or a block of pointers")
    if not isinstance(pointer.dtype, pointer_type):
        call.expected("pointer", "a pointer or a block of pointers")
    return pointer, pointer.dtype.element_ty


def _mask(call: Call, shape: tuple[int, ...]) -> Tensor | None:
    if not call.given("mask"):
        return None
    mask = call.tensor("mask")
    if mask.dtype != int1:
        call.expected("mask", "an int1")
    return semantic.broadcast_to(call.builder, mask, shape)


@lowers("tl.load")
def _load(call: Call) -> Value:
    pointer, element = _pointer(call)
    mask = _mask(call, pointer.shape)
    other = None
    if call.given("other"):
        if mask is None:
            call.fail("other", "'other' needs a mask")
        other = _elements(call, "other", element, pointer.shape).ssa
    op = tt.LoadOp(pointer.ssa, None if mask is None else mask.ssa, other)
    return Tensor(call.builder.insert(op).result, element, pointer.shape)


@lowers("tl.store")
def _store(call: Call) -> Value | None:
    pointer, element = _pointer(call)
    value = _elements(call, "value", element, pointer.shape)
    mask = _mask(call, pointer.shape)
    call.builder.insert(tt.StoreOp(pointer.ssa, value.ssa, None if mask is None else mask.ssa))
    return None


def _elements(call: Call, parameter: str, element: dtype, shape: tuple[int, ...]) -> Tensor:
    """The argument as a block of `shape` with elements of type `element`."""
    value = call.args[parameter]
    if isinstance(value, Constexpr) and isinstance(value.value, bool | int | float):
        return semantic.full(call.builder, shape, value, element) if shape else _scalar(call, value, element)
    return semantic.broadcast_to(call.builder, semantic.cast(call.builder, call.tensor(parameter), element), shape)


def _scalar(call: Call, number: Constexpr, element: dtype) -> Tensor:
    return Tensor(call.builder.constant(number.value, ir_type(element)), element)
