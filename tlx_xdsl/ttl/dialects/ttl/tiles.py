"""Computing with single tiles, and `ttl.compute`, which does it for all tiles of blocks in memory.

A tile is in a destination register (DST) of the core, whose number is `dst_idx`, unless it is an operand that the
operation reads from a circular buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    UnitAttr,
    i1,
    i32,
)
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.ttl.elementwise import FUNCTIONS

from .. import ttkernel
from ..generated import operation
from ..ttcore import BlockFloatType, TileType, format_of, is_float
from .base import ANY_BLOCK, RunsOnThread, Threads, TTLOp, tile_of


class TileOp(TTLOp):
    """Base of the operations on tiles."""

    CB_OPERANDS: ClassVar[tuple[int, ...]] = ()
    """Numbers of the operands that are read from circular buffers."""
    IN_PLACE: ClassVar[bool] = False
    """Whether the hardware writes the result into the register of its operand."""
    LOWERED: ClassVar[tuple[type[IRDLOperation], type[IRDLOperation]]]
    """The function that prepares the hardware for it, and the function that does it."""
    FUNCTION: ClassVar[str]
    """What it computes, by the name of the block's operation without `ttl.`."""
    INTEGERS: ClassVar[tuple[str, ...]] = ()
    """The data formats of integers for which there is a function, too."""
    INTEGER: ClassVar[tuple[type[IRDLOperation], type[IRDLOperation]] | None] = None
    """What prepares for integers, and what computes with them: with a `format` where there is more than one."""

    result = result_def(TileType)
    dst_idx = opt_prop_def(IntegerAttr)

    traits = traits_def(Pure())

    @property
    def register(self) -> int | None:
        """The number of the result's destination register, when it has one."""
        return None if self.dst_idx is None else self.dst_idx.value.data

    @register.setter
    def register(self, number: int) -> None:
        self.dst_idx = IntegerAttr(number, i32)


_PROPERTIES = ("dst_idx", "fpu", "dims", "parameters", "value", "source", "target")


