"""Computing with blocks of tiles as values. What it means for single tiles is in `tiles`.

A value of tiles of 16 bits is computed in 32 bits, and rounded to nearest, ties to even, when it goes to a circular
buffer: at a store, and as an operand or result of `ttl.bcast`, `ttl.matmul`, `ttl.transpose` and the reductions, which
read circular buffers only.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, TensorType, UnitAttr, f32, i1, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.ttl.elementwise import FUNCTIONS, Function

from ..generated import operation
from ..ttcore import TILE_COLUMNS, TILE_ROWS, TileType, format_of, is_float
from . import tiles
from .base import ANY_BLOCK, RunsOnThread, Threads, TTLOp, as_block, block_shape, computed_tile, tile_of


class BlockComputeOp(TTLOp):
    """Base of the operations that make a block of tiles of others."""

    THREADS: ClassVar = Threads.COMPUTE
    TILE: ClassVar[type[tiles.TileOp]]
    """The operation on a single tile."""

    result = result_def(ANY_BLOCK)

    traits = traits_def(Pure(), RunsOnThread())

    def verify_(self) -> None:
        """Blocks are of tiles with two or more dimensions, and of data types that can meet."""
        self._verify_tiles()
        for type_ in (*self.operand_types, self.result.type):
            if len(block_shape(type_)) < 2:
                raise VerifyException(f"expected a block with at least two dimensions, found {type_}")

    def _verify_tiles(self) -> None:
        """The result is what the operands meet in, or f32 where they are floats."""
        result, given = tile_of(self.result.type), [tile_of(each) for each in self.operand_types]
        expected = computed_tile(given or [result])
        is_wider = expected is not None and is_float(expected.data_type) and result.data_type == f32
        if expected is None or not (result == expected or is_wider):
            found = " and ".join(dict.fromkeys(str(each) for each in (*given, result)))
            raise VerifyException(f"the tiles of {self.name} can't be of these types together: {found}")
        if not is_float(result.data_type) and format_of(result.data_type) not in self.TILE.INTEGERS:
            raise VerifyException(f"{self.name} is for tiles of floats, found {result.data_type}")


class ElementwiseOp(BlockComputeOp):
    """Base of the operations that compute each element on its own."""

    def verify_(self) -> None:
        """All blocks have one shape."""
        super().verify_()
        for type_ in self.operand_types:
            if block_shape(type_) != block_shape(self.result.type):
                raise VerifyException(
                    f"the blocks of {self.name} must have one shape, found {_spelled(type_)} and "
                    f"{_spelled(self.result.type)} tiles; ttl.bcast spreads a row, a column or a tile"
                )


def _spelled(type_: Attribute) -> str:
    return "x".join(map(str, block_shape(type_)))


class BinaryOp(ElementwiseOp):
    """Base of the element-wise operations with two operands: `%c = ttl.add %a, %b : T, T -> T`."""

    lhs = operand_def(ANY_BLOCK)
    rhs = operand_def(ANY_BLOCK)

    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)"

    def __init__(self, lhs: SSAValue, rhs: SSAValue) -> None:
        super().__init__(operands=[lhs, rhs], result_types=[_computed(lhs, rhs)])


class UnaryOp(ElementwiseOp):
    """Base of the element-wise operations with one operand: `%b = ttl.exp %a : T -> T`.

    Some take numbers: `%b = ttl.clamp %a {parameters = [0.0 : f32, 1.0 : f32]} : T -> T`.
    """

    FUNCTION: ClassVar[Function]

    input = operand_def(ANY_BLOCK)
    parameters = opt_prop_def(ArrayAttr[FloatAttr])

    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue, parameters: Sequence[float] = ()) -> None:
        numbers = ArrayAttr([FloatAttr(each, f32) for each in parameters]) if parameters else None
        super().__init__(operands=[input], properties={"parameters": numbers}, result_types=[_computed(input)])

    def verify_(self) -> None:
        """Check that there are as many numbers as the function has parameters."""
        super().verify_()
        expected, found = self.FUNCTION.parameters, 0 if self.parameters is None else len(self.parameters)
        if found != len(expected):
            raise VerifyException(f"{self.name} takes the parameters {list(expected)}, found {found} numbers")


def _computed(*operands: SSAValue) -> Attribute:
    """The type of the first operand's shape with what the operands meet in."""
    tiles_ = [tile_of(each.type) for each in operands]
    return TensorType(computed_tile(tiles_) or tiles_[0], list(block_shape(operands[0].type)))


