"""Functions that write text to the host."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, var_operand_def

from .base import INDEX, CBType, TTKernelOp


@irdl_op_definition
class DPrintOp(TTKernelOp):
    """Write a text with integers in the place of each `{}`.

    `thread` is the processor of a compute thread that writes it.
    """

    name = "ttkernel.dprint"

    values = var_operand_def(INDEX)
    format = prop_def(StringAttr)
    thread = opt_prop_def(StringAttr)


@irdl_op_definition
class DPrintBufferOp(TTKernelOp):
    """Write the size and the state of a circular buffer."""

    name = "ttkernel.dprint_buffer"

    cb = operand_def(CBType)
    thread = opt_prop_def(StringAttr)


@irdl_op_definition
class DPrintTilesOp(TTKernelOp):
    """Write the elements of the first tiles that were waited for, or reserved (`written`)."""

    name = "ttkernel.dprint_tiles"

    cb = operand_def(CBType)
    tiles = prop_def(IntegerAttr)
    written = opt_prop_def(UnitAttr)
    thread = opt_prop_def(StringAttr)