class _ElementwiseTileOp(TileOp):
    """Base of the operations whose tiles mostly are of one type, which is written once.

    One that reads a tile that was kept in more bits than it has has them all: `%a, %b : (T, U) -> T`.
    """

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read the operands and their types."""
        names = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        is_mixed = isinstance(type_, FunctionType)
        types = type_.inputs.data if is_mixed else [type_] * len(names)
        operands = parser.resolve_operands(names, types, parser.pos)
        op = cls.create(operands=operands, result_types=type_.outputs.data if is_mixed else [type_])
        for name, value in attributes.items():
            (op.properties if name in _PROPERTIES else op.attributes)[name] = value
        return op

    def print(self, printer: Printer) -> None:
        """Write the operands and their types."""
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes({**self.properties, **self.attributes})
        printer.print_string(" : ")
        is_mixed = any(each != self.result.type for each in self.operand_types)
        printer.print_attribute(
            FunctionType.from_lists(self.operand_types, [self.result.type]) if is_mixed else self.result.type
        )


class TileBinaryOp(_ElementwiseTileOp):
    """Base of the element-wise operations with two operands: `%c = ttl.tile_add %a, %b : !ttcore.tile<32x32, f32>`."""

    FPU: ClassVar[tuple[type[IRDLOperation], type[IRDLOperation]] | None] = None
    """The same of two tiles in circular buffers, by the matrix unit, where it can."""

    lhs = operand_def(TileType)
    rhs = operand_def(TileType)
    fpu = opt_prop_def(UnitAttr)
    """Whether the matrix unit does it."""

    def __init__(self, lhs: SSAValue, rhs: SSAValue) -> None:
        super().__init__(operands=[lhs, rhs], result_types=[lhs.type])


class TileUnaryOp(_ElementwiseTileOp):
    """Base of the operations with one operand: `%b = ttl.tile_exp %a : !ttcore.tile<32x32, f32>`."""

    IN_PLACE: ClassVar = True

    input = operand_def(TileType)
    parameters = opt_prop_def(ArrayAttr[FloatAttr])
    """Numbers that the function takes, too."""

    def __init__(self, input: SSAValue) -> None:
        super().__init__(operands=[input], result_types=[input.type])


@irdl_op_definition
class TileAddOp(TileBinaryOp):
    """The sum of the elements of two tiles."""

    name = "ttl.tile_add"
    FUNCTION: ClassVar = "add"
    FPU: ClassVar = ttkernel.AddTilesInitOp, ttkernel.AddTilesOp
    LOWERED: ClassVar = ttkernel.AddBinaryTileInitOp, ttkernel.AddBinaryTileOp
    INTEGERS: ClassVar = ("i32", "ui32", "ui16")
    INTEGER: ClassVar = ttkernel.AddIntTileInitOp, ttkernel.AddIntTileOp


@irdl_op_definition
class TileSubOp(TileBinaryOp):
    """The difference of the elements of two tiles."""

    name = "ttl.tile_sub"
    FUNCTION: ClassVar = "sub"
    FPU: ClassVar = ttkernel.SubTilesInitOp, ttkernel.SubTilesOp
    LOWERED: ClassVar = ttkernel.SubBinaryTileInitOp, ttkernel.SubBinaryTileOp
    INTEGERS: ClassVar = ("i32", "ui32", "ui16")
    INTEGER: ClassVar = ttkernel.SubIntTileInitOp, ttkernel.SubIntTileOp


@irdl_op_definition
class TileMulOp(TileBinaryOp):
    """The product of the elements of two tiles."""

    name = "ttl.tile_mul"
    FUNCTION: ClassVar = "mul"
    FPU: ClassVar = ttkernel.MulTilesInitOp, ttkernel.MulTilesOp
    LOWERED: ClassVar = ttkernel.MulBinaryTileInitOp, ttkernel.MulBinaryTileOp
    INTEGERS: ClassVar = ("i32", "ui32", "ui16")
    INTEGER: ClassVar = ttkernel.MulIntTileInitOp, ttkernel.MulIntTileOp


@irdl_op_definition
class TileDivOp(TileBinaryOp):
    """The quotient of the elements of two tiles."""

    name = "ttl.tile_div"
    FUNCTION: ClassVar = "div"
    LOWERED: ClassVar = ttkernel.DivBinaryTileInitOp, ttkernel.DivBinaryTileOp


@irdl_op_definition
class TileMaxOp(TileBinaryOp):
    """The larger one of the elements of two tiles."""

    name = "ttl.tile_max"
    FUNCTION: ClassVar = "max"
    LOWERED: ClassVar = ttkernel.MaxBinaryTileInitOp, ttkernel.MaxBinaryTileOp
    INTEGERS: ClassVar = ("i32", "ui32")
    INTEGER: ClassVar = ttkernel.MaxIntTileInitOp, ttkernel.MaxIntTileOp


@irdl_op_definition
class TileMinOp(TileBinaryOp):
    """The smaller one of the elements of two tiles."""

    name = "ttl.tile_min"
    FUNCTION: ClassVar = "min"
    LOWERED: ClassVar = ttkernel.MinBinaryTileInitOp, ttkernel.MinBinaryTileOp
    INTEGERS: ClassVar = ("i32", "ui32")
    INTEGER: ClassVar = ttkernel.MinIntTileInitOp, ttkernel.MinIntTileOp


TILE_FUNCTIONS = {
    each.name: operation(
        TileUnaryOp,
        f"ttl.tile_{each.name}",
        each.meaning,
        __name__,
        FUNCTION=each.name,
        LOWERED=(ttkernel.VECTOR_INITS[each.preparation], ttkernel.VECTOR_CALLS[each.callee]),
        INTEGERS=("i32",) if each.has_int32 else (),
        INTEGER=(ttkernel.VECTOR_INITS[each.preparation], ttkernel.VECTOR_INT32_CALLS[each.int32_callee])
        if each.has_int32
        else None,
    )
    for each in FUNCTIONS
}
"""The operations of the rows of `ttl.elementwise`, by name."""


@irdl_op_definition
class TileRemainderOp(TileBinaryOp):
    """The remainder of the elements of two tiles, with the sign of the divisor."""

    name = "ttl.tile_remainder"
    FUNCTION: ClassVar = "remainder"
    LOWERED: ClassVar = ttkernel.RemainderBinaryTileInitOp, ttkernel.RemainderBinaryTileOp


@irdl_op_definition
class TileWhereOp(TileOp):
    """The elements of `%a` where those of `%c` are not zero, and of `%b` elsewhere.

    Example: `%r = ttl.tile_where %c, %a, %b : T, T, T -> T`.
    """

    name = "ttl.tile_where"
    FUNCTION: ClassVar = "where"
    LOWERED: ClassVar = ttkernel.WhereTileInitOp, ttkernel.WhereTileOp

    condition = operand_def(TileType)
    a = operand_def(TileType)
    b = operand_def(TileType)

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$condition `,` $a `,` $b attr-dict `:` type($condition) `,` type($a) `,` type($b) `->` type($result)"
    )


@irdl_op_definition
class TileCopyOp(TileUnaryOp):
    """The same tile in another register: `%b = ttl.tile_copy %a : !ttcore.tile<32x32, f32>`."""

    name = "ttl.tile_copy"
    IN_PLACE: ClassVar = False
    FUNCTION: ClassVar = "copy"
    LOWERED: ClassVar = ttkernel.CopyDestValuesInitOp, ttkernel.CopyDestValuesOp


def converts(source: Attribute, target: Attribute) -> bool:
    """Return whether the vector unit converts between two types: floats but f16, and integers but i32 and ui32."""
    formats = format_of(source), format_of(target)
    integers = [each for each in formats if each in ("i32", "ui32", "ui16")]
    known = all(each in ("f32", "bf16", "bfp8_b", "bfp4_b", *integers) for each in formats)
    return known and (len(integers) < 2 or "ui16" in integers or formats[0] == formats[1])


@irdl_op_definition
class TileTypecastOp(TileUnaryOp):
    """A tile in another type: `%b = ttl.tile_typecast %a {source = bf16, target = f32} : T -> U`."""

    name = "ttl.tile_typecast"
    FUNCTION: ClassVar = "typecast"
    LOWERED: ClassVar = ttkernel.TypecastTileInitOp, ttkernel.TypecastTileOp

    source = prop_def(Attribute)
    target = prop_def(Attribute)


@irdl_op_definition
class TileFillOp(TileOp):
    """A tile whose elements are a number.

    Example: `%a = ttl.tile_fill {value = 1.000000e+00 : f32} : !ttcore.tile<32x32, f32>`.
    """

    name = "ttl.tile_fill"
    FUNCTION: ClassVar = "fill"
    LOWERED: ClassVar = ttkernel.FillTileInitOp, ttkernel.FillTileOp
    INTEGERS: ClassVar = ("i32", "ui32", "ui16")
    INTEGER: ClassVar = ttkernel.FillTileInitOp, ttkernel.FillTileIntOp

    value = prop_def(FloatAttr | IntegerAttr)

    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, value: FloatAttr | IntegerAttr, type_: Attribute) -> None:
        super().__init__(properties={"value": value}, result_types=[type_])


class _TileDimsOp(TileOp):
    dims = prop_def(ArrayAttr[IntegerAttr])

    @property
    def dimensions(self) -> tuple[int, ...]:
        """The dimensions, in ascending order."""
        return tuple(sorted(each.value.data for each in self.dims))


@irdl_op_definition
class TileBcastOp(_TileDimsOp, TileUnaryOp):
    """Spread the first row, column or element of a tile in a circular buffer over a tile.

    Example: `ttl.tile_bcast %a {dims = [1]} : T`.
    """

    name = "ttl.tile_bcast"
    CB_OPERANDS: ClassVar = (0,)
    IN_PLACE: ClassVar = False
    FUNCTION: ClassVar = "bcast"
    LOWERED: ClassVar = ttkernel.UnaryBcastInitOp, ttkernel.UnaryBcastOp

    def __init__(self, input: SSAValue, dims: ArrayAttr[IntegerAttr]) -> None:
        TileOp.__init__(self, operands=[input], properties={"dims": dims}, result_types=[input.type])


@irdl_op_definition
class TileTransposeOp(TileUnaryOp):
    """A tile in a circular buffer with rows and columns exchanged."""

    name = "ttl.tile_transpose"
    CB_OPERANDS: ClassVar = (0,)
    IN_PLACE: ClassVar = False
    FUNCTION: ClassVar = "transpose"
    LOWERED: ClassVar = ttkernel.TransposeWHInitOp, ttkernel.TransposeWHTileOp


class TileAccumulatingOp(TileOp):
    """Base of the operations that add to a register, whose tile before is the last operand."""


@irdl_op_definition
class TileMatmulOp(TileAccumulatingOp):
    """Add the product of two tiles in circular buffers.

    Example: `%c = ttl.tile_matmul %a, %b, %acc : !ttcore.tile<32x32, f32>`.
    """

    name = "ttl.tile_matmul"
    CB_OPERANDS: ClassVar = (0, 1)
    FUNCTION: ClassVar = "matmul"
    LOWERED: ClassVar = ttkernel.MMInitOp, ttkernel.MatmulTilesOp

    lhs = operand_def(TileType)
    rhs = operand_def(TileType)
    acc = operand_def(TileType)

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$lhs `,` $rhs `,` $acc attr-dict `:` type($lhs) `,` type($rhs) `,` type($acc) `->` type($result)"

    def __init__(self, lhs: SSAValue, rhs: SSAValue, acc: SSAValue) -> None:
        super().__init__(operands=[lhs, rhs, acc], result_types=[acc.type])


class TileReduceOp(TileAccumulatingOp, _TileDimsOp):
    """Base of the reductions: `%b = ttl.tile_reduce_sum %a, %scaler, %acc {dims = [1]} : T, T, T -> T`.

    Each element of the tile in a circular buffer is multiplied by the scaler's, which is one everywhere here.
    """

    CB_OPERANDS: ClassVar = (0, 1)
    LOWERED: ClassVar = ttkernel.ReduceInitOp, ttkernel.ReduceTileOp

    input = operand_def(TileType)
    scaler = operand_def(TileType)
    acc = operand_def(TileType)

    assembly_format = (
        "$input `,` $scaler `,` $acc attr-dict `:` type($input) `,` type($scaler) `,` type($acc) `->` type($result)"
    )

    def __init__(self, input: SSAValue, scaler: SSAValue, acc: SSAValue, dims: ArrayAttr[IntegerAttr]) -> None:
        super().__init__(operands=[input, scaler, acc], properties={"dims": dims}, result_types=[acc.type])


@irdl_op_definition
class TileReduceSumOp(TileReduceOp):
    """The sum along dimensions, added to what is there."""

    name = "ttl.tile_reduce_sum"
    FUNCTION: ClassVar = "reduce_sum"


@irdl_op_definition
class TileReduceMaxOp(TileReduceOp):
    """The maximum along dimensions and of what is there."""

    name = "ttl.tile_reduce_max"
    FUNCTION: ClassVar = "reduce_max"


@irdl_op_definition
class GetTileOp(TTLOp):
    """Take a tile of a block that was waited for into a register.

    Example: `%t = ttl.get_tile %block, %i : tensor<2x2x!tile> -> !tile`. Tiles are numbered row by row.
    """

    name = "ttl.get_tile"
    THREADS: ClassVar = Threads.COMPUTE

    view = operand_def(ANY_BLOCK)
    index = operand_def(IndexType())
    tile = result_def(TileType)

    assembly_format = "$view `,` $index attr-dict `:` type($view) `->` type($tile)"

    def verify_(self) -> None:
        """Check that the tile is one of the block."""
        if tile_of(self.view.type) != self.tile.type:
            raise VerifyException(f"a tile of {self.view.type} is a {tile_of(self.view.type)}, found {self.tile.type}")


@irdl_op_definition
class PackTileOp(TTLOp):
    """Write a tile in a register to a reserved block, rounded to the type of its tiles.

    Example: `ttl.pack_tile %t, %view, %i : !tile, tensor<2x2x!tile>`. Tiles are numbered row by row.
    """

    name = "ttl.pack_tile"
    THREADS: ClassVar = Threads.COMPUTE

    tile = operand_def(TileType)
    view = operand_def(ANY_BLOCK)
    index = operand_def(IndexType())

    assembly_format = "$tile `,` $view `,` $index attr-dict `:` type($tile) `,` type($view)"

    def verify_(self) -> None:
        """Check that the block has tiles of floats, or of the tile's type, each in a place of its own."""
        tile, place = tile_of(self.tile.type), tile_of(self.view.type)
        if isinstance(place.data_type, BlockFloatType):
            raise VerifyException(f"neighbours of {place} share bits: store whole blocks of them")
        if tile != place and not (is_float(tile.data_type) and is_float(place.data_type)):
            raise VerifyException(f"a pack keeps the type of integers, found {tile} and {place}")