@irdl_op_definition
class AddOp(BinaryOp):
    """The sum of the elements of two blocks."""

    name = "ttl.add"
    TILE: ClassVar = tiles.TileAddOp


@irdl_op_definition
class SubOp(BinaryOp):
    """The difference of the elements of two blocks."""

    name = "ttl.sub"
    TILE: ClassVar = tiles.TileSubOp


@irdl_op_definition
class MulOp(BinaryOp):
    """The product of the elements of two blocks."""

    name = "ttl.mul"
    TILE: ClassVar = tiles.TileMulOp


@irdl_op_definition
class DivOp(BinaryOp):
    """The quotient of the elements of two blocks."""

    name = "ttl.div"
    TILE: ClassVar = tiles.TileDivOp


@irdl_op_definition
class MaxOp(BinaryOp):
    """The larger one of the elements of two blocks."""

    name = "ttl.max"
    TILE: ClassVar = tiles.TileMaxOp


@irdl_op_definition
class MinOp(BinaryOp):
    """The smaller one of the elements of two blocks."""

    name = "ttl.min"
    TILE: ClassVar = tiles.TileMinOp


BLOCK_FUNCTIONS = {
    each.name: operation(
        UnaryOp, f"ttl.{each.name}", each.meaning, __name__, FUNCTION=each, TILE=tiles.TILE_FUNCTIONS[each.name]
    )
    for each in FUNCTIONS
}
"""The operations of the rows of `ttl.elementwise`, by name."""


@irdl_op_definition
class RemainderOp(BinaryOp):
    """The remainder of the elements of two blocks, with the sign of the divisor."""

    name = "ttl.remainder"
    TILE: ClassVar = tiles.TileRemainderOp


@irdl_op_definition
class WhereOp(ElementwiseOp):
    """The elements of `%a` where those of `%c` are not zero, and of `%b` elsewhere.

    Example: `%r = ttl.where %c, %a, %b : T, T, T -> T`.
    """

    name = "ttl.where"
    TILE: ClassVar = tiles.TileWhereOp

    condition = operand_def(ANY_BLOCK)
    a = operand_def(ANY_BLOCK)
    b = operand_def(ANY_BLOCK)

    assembly_format = (
        "$condition `,` $a `,` $b attr-dict `:` type($condition) `,` type($a) `,` type($b) `->` type($result)"
    )

    def __init__(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> None:
        super().__init__(operands=[condition, a, b], result_types=[_computed(a, b, condition)])


@irdl_op_definition
class TypecastOp(ElementwiseOp):
    """Each element in another type: `%b = ttl.typecast %a {source = f32, target = i32} : T -> U`.

    From f32 to bf16 it rounds to nearest, ties to even; other floats are in registers as they were. A float becomes an
    integer by truncation, but for ui16, where it is rounded to nearest, ties away from zero; numbers beyond the range
    of an integer become its largest or smallest one. Integers become the nearest float, ties to even, and bf16 from f32
    with ties away from zero.
    """

    name = "ttl.typecast"
    TILE: ClassVar = tiles.TileTypecastOp

    input = operand_def(ANY_BLOCK)
    source = prop_def(Attribute)
    target = prop_def(Attribute)

    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue, target: TileType) -> None:
        source = tile_of(input.type).data_type
        super().__init__(
            operands=[input],
            properties={"source": source, "target": target.data_type},
            result_types=[TensorType(target, list(block_shape(input.type)))],
        )

    def _verify_tiles(self) -> None:
        """The two types are ones between which the vector unit converts."""
        source, target = tile_of(self.input.type).data_type, tile_of(self.result.type).data_type
        if (source, target) != (self.source, self.target):
            raise VerifyException(f"the tiles are of {source} and {target}, found {self.source} and {self.target}")
        if not tiles.converts(source, target):
            raise VerifyException(f"there is no typecast from {source} to {target}")


