"""Functions of the vector unit on integers in destination registers, and conversions between types of elements.

TT-Metalium, "Compute APIs": registers hold integers as they are in memory.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, prop_def

from .base import INDEX, ComputeOp, SFPUInitOp


class IntTileInitOp(SFPUInitOp):
    """Base of what prepares for operations on integers: `format` is their type."""

    format = prop_def(Attribute)


class IntTileOp(ComputeOp):
    """Base of the operations on integers in two destination registers: `format` is their type."""

    a = operand_def(INDEX)
    b = operand_def(INDEX)
    dst = operand_def(INDEX)
    format = prop_def(Attribute)


@irdl_op_definition
class AddIntTileInitOp(IntTileInitOp):
    """Prepare for `add_int_tile`."""

    name = "ttkernel.add_int_tile_init"


@irdl_op_definition
class AddIntTileOp(IntTileOp):
    """Sum of the integers of two destination registers, without what exceeds their bits."""

    name = "ttkernel.add_int_tile"


@irdl_op_definition
class SubIntTileInitOp(IntTileInitOp):
    """Prepare for `sub_int_tile`."""

    name = "ttkernel.sub_int_tile_init"


@irdl_op_definition
class SubIntTileOp(IntTileOp):
    """Difference of the integers of two destination registers, without what exceeds their bits."""

    name = "ttkernel.sub_int_tile"


@irdl_op_definition
class MulIntTileInitOp(IntTileInitOp):
    """Prepare for `mul_int_tile`."""

    name = "ttkernel.mul_int_tile_init"


@irdl_op_definition
class MulIntTileOp(IntTileOp):
    """Product of the integers of two destination registers, without what exceeds their bits."""

    name = "ttkernel.mul_int_tile"


@irdl_op_definition
class MaxIntTileInitOp(IntTileInitOp):
    """Prepare for `max_int_tile`."""

    name = "ttkernel.max_int_tile_init"


@irdl_op_definition
class MaxIntTileOp(IntTileOp):
    """The larger ones of the integers of two destination registers."""

    name = "ttkernel.max_int_tile"


@irdl_op_definition
class MinIntTileInitOp(IntTileInitOp):
    """Prepare for `min_int_tile`."""

    name = "ttkernel.min_int_tile_init"


@irdl_op_definition
class MinIntTileOp(IntTileOp):
    """The smaller ones of the integers of two destination registers."""

    name = "ttkernel.min_int_tile"


@irdl_op_definition
class FillTileIntOp(ComputeOp):
    """Fill a destination register with an integer, whose type is that of `value`."""

    name = "ttkernel.fill_tile_int"

    dst = operand_def(INDEX)
    value = prop_def(IntegerAttr)


@irdl_op_definition
class TypecastTileInitOp(SFPUInitOp):
    """Prepare for `typecast_tile` between these types."""

    name = "ttkernel.typecast_tile_init"

    source = prop_def(Attribute)
    target = prop_def(Attribute)


@irdl_op_definition
class TypecastTileOp(ComputeOp):
    """Convert the elements of a destination register from one type to another."""

    name = "ttkernel.typecast_tile"

    dst = operand_def(INDEX)
    source = prop_def(Attribute)
    target = prop_def(Attribute)
