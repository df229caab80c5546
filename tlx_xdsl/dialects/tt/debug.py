"""Printing and asserting on the device (TritonOps.td)."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, StringAttr, i32
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    prop_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.errors import BREAKPOINT

from ..base import ANY_LIKE, BOOL_LIKE, ORDERED, TritonOp


@irdl_op_definition
class PrintOp(TritonOp):
    """Print a text and, by each thread, its elements of the arguments.

    Example: `tt.print " x: " {hex = false, isSigned = array<i32: 1>} : %0 : tensor<64xi32>`
    """

    name = "tt.print"
    EFFECTS: ClassVar = ORDERED

    prefix = prop_def(StringAttr)
    hex = prop_def(BoolAttr)
    args = var_operand_def(ANY_LIKE)
    is_signed = prop_def(DenseArrayBase.constr(i32), prop_name="isSigned")

    assembly_format = "$prefix attr-dict (`:` $args^ `:` type($args))?"

    def verify_(self) -> None:
        """Every argument is said to be signed or not."""
        if self.args and len(self.is_signed) != len(self.args):
            raise VerifyException(f"has {len(self.args)} arguments but {len(self.is_signed)} signs")


@irdl_op_definition
class AssertOp(TritonOp):
    """Stop the program with `message` unless the condition holds: `tt.assert %0, "text" : tensor<64xi1>`.

    With the message of `BREAKPOINT` the condition never holds: launches on the CPU open the debugger there, and the
    interpreter goes on.
    """

    name = "tt.assert"
    EFFECTS: ClassVar = ORDERED

    condition = operand_def(BOOL_LIKE)
    message = prop_def(StringAttr)

    assembly_format = "$condition `,` $message attr-dict `:` type($condition)"

    @property
    def is_breakpoint(self) -> bool:
        """Return whether it stands for a breakpoint."""
        return self.message.data.endswith(BREAKPOINT)