@irdl_op_definition
class FillOp(BlockComputeOp):
    """A block whose elements are a number: `%a = ttl.fill {value = 1.000000e+00 : f32} : tensor<2x2x!tile>`."""

    name = "ttl.fill"
    TILE: ClassVar = tiles.TileFillOp

    value = prop_def(FloatAttr | IntegerAttr)

    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, value: FloatAttr | IntegerAttr, type_: Attribute) -> None:
        super().__init__(properties={"value": value}, result_types=[type_])


def dims_attr(dims: Sequence[int]) -> ArrayAttr[IntegerAttr]:
    """Numbers of dimensions as an attribute."""
    return ArrayAttr([IntegerAttr(each, i64) for each in dims])


class DimsOp(BlockComputeOp):
    """Base of the operations along dimensions: the last but one from row to row, the last from column to column."""

    input = operand_def(ANY_BLOCK)
    dims = prop_def(ArrayAttr[IntegerAttr])

    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue, dims: Sequence[int], result: Attribute) -> None:
        super().__init__(operands=[input], properties={"dims": dims_attr(dims)}, result_types=[result])

    @property
    def dimensions(self) -> tuple[int, ...]:
        """The dimensions, in ascending order."""
        return tuple(sorted(each.value.data for each in self.dims))

    def verify_(self) -> None:
        """The dimensions are some of the block's, and only they differ."""
        super().verify_()
        narrow, wide = self.narrow_and_wide()
        rank = len(block_shape(wide))
        if len(block_shape(narrow)) != rank or not self.dimensions or not {*self.dimensions} <= self.possible(rank):
            raise VerifyException(
                f"dims of {self.name} must be some of {sorted(self.possible(rank))}, found {list(self.dimensions)}"
            )
        for dim, (small, large) in enumerate(zip(block_shape(narrow), block_shape(wide), strict=True)):
            if dim in self.dimensions and small != 1:
                raise VerifyException(
                    f"{self.name} along dimension {dim} needs a block of one tile there, found {_spelled(narrow)}"
                )
            if dim not in self.dimensions and small != large:
                raise VerifyException(
                    f"{self.name} along {list(self.dimensions)} keeps dimension {dim}, found {small} and {large} tiles"
                )

    def possible(self, rank: int) -> set[int]:
        """The dimensions that there can be for blocks with `rank` of them."""
        return {*range(rank)}

    def narrow_and_wide(self) -> tuple[Attribute, Attribute]:
        """The types of the block with one tile along the dimensions, and of the other one."""
        return self.input.type, self.result.type

    @property
    def tile_dims(self) -> tuple[int, ...]:
        """The dimensions of tiles among them: 0 from row to row, 1 from column to column."""
        rank = len(block_shape(self.input.type))
        return tuple(dim - rank + 2 for dim in self.dimensions if dim >= rank - 2)


@irdl_op_definition
class BcastOp(DimsOp):
    """Spread the first row, column or element of tiles.

    Example: `%b = ttl.bcast %a {dims = [1]} : tensor<2x1x!tile> -> tensor<2x3x!tile>`
    Along dimension 1, each element of the result is the one in the tile's first column of the same row. Along other
    dimensions than the last two, tiles are repeated.
    """

    name = "ttl.bcast"
    TILE: ClassVar = tiles.TileBcastOp


