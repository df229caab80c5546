"""Lowering of the position of a program in the grid."""

from __future__ import annotations

from tlx_xdsl.dialects import tt
from tlx_xdsl.dialects.tt.func import AXES
from tlx_xdsl.frontend import semantic
from tlx_xdsl.frontend.calls import Call, lowers
from tlx_xdsl.frontend.values import Value
from tlx_xdsl.language.core import int32


def _axis(call: Call) -> int:
    axis = call.integer("axis", minimum=0)
    if axis >= len(AXES):
        call.fail("axis", f"the grid has axes 0, 1 and 2, found {axis}")
    return axis


@lowers("tl.program_id")
def _program_id(call: Call) -> Value:
    return call.builder.value(tt.GetProgramIdOp(_axis(call)), int32)


@lowers("tl.num_programs")
def _num_programs(call: Call) -> Value:
    return call.builder.value(tt.GetNumProgramsOp(_axis(call)), int32)


@lowers("tl.to_tensor")
def _to_tensor(call: Call) -> Value:
    return semantic.to_tensor(call.builder, call.args["x"])
