"""What the functions of `tl` become."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i32

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.tt.func import AXES
from tlx_xdsl.frontend import semantic
from tlx_xdsl.frontend.calls import Call, lowers
from tlx_xdsl.frontend.types import ir_type
from tlx_xdsl.frontend.values import Constexpr, Tensor, Value
from tlx_xdsl.language.core import int32


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