class ReduceOp(DimsOp):
    """Base of the reductions: `%b = ttl.reduce_sum %a {dims = [1]} : tensor<2x3x!tile> -> tensor<2x1x!tile>`.

    Along dimension 1 the result of a row is in the first column of a tile; along 0, that of a column in the first row;
    along both it is the first element. The other elements are zero. With `scaler`, a block of one tile, each element
    is multiplied by the first one of it: `%b = ttl.reduce_sum %a scaler %s : T {dims = [1]} : T -> T1`.
    """

    input = operand_def(ANY_BLOCK)
    scaler = opt_operand_def(ANY_BLOCK)

    assembly_format = "$input (`scaler` $scaler^ `:` type($scaler))? attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue, dims: Sequence[int], result: Attribute, scaler: SSAValue | None = None) -> None:
        BlockComputeOp.__init__(
            self, operands=[input, scaler], properties={"dims": dims_attr(dims)}, result_types=[result]
        )

    def narrow_and_wide(self) -> tuple[Attribute, Attribute]:
        """The result is the block with one tile along the dimensions."""
        return self.result.type, self.input.type

    def possible(self, rank: int) -> set[int]:
        """The last two, which tiles have."""
        return {rank - 2, rank - 1}


@irdl_op_definition
class ReduceSumOp(ReduceOp):
    """The sum along dimensions."""

    name = "ttl.reduce_sum"
    TILE: ClassVar = tiles.TileReduceSumOp


@irdl_op_definition
class ReduceMaxOp(ReduceOp):
    """The maximum along dimensions."""

    name = "ttl.reduce_max"
    TILE: ClassVar = tiles.TileReduceMaxOp


@irdl_op_definition
class TransposeOp(BlockComputeOp):
    """The block with rows and columns exchanged: `%b = ttl.transpose %a : tensor<2x3x!tile> -> tensor<3x2x!tile>`."""

    name = "ttl.transpose"
    TILE: ClassVar = tiles.TileTransposeOp

    input = operand_def(ANY_BLOCK)

    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue) -> None:
        result = TensorType(tile_of(_computed(input)), list(_transposed(block_shape(input.type))))
        super().__init__(operands=[input], result_types=[result])

    def verify_(self) -> None:
        """The last two dimensions are exchanged."""
        super().verify_()
        if _transposed(block_shape(self.input.type)) != block_shape(self.result.type):
            raise VerifyException(f"the transpose of {self.input.type} is not {self.result.type}")


def _transposed(shape: tuple[int, ...]) -> tuple[int, ...]:
    *others, rows, columns = shape
    return *others, columns, rows


@irdl_op_definition
class MatmulOp(BlockComputeOp):
    """The matrix product: `%c = ttl.matmul %a, %b : tensor<2x3x!tile>, tensor<3x4x!tile> -> tensor<2x4x!tile>`.

    Sums are in 32 bits. A left side of more dimensions is that many matrices; the right side has as many, or is one
    matrix for all of them.
    """

    name = "ttl.matmul"
    TILE: ClassVar = tiles.TileMatmulOp

    lhs = operand_def(ANY_BLOCK)
    rhs = operand_def(ANY_BLOCK)

    assembly_format = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)"

    def __init__(self, lhs: SSAValue, rhs: SSAValue) -> None:
        shape = [*block_shape(lhs.type)[:-1], block_shape(rhs.type)[-1]]
        super().__init__(operands=[lhs, rhs], result_types=[TensorType(tile_of(_computed(lhs, rhs)), shape)])

    def verify_(self) -> None:
        """The inner dimensions are equal."""
        super().verify_()
        (*matrices, rows, inner), (*others, other, columns) = block_shape(self.lhs.type), block_shape(self.rhs.type)
        if inner != other:
            raise VerifyException(
                f"a product needs as many columns of tiles on its left as rows on its right, found {inner} and {other}"
            )
        if others and others != matrices:
            raise VerifyException(f"a product needs as many matrices on its right, found {matrices} and {others}")
        if block_shape(self.result.type) != (*matrices, rows, columns):
            raise VerifyException(f"the product has {rows}x{columns} tiles, found {self.result.type}")


class WritingOp(TTLOp):
    """Base of the operations of compute threads that write their first operand to a reserved block."""

    @property
    def place(self) -> SSAValue:
        """The block that is written."""
        return self.operands[1]