@irdl_op_definition
class YieldOp(TTLOp):
    """The tiles of the blocks that a `ttl.compute` writes: `ttl.yield %a : !ttcore.tile<32x32, f32>`."""

    name = "ttl.yield"

    tiles = var_operand_def(TileType)

    traits = traits_def(IsTerminator())
    assembly_format = "($tiles^ `:` type($tiles))? attr-dict"

    def __init__(self, *tiles: SSAValue) -> None:
        super().__init__(operands=[list(tiles)])


@irdl_op_definition
class ComputeOp(TTLOp):
    """Compute all tiles of blocks, like a `linalg.generic` with the operations of this file in its body.

    Example:
    ```mlir
    ttl.compute ins(%a, %b : memref<2x2x!tile>, memref<2x2x!tile>) outs(%c : memref<2x2x!tile>)
        attributes {indexing_maps = [#map, #map, #map], iterator_types = [#parallel, #parallel]} {
    ^bb0(%x: !tile, %y: !tile, %z: !tile):
      %s = ttl.tile_add %x, %y : !tile
      ttl.yield %s : !tile
    }
    ```
    With a reduction among the iterators, the last arguments are the tiles before, which are zero (the smallest number
    for a maximum) in the beginning. `accumulate` and `first` are those of `ttl.store`. `ttl-assign-dst-registers` adds
    `dst_per_tile` (registers for one tile of the result), `unroll` (tiles at once) and `capacity` (registers).
    """

    name = "ttl.compute"
    THREADS: ClassVar = Threads.COMPUTE

    inputs = var_operand_def(ANY_BLOCK)
    outputs = var_operand_def(ANY_BLOCK)
    first = opt_operand_def(i1)
    indexing_maps = prop_def(ArrayAttr[AffineMapAttr])
    iterator_types = prop_def(ArrayAttr[IteratorTypeAttr])
    accumulate = opt_prop_def(UnitAttr)
    dst_per_tile = opt_prop_def(IntegerAttr)
    unroll = opt_prop_def(IntegerAttr)
    capacity = opt_prop_def(IntegerAttr)
    body = region_def("single_block")

    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    traits = traits_def(RunsOnThread())
    assembly_format = (
        "(`ins` `(` $inputs^ `:` type($inputs) `)`)? `outs` `(` $outputs `:` type($outputs) `)` "
        "(`first` $first^)? attr-dict-with-keyword $body"
    )

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        outputs: Sequence[SSAValue],
        body: Region,
        indexing_maps: Sequence[AffineMapAttr],
        iterator_types: Sequence[IteratorTypeAttr],
        *,
        accumulate: bool = False,
        first: SSAValue | None = None,
    ) -> None:
        super().__init__(
            operands=[list(inputs), list(outputs), first],
            properties={
                "indexing_maps": ArrayAttr(indexing_maps),
                "iterator_types": ArrayAttr(iterator_types),
                "accumulate": UnitAttr() if accumulate else None,
            },
            regions=[body],
        )

    @property
    def iterators(self) -> list[IteratorType]:
        """Return what each loop is: parallel or a reduction."""
        return [each.data for each in self.iterator_types]

    def verify_(self) -> None:
        """Check that there is a map and an argument for each operand, and a tile for each output."""
        blocks = [*self.inputs, *self.outputs]
        arguments = self.body.block.args
        if len(self.indexing_maps) != len(blocks) or len(arguments) != len(blocks):
            raise VerifyException(
                f"expected {len(blocks)} maps and arguments, found {len(self.indexing_maps)} and {len(arguments)}"
            )
        for block, argument in zip(blocks, arguments, strict=True):
            if tile_of(block.type) != argument.type:
                raise VerifyException(
                    f"the argument for {block.type} is a {tile_of(block.type)}, found {argument.type}"
                )
        for each in self.indexing_maps:
            if each.data.num_dims != len(self.iterator_types):
                raise VerifyException(f"expected maps of {len(self.iterator_types)} dimensions, found {each}")
        end = self.body.block.last_op
        if not isinstance(end, YieldOp) or len(end.tiles) != len(self.outputs):
            raise VerifyException(f"the body must end in a ttl.yield of {len(self.outputs)} tiles")
