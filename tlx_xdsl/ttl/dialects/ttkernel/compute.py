"""Functions of the compute threads: destination registers, and tiles in them and in circular buffers.

TT-Metalium, "Compute APIs". Tiles of circular buffers are counted from the first one that was waited for or reserved.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, StringAttr, i32
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def

from .base import INDEX, CBType, ComputeOp, FormatsInitOp, MatrixInitOp, ModeInitOp, SFPUInitOp


@irdl_op_definition
class TileRegsAcquireOp(ComputeOp):
    """Take the destination registers for the math processor."""

    name = "ttkernel.tile_regs_acquire"


@irdl_op_definition
class TileRegsCommitOp(ComputeOp):
    """Give the destination registers to the pack processor."""

    name = "ttkernel.tile_regs_commit"


@irdl_op_definition
class TileRegsWaitOp(ComputeOp):
    """Wait until the math processor has given the destination registers."""

    name = "ttkernel.tile_regs_wait"


@irdl_op_definition
class TileRegsReleaseOp(ComputeOp):
    """Give the destination registers back; what they held is lost."""

    name = "ttkernel.tile_regs_release"


@irdl_op_definition
class CopyTileInitOp(MatrixInitOp):
    """Prepare for copies of tiles of a circular buffer."""

    name = "ttkernel.copy_tile_init"
    KEEPS_F32: ClassVar = True

    cb = operand_def(CBType)


@irdl_op_definition
class CopyTileOp(ComputeOp):
    """Copy a tile of a circular buffer to a destination register."""

    name = "ttkernel.copy_tile"
    KEEPS_F32: ClassVar = True

    cb = operand_def(CBType)
    tile = operand_def(INDEX)
    dst = operand_def(INDEX)


@irdl_op_definition
class PackTileOp(ComputeOp):
    """Write a destination register to a place that was reserved, rounded to the type of its tiles."""

    name = "ttkernel.pack_tile"
    KEEPS_F32: ClassVar = True

    dst = operand_def(INDEX)
    cb = operand_def(CBType)
    tile = operand_def(INDEX)


@irdl_op_definition
class PackTileBlockOp(ComputeOp):
    """Write `count` destination registers from `dst` on to the next places of a reservation, which begin at its first.

    They are rounded to the type of its tiles.
    """

    name = "ttkernel.pack_tile_block"
    KEEPS_F32: ClassVar = True

    dst = operand_def(INDEX)
    cb = operand_def(CBType)
    count = operand_def(INDEX)


@irdl_op_definition
class PackReconfigL1AccOp(ComputeOp):
    """Let the packer add to what is in memory (1), or overwrite it (0)."""

    name = "ttkernel.pack_reconfig_l1_acc"

    enabled = operand_def(i32)


@irdl_op_definition
class CopyDestValuesInitOp(SFPUInitOp):
    """Prepare for copies between destination registers."""

    name = "ttkernel.copy_dest_values_init"


@irdl_op_definition
class CopyDestValuesOp(ComputeOp):
    """Copy a destination register to another one; `format` is the type of integers in it."""

    name = "ttkernel.copy_dest_values"

    source = operand_def(INDEX)
    destination = operand_def(INDEX)
    format = opt_prop_def(Attribute)


@irdl_op_definition
class BinaryOpInitCommonOp(FormatsInitOp):
    """Prepare for operations of the matrix unit on two circular buffers."""

    name = "ttkernel.binary_op_init_common"

    in0 = operand_def(CBType)
    in1 = operand_def(CBType)
    out = operand_def(CBType)


class _BuffersInitOp(MatrixInitOp):
    """Base of what prepares for operations on tiles of two circular buffers."""

    in0 = operand_def(CBType)
    in1 = operand_def(CBType)


@irdl_op_definition
class AddTilesInitOp(_BuffersInitOp):
    """Prepare for `add_tiles`."""

    name = "ttkernel.add_tiles_init"


class _MatrixOp(ComputeOp):
    """Base of operations of the matrix unit on tiles of two circular buffers."""

    in0 = operand_def(CBType)
    in1 = operand_def(CBType)
    tile0 = operand_def(INDEX)
    tile1 = operand_def(INDEX)
    dst = operand_def(INDEX)


@irdl_op_definition
class AddTilesOp(_MatrixOp):
    """The sum of two tiles of circular buffers, by the matrix unit."""

    name = "ttkernel.add_tiles"


@irdl_op_definition
class SubTilesInitOp(_BuffersInitOp):
    """Prepare for `sub_tiles`."""

    name = "ttkernel.sub_tiles_init"


@irdl_op_definition
class SubTilesOp(_MatrixOp):
    """The difference of two tiles of circular buffers, by the matrix unit."""

    name = "ttkernel.sub_tiles"


@irdl_op_definition
class MulTilesInitOp(_BuffersInitOp):
    """Prepare for `mul_tiles`."""

    name = "ttkernel.mul_tiles_init"


@irdl_op_definition
class MulTilesOp(_MatrixOp):
    """The product of two tiles of circular buffers, by the matrix unit."""

    name = "ttkernel.mul_tiles"


@irdl_op_definition
class AddBinaryTileInitOp(SFPUInitOp):
    """Prepare for `add_binary_tile`."""

    name = "ttkernel.add_binary_tile_init"


@irdl_op_definition
class AddBinaryTileOp(ComputeOp):
    """The sum of two destination registers, by the vector unit."""

    name = "ttkernel.add_binary_tile"

    dst0 = operand_def(INDEX)
    dst1 = operand_def(INDEX)
    out = operand_def(INDEX)


@irdl_op_definition
class SubBinaryTileInitOp(SFPUInitOp):
    """Prepare for `sub_binary_tile`."""

    name = "ttkernel.sub_binary_tile_init"


@irdl_op_definition
class SubBinaryTileOp(ComputeOp):
    """The difference of two destination registers, by the vector unit."""

    name = "ttkernel.sub_binary_tile"

    dst0 = operand_def(INDEX)
    dst1 = operand_def(INDEX)
    out = operand_def(INDEX)


@irdl_op_definition
class MulBinaryTileInitOp(SFPUInitOp):
    """Prepare for `mul_binary_tile`."""

    name = "ttkernel.mul_binary_tile_init"


@irdl_op_definition
class MulBinaryTileOp(ComputeOp):
    """The product of two destination registers, by the vector unit."""

    name = "ttkernel.mul_binary_tile"

    dst0 = operand_def(INDEX)
    dst1 = operand_def(INDEX)
    out = operand_def(INDEX)


@irdl_op_definition
class DivBinaryTileInitOp(SFPUInitOp):
    """Prepare for `div_binary_tile`."""

    name = "ttkernel.div_binary_tile_init"


@irdl_op_definition
class DivBinaryTileOp(ComputeOp):
    """The quotient of two destination registers, by the vector unit."""

    name = "ttkernel.div_binary_tile"

    dst0 = operand_def(INDEX)
    dst1 = operand_def(INDEX)
    out = operand_def(INDEX)


@irdl_op_definition
class MaxBinaryTileInitOp(SFPUInitOp):
    """Prepare for `max_binary_tile`."""

    name = "ttkernel.max_binary_tile_init"


@irdl_op_definition
class MaxBinaryTileOp(ComputeOp):
    """The larger one of two destination registers, by the vector unit."""

    name = "ttkernel.max_binary_tile"

    dst0 = operand_def(INDEX)
    dst1 = operand_def(INDEX)
    out = operand_def(INDEX)


@irdl_op_definition
class MinBinaryTileInitOp(SFPUInitOp):
    """Prepare for `min_binary_tile`."""

    name = "ttkernel.min_binary_tile_init"


@irdl_op_definition
class MinBinaryTileOp(ComputeOp):
    """The smaller one of two destination registers, by the vector unit."""

    name = "ttkernel.min_binary_tile"

    dst0 = operand_def(INDEX)
    dst1 = operand_def(INDEX)
    out = operand_def(INDEX)


@irdl_op_definition
class RemainderBinaryTileInitOp(SFPUInitOp):
    """Prepare for `remainder_binary_tile`."""

    name = "ttkernel.remainder_binary_tile_init"


@irdl_op_definition
class RemainderBinaryTileOp(ComputeOp):
    """The remainder of two destination registers, with the sign of the divisor, by the vector unit."""

    name = "ttkernel.remainder_binary_tile"

    dst0 = operand_def(INDEX)
    dst1 = operand_def(INDEX)
    out = operand_def(INDEX)


@irdl_op_definition
class WhereTileInitOp(SFPUInitOp):
    """Prepare for `where_tile`."""

    name = "ttkernel.where_tile_init"


@irdl_op_definition
class WhereTileOp(ComputeOp):
    """The elements of `dst1` where those of `dst0` are not zero, and of `dst2` elsewhere, by the vector unit."""

    name = "ttkernel.where_tile"

    dst0 = operand_def(INDEX)
    dst1 = operand_def(INDEX)
    dst2 = operand_def(INDEX)
    out = operand_def(INDEX)


@irdl_op_definition
class InitSFPUOp(FormatsInitOp):
    """Prepare for operations of the vector unit on what comes from a circular buffer."""

    name = "ttkernel.init_sfpu"
    KEEPS_F32: ClassVar = True

    icb = operand_def(CBType)
    ocb = operand_def(CBType)


@irdl_op_definition
class FillTileInitOp(SFPUInitOp):
    """Prepare for `fill_tile`."""

    name = "ttkernel.fill_tile_init"


@irdl_op_definition
class FillTileOp(ComputeOp):
    """Fill a destination register with a number."""

    name = "ttkernel.fill_tile"

    dst = operand_def(INDEX)
    value = prop_def(FloatAttr)


@irdl_op_definition
class MMInitOp(MatrixInitOp):
    """Prepare for products of tiles of two circular buffers."""

    name = "ttkernel.mm_init"

    in0 = operand_def(CBType)
    in1 = operand_def(CBType)
    out = operand_def(CBType)


@irdl_op_definition
class MatmulTilesOp(ComputeOp):
    """Add the product of two tiles of circular buffers to a destination register,
    which is zero after `tile_regs_acquire`.
    """

    name = "ttkernel.matmul_tiles"

    in0 = operand_def(CBType)
    in1 = operand_def(CBType)
    tile0 = operand_def(INDEX)
    tile1 = operand_def(INDEX)
    dst = operand_def(INDEX)


@irdl_op_definition
class MMBlockInitOp(MatrixInitOp):
    """Prepare for products of blocks of tiles: `rt` rows by `ct` columns, in an operand with `kt` tiles in a row."""

    name = "ttkernel.mm_block_init"

    in0 = operand_def(CBType)
    in1 = operand_def(CBType)
    out = operand_def(CBType)
    transpose = operand_def(INDEX)
    ct = operand_def(INDEX)
    rt = operand_def(INDEX)
    kt = operand_def(INDEX)


@irdl_op_definition
class MatmulBlockOp(ComputeOp):
    """Add the products of a column of `rt` tiles and a row of `ct` tiles to `rt` * `ct` destination registers.

    The column begins at `tile0` and has a tile in each `kt`; the row begins at `tile1`. The registers begin at `dst`,
    row by row; they are zero after `tile_regs_acquire`.
    """

    name = "ttkernel.matmul_block"

    in0 = operand_def(CBType)
    in1 = operand_def(CBType)
    tile0 = operand_def(INDEX)
    tile1 = operand_def(INDEX)
    dst = operand_def(INDEX)
    transpose = operand_def(INDEX)
    ct = operand_def(INDEX)
    rt = operand_def(INDEX)
    kt = operand_def(INDEX)


@irdl_op_definition
class UnaryBcastInitOp(ModeInitOp):
    """Prepare for `unary_bcast`."""

    name = "ttkernel.unary_bcast_init"

    icb = operand_def(CBType)
    ocb = operand_def(CBType)
    dims = prop_def(ArrayAttr[IntegerAttr])


@irdl_op_definition
class UnaryBcastOp(ComputeOp):
    """Spread the first row (`dims = [0]`), column (`[1]`) or element (`[0,
    1]`) of a tile of a circular buffer over a destination register.
    """

    name = "ttkernel.unary_bcast"

    icb = operand_def(CBType)
    tile = operand_def(INDEX)
    dst = operand_def(INDEX)
    dims = prop_def(ArrayAttr[IntegerAttr])


@irdl_op_definition
class ReduceInitOp(ModeInitOp):
    """Prepare for `reduce_tile`, and let the packer write zeros beside the result."""

    name = "ttkernel.reduce_init"

    icb = operand_def(CBType)
    scaler = operand_def(CBType)
    ocb = operand_def(CBType)
    dims = prop_def(ArrayAttr[IntegerAttr])
    kind = prop_def(StringAttr)


@irdl_op_definition
class ReduceTileOp(ComputeOp):
    """Add (`kind = "sum"`) or compare (`"max"`) along dimensions of a tile of a circular buffer,
    times the scaler, into a destination register.
    """

    name = "ttkernel.reduce_tile"

    icb = operand_def(CBType)
    scaler = operand_def(CBType)
    tile = operand_def(INDEX)
    scaler_tile = operand_def(INDEX)
    dst = operand_def(INDEX)
    dims = prop_def(ArrayAttr[IntegerAttr])
    kind = prop_def(StringAttr)


@irdl_op_definition
class ReduceUninitOp(ComputeOp):
    """Let the packer write whole tiles again."""

    name = "ttkernel.reduce_uninit"


@irdl_op_definition
class TransposeWHInitOp(MatrixInitOp):
    """Prepare for `transpose_wh_tile`."""

    name = "ttkernel.transpose_wh_init"

    icb = operand_def(CBType)
    ocb = operand_def(CBType)


@irdl_op_definition
class TransposeWHTileOp(ComputeOp):
    """Copy a tile of a circular buffer to a destination register with rows and columns exchanged."""

    name = "ttkernel.transpose_wh_tile"

    icb = operand_def(CBType)
    tile = operand_def(INDEX)
    dst = operand_def(INDEX)


# Rows of elements and tiles: TT-Metalium, `tilize_block` and `pack_untilize_dest`. A circular buffer of rows has a page
# for each row; 32 of its rows are a row of tiles.


@irdl_op_definition
class TilizeInitOp(ModeInitOp):
    """Prepare for `tilize_block` of rows of `width` tiles."""

    name = "ttkernel.tilize_init"
    KEEPS_F32: ClassVar = True

    icb = operand_def(CBType)
    width = operand_def(INDEX)
    ocb = operand_def(CBType)


@irdl_op_definition
class TilizeBlockOp(ComputeOp):
    """Write 32 rows of `icb` as a row of `width` tiles to `ocb`.

    They are those of the tiles from `input_tile` on, a multiple of the width, and are written from `output_tile` on.
    The registers are taken and given back inside.
    """

    name = "ttkernel.tilize_block"
    KEEPS_F32: ClassVar = True

    icb = operand_def(CBType)
    width = operand_def(INDEX)
    ocb = operand_def(CBType)
    input_tile = operand_def(INDEX)
    output_tile = operand_def(INDEX)


@irdl_op_definition
class TilizeUninitOp(ComputeOp):
    """Let the unpacker read tiles again."""

    name = "ttkernel.tilize_uninit"
    KEEPS_F32: ClassVar = True

    icb = operand_def(CBType)
    ocb = operand_def(CBType)


class UntilizeOp(ComputeOp):
    """Base of the calls for `width` tiles in registers, of a row of `full_width` tiles."""

    KEEPS_F32: ClassVar = True

    width = prop_def(IntegerAttr)
    full_width = prop_def(IntegerAttr)


@irdl_op_definition
class PackUntilizeDestInitOp(UntilizeOp, ModeInitOp):
    """Prepare the packer for `pack_untilize_dest`."""

    name = "ttkernel.pack_untilize_dest_init"
    KEEPS_F32: ClassVar = True

    cb = operand_def(CBType)


@irdl_op_definition
class PackUntilizeDestOp(UntilizeOp):
    """Write the first `width` registers as 32 rows of a reservation, of whose `full_width` tiles they are a part.

    `part` is the number of the part.
    """

    name = "ttkernel.pack_untilize_dest"

    cb = operand_def(CBType)
    part = operand_def(INDEX)


@irdl_op_definition
class PackUntilizeUninitOp(ComputeOp):
    """Let the packer write tiles again."""

    name = "ttkernel.pack_untilize_uninit"
    KEEPS_F32: ClassVar = True

    cb = operand_def(CBType)