@irdl_op_definition
class StoreOp(WritingOp):
    """Write a block where one was reserved: `ttl.store %a, %view : T, U`.

    Floats become those of the place, rounded to nearest with ties to even: the packer does it.
    With `accumulate` it is added to what is there, unless the optional condition `first` is true: then it overwrites,
    since a reserved block holds nothing before its first store.
    """

    name = "ttl.store"
    THREADS: ClassVar = Threads.COMPUTE

    value = operand_def(ANY_BLOCK)
    view = operand_def(ANY_BLOCK)
    first = opt_operand_def(i1)
    accumulate = opt_prop_def(UnitAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())
    assembly_format = "$value `,` $view (`first` $first^)? attr-dict `:` type($value) `,` type($view)"

    def __init__(
        self, value: SSAValue, view: SSAValue, *, accumulate: bool = False, first: SSAValue | None = None
    ) -> None:
        super().__init__(operands=[value, view, first], properties={"accumulate": UnitAttr() if accumulate else None})

    def verify_(self) -> None:
        """Value and place have one shape, and tiles of floats or of one type."""
        for type_ in (self.value.type, self.view.type):
            tile_of(type_)
        if block_shape(self.value.type) != block_shape(self.view.type):
            raise VerifyException(
                f"a store needs a place of the value's shape, found {_spelled(self.value.type)} tiles "
                f"for a place of {_spelled(self.view.type)}"
            )
        value, view = tile_of(self.value.type), tile_of(self.view.type)
        are_floats = is_float(value.data_type) and is_float(view.data_type)
        if not are_floats and value != view:
            raise VerifyException(f"a store keeps the type of integers, found {value} and {view}")
        if self.accumulate is not None and not are_floats:
            raise VerifyException(f"the packer adds floats only, found {view}")


class _RowsOp(WritingOp):
    """Base of the operations between a block of rows and a reserved block of tiles, or the other way round."""

    THREADS: ClassVar = Threads.COMPUTE

    source = operand_def(ANY_BLOCK)
    view = operand_def(ANY_BLOCK)

    assembly_format = "$source `,` $view attr-dict `:` type($source) `,` type($view)"

    def __init__(self, source: SSAValue, view: SSAValue) -> None:
        super().__init__(operands=[source, view])

    def check(self, rows: SSAValue, tiles: SSAValue) -> None:
        """Check that rows and tiles have the same elements."""
        *others, height, width = block_shape(tiles.type)
        data_type = tile_of(tiles.type).data_type
        elements = (*others, height * TILE_ROWS, width * TILE_COLUMNS)
        if block_shape(rows.type) != elements or as_block(rows.type).get_element_type() != data_type:
            wanted = f"{'x'.join(map(str, elements))} elements of {data_type}"
            raise VerifyException(f"{self.name} needs a block of {wanted} for {tiles.type}, found {rows.type}")


@irdl_op_definition
class TilizeOp(_RowsOp):
    """Write a block of rows to a reserved block of tiles.

    Example: `ttl.tilize %rows, %view : tensor<64x64xf32>, tensor<2x2x!tile>`
    """

    name = "ttl.tilize"

    def verify_(self) -> None:
        """Rows and tiles have the same elements."""
        self.check(self.source, self.view)


@irdl_op_definition
class UntilizeOp(_RowsOp):
    """Write a block of one row of tiles to a reserved block of rows.

    Example: `ttl.untilize %tiles, %view : tensor<1x2x!tile>, tensor<32x64xf32>`
    """

    name = "ttl.untilize"

    def verify_(self) -> None:
        """Rows and tiles have the same elements; there is one row of tiles."""
        self.check(self.view, self.source)
        if prod(block_shape(self.source.type)[:-1]) != 1:
            raise VerifyException(f"{self.name} writes one row of tiles, found {self.source.type}")


@irdl_op_definition
class RequireDSTOp(TTLOp):
    """Mark a value that is in destination registers while it is computed: `ttl.require_dst %a : T`."""

    name = "ttl.require_dst"
    THREADS: ClassVar = Threads.COMPUTE

    value = operand_def(ANY_BLOCK)

    assembly_format = "$value attr-dict `:` type($value)"

    def __init__(self, value: SSAValue) -> None:
        super().__init__(operands=[value])
