"""Functions of the vector unit on one destination register: two operations for each row of `ttl.elementwise`."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, FloatAttr
from xdsl.irdl import operand_def, opt_prop_def

from tlx_xdsl.ttl.elementwise import FUNCTIONS, Function

from ..generated import operation
from .base import INDEX, ComputeOp, SFPUInitOp


class VectorInitOp(SFPUInitOp):
    """Base of the preparations of the vector unit: `ttkernel.exp_tile_init() : () -> ()`."""

    FUNCTION: ClassVar[Function]
    """The function, or the first of several that are prepared for together."""


class VectorOp(ComputeOp):
    """Base of the functions of a register: `ttkernel.clamp_tile(%dst) {parameters = [0.0 : f32, 1.0 : f32]} : ...`."""

    FUNCTION: ClassVar[Function]

    dst = operand_def(INDEX)
    parameters = opt_prop_def(ArrayAttr[FloatAttr])


VECTOR_INITS = {
    each.preparation: operation(
        VectorInitOp,
        f"ttkernel.{each.preparation}",
        f"Prepare for `{each.callee}`, and for what is prepared for with it.",
        __name__,
        FUNCTION=each,
    )
    for each in {each.preparation: each for each in reversed(FUNCTIONS)}.values()
}
"""The operations by the names of the preparing functions."""
VECTOR_CALLS = {
    each.callee: operation(
        VectorOp, f"ttkernel.{each.callee}", f"{each.meaning} In a destination register.", __name__, FUNCTION=each
    )
    for each in FUNCTIONS
}
"""The operations by the names of the functions."""


class VectorInt32Op(ComputeOp):
    """Base of the functions of a register with integers of 32 bits: `ttkernel.abs_tile_int32(%dst) : (index) -> ()`."""

    FUNCTION: ClassVar[Function]

    dst = operand_def(INDEX)


VECTOR_INT32_CALLS = {
    each.int32_callee: operation(
        VectorInt32Op,
        f"ttkernel.{each.int32_callee}",
        f"{each.meaning} In a destination register of integers.",
        __name__,
        FUNCTION=each,
    )
    for each in FUNCTIONS
    if each.has_int32
}
"""The operations by the names of the functions of integers."""
