"""Types and attributes of `ttl`: circular buffers, transfers, and where the elements of a tensor are."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import ArrayAttr, IntAttr, MemRefType, NoneAttr, TensorType
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, ParametrizedAttribute, SpacedOpaqueSyntaxAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from ..ttcore import MemorySpace, MemorySpaceAttr, TileType, element_bytes, format_of


class LayoutKind(StrEnum):
    """Divisions of a tensor into pages."""

    TILED = "tiled"
    """A page is a tile; pages are interleaved over the banks."""
    INTERLEAVED = "interleaved"
    """A page is a row of elements; pages are interleaved over the banks."""
    SHARDED = "sharded"
    """Rectangles of tiles are in one piece each, in the bank or core that owns the shard."""


class Direction(StrEnum):
    """The direction of a transfer, seen from the core's own memory."""

    READ = "read"
    WRITE = "write"


def _integers(parser: AttrParser) -> ArrayAttr[IntAttr]:
    numbers = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    return ArrayAttr([IntAttr(each) for each in numbers])


def _numbers(attr: ArrayAttr[IntAttr]) -> tuple[int, ...]:
    return tuple(each.data for each in attr)


@irdl_attr_definition
class DirectionAttr(EnumAttribute[Direction], SpacedOpaqueSyntaxAttribute):
    """`#ttl<direction read>`."""

    name = "ttl.direction"


@irdl_attr_definition
class LayoutAttr(ParametrizedAttribute):
    """Division of a tensor into pages: `#ttl.layout<tiled>`, `#ttl.layout<interleaved>` or
    `#ttl.layout<sharded, grid=[2, 2], tiles_per_shard=[1, 1]>` (rows, columns).
    """

    name = "ttl.layout"

    kind_attr: Attribute = param_def()
    grid_attr: ArrayAttr[IntAttr] = param_def()
    tiles_attr: ArrayAttr[IntAttr] = param_def()

    @staticmethod
    def get(kind: LayoutKind, grid: tuple[int, ...] = (), tiles_per_shard: tuple[int, ...] = ()) -> LayoutAttr:
        """The layout of this kind; the numbers are those of a sharded one."""
        return LayoutAttr(
            LayoutKindAttr(kind),
            ArrayAttr([IntAttr(each) for each in grid]),
            ArrayAttr([IntAttr(each) for each in tiles_per_shard]),
        )

    @property
    def kind(self) -> LayoutKind:
        """Return what a page is."""
        assert isinstance(self.kind_attr, LayoutKindAttr)
        return self.kind_attr.data

    @property
    def grid(self) -> tuple[int, ...]:
        """Shards of a column and of a row of a sharded tensor, which are numbered row by row."""
        return _numbers(self.grid_attr)

    @property
    def tiles_per_shard(self) -> tuple[int, ...]:
        """Rows and columns of tiles of a shard."""
        return _numbers(self.tiles_attr)

    def verify(self) -> None:
        """A sharded layout says how, another one does not."""
        numbers = (*self.grid, *self.tiles_per_shard)
        if self.kind is not LayoutKind.SHARDED:
            if numbers:
                raise VerifyException(f"only a sharded layout has a grid, found one in a layout that is {self.kind}")
        elif len(self.grid) != 2 or len(self.tiles_per_shard) != 2 or min(numbers) < 1:
            raise VerifyException(
                "a sharded layout has two positive numbers each for its grid and its tiles_per_shard, "
                f"found {list(self.grid)} and {list(self.tiles_per_shard)}"
            )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> tuple[Attribute, ...]:
        """Read `<sharded, grid=[2, 2], tiles_per_shard=[1, 1]>` or `<tiled>`."""
        grid = tiles = ArrayAttr[IntAttr]([])
        with parser.in_angle_brackets():
            kind = parser.parse_str_enum(LayoutKind)
            if parser.parse_optional_punctuation(","):
                parser.parse_keyword("grid")
                parser.parse_punctuation("=")
                grid = _integers(parser)
                parser.parse_punctuation(",")
                parser.parse_keyword("tiles_per_shard")
                parser.parse_punctuation("=")
                tiles = _integers(parser)
        return LayoutKindAttr(kind), grid, tiles

    def print_parameters(self, printer: Printer) -> None:
        """Write what `parse_parameters` reads."""
        with printer.in_angle_brackets():
            printer.print_string(self.kind.value)
            if self.grid:
                printer.print_string(f", grid={list(self.grid)}, tiles_per_shard={list(self.tiles_per_shard)}")


@irdl_attr_definition
class LayoutKindAttr(EnumAttribute[LayoutKind], SpacedOpaqueSyntaxAttribute):
    """A part of `#ttl.layout`."""

    name = "ttl.layout_kind"


@irdl_attr_definition
class TensorEncodingAttr(ParametrizedAttribute):
    """Memory and layout of a tensor's elements: `#ttl.tensor_encoding<DRAM, #ttl.layout<tiled>>`."""

    name = "ttl.tensor_encoding"

    space: MemorySpaceAttr = param_def()
    layout: LayoutAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> tuple[Attribute, ...]:
        """Read `<DRAM, #ttl.layout<tiled>>`; the memory is spelled in capital or small letters."""
        with parser.in_angle_brackets():
            word = parser.parse_identifier()
            if word.lower() not in list(MemorySpace):
                parser.raise_error(f"expected DRAM or L1, found {word}")
            parser.parse_punctuation(",")
            layout = parser.parse_attribute()
        if not isinstance(layout, LayoutAttr):
            parser.raise_error(f"expected a #ttl.layout, found {layout}")
        return MemorySpaceAttr(MemorySpace(word.lower())), layout

    def print_parameters(self, printer: Printer) -> None:
        """Write `<DRAM, #ttl.layout<tiled>>`."""
        with printer.in_angle_brackets():
            printer.print_string(f"{self.space.data.value.upper()}, ")
            printer.print_attribute(self.layout)


def encoding_of(type_: Attribute) -> TensorEncodingAttr:
    """Return where the elements of a kernel's tensor, or of the memory that it has become, are.

    Raises VerifyException if the type does not say so.
    """
    match type_:
        case TensorType(encoding=TensorEncodingAttr() as found):
            return found
        case MemRefType(memory_space=TensorEncodingAttr() as found):
            return found
        case _:
            raise VerifyException(f"expected a tensor with a #ttl.tensor_encoding, found {type_}")


@irdl_attr_definition
class CBType(ParametrizedAttribute, TypeAttribute):
    """A circular buffer in the memory of a core: `!ttl.cb<[2, 1], !ttcore.tile<32x32, f32>, 2>`.

    Its unit is the block, here of 2x1 tiles; it has room for as many blocks as the last number says. With an element
    that is no tile it is row-major: a page is a row of the block.
    """

    name = "ttl.cb"

    shape_attr: ArrayAttr[IntAttr] = param_def()
    element_type: Attribute = param_def()
    factor_attr: IntAttr = param_def()

    @staticmethod
    def get(shape: tuple[int, ...], element_type: Attribute, buffer_factor: int) -> CBType:
        """The buffer for `buffer_factor` blocks of this shape."""
        return CBType(ArrayAttr([IntAttr(each) for each in shape]), element_type, IntAttr(buffer_factor))

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns of a block, in tiles or in elements, after its other dimensions."""
        return _numbers(self.shape_attr)

    @property
    def buffer_factor(self) -> int:
        """Blocks for which there is room."""
        return self.factor_attr.data

    @property
    def is_tiled(self) -> bool:
        """Return whether blocks consist of tiles."""
        return isinstance(self.element_type, TileType)

    @property
    def data_type(self) -> Attribute:
        """The type of a single element."""
        return self.element_type.data_type if isinstance(self.element_type, TileType) else self.element_type

    @property
    def page_bytes(self) -> int:
        """Bytes of a tile, or of a row of the block."""
        if isinstance(self.element_type, TileType):
            return self.element_type.bytes
        return self.shape[-1] * element_bytes(self.element_type)

    @property
    def block_pages(self) -> int:
        """Pages of a block."""
        return prod(self.shape if self.is_tiled else self.shape[:-1])

    @property
    def num_pages(self) -> int:
        """Pages for which there is room."""
        return self.block_pages * self.buffer_factor

    @property
    def bytes(self) -> int:
        """Bytes of all pages."""
        return self.num_pages * self.page_bytes

    @property
    def block_type(self) -> TensorType[Attribute]:
        """The tensor that is a block."""
        return TensorType(self.element_type, list(self.shape))

    def verify(self) -> None:
        """A block has at least two dimensions, and there is room for one."""
        if len(self.shape) < 2 or min(self.shape) < 1:
            raise VerifyException(
                f"the shape of a circular buffer is two or more positive numbers, found {list(self.shape)}"
            )
        if self.buffer_factor < 1:
            raise VerifyException(f"the buffer_factor of a circular buffer is at least 1, found {self.buffer_factor}")
        (format_of if self.is_tiled else element_bytes)(self.data_type)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> tuple[Attribute, ...]:
        """Read `<[2, 1], !ttcore.tile<32x32, f32>, 2>`."""
        with parser.in_angle_brackets():
            shape = _integers(parser)
            parser.parse_punctuation(",")
            element = parser.parse_type()
            parser.parse_punctuation(",")
            return shape, element, IntAttr(parser.parse_integer())

    def print_parameters(self, printer: Printer) -> None:
        """Write `<[2, 1], !ttcore.tile<32x32, f32>, 2>`."""
        with printer.in_angle_brackets():
            printer.print_string(f"{list(self.shape)}, ")
            printer.print_attribute(self.element_type)
            printer.print_string(f", {self.buffer_factor}")


@irdl_attr_definition
class CircularBufferType(ParametrizedAttribute, TypeAttribute):
    """Another spelling of the type: `!ttl.circular_buffer<[2, 1], !ttcore.tile<32x32, f32>, 2, L1>`."""

    name = "ttl.circular_buffer"

    @classmethod
    def new(cls, params: Sequence[Attribute]) -> CBType:
        """The one type for both spellings."""
        return CBType.new(params)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> tuple[Attribute, ...]:
        """Read `<[2, 1], !ttcore.tile<32x32, f32>, 2, L1>`; the memory, which may be left out, is L1."""
        with parser.in_angle_brackets():
            shape = _integers(parser)
            parser.parse_punctuation(",")
            element = parser.parse_type()
            parser.parse_punctuation(",")
            factor = IntAttr(parser.parse_integer())
            if parser.parse_optional_punctuation(","):
                place = parser.pos
                if (word := parser.parse_identifier()).lower() != "l1":
                    parser.raise_error(f"a circular buffer is in L1, found {word}", place, parser.pos)
        return shape, element, factor


@irdl_attr_definition
class TransferHandleType(ParametrizedAttribute, TypeAttribute):
    """A transfer that was begun: `!ttl.transfer_handle<read>` or `<write>`.

    A `ttl.copy` knows its direction, so that `!ttl.transfer_handle` is enough there.
    """

    name = "ttl.transfer_handle"

    direction_attr: DirectionAttr | NoneAttr = param_def()

    @staticmethod
    def get(direction: Direction) -> TransferHandleType:
        """The type of transfers in this direction."""
        return TransferHandleType(DirectionAttr(direction))

    @property
    def direction(self) -> Direction:
        """Return whether the transfer ends in the core's own memory or begins there.

        Raises VerifyException for a handle that does not say so.
        """
        if isinstance(self.direction_attr, NoneAttr):
            raise VerifyException("expected !ttl.transfer_handle<read> or <write>, found one without a direction")
        return self.direction_attr.data

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> tuple[Attribute, ...]:
        """Read `<read>`, or nothing."""
        if parser.parse_optional_punctuation("<") is None:
            return (NoneAttr(),)
        direction = DirectionAttr(parser.parse_str_enum(Direction))
        parser.parse_punctuation(">")
        return (direction,)

    def print_parameters(self, printer: Printer) -> None:
        """Write `<read>`."""
        if isinstance(self.direction_attr, NoneAttr):
            return
        with printer.in_angle_brackets():
            printer.print_string(self.direction.value)


@irdl_attr_definition
class SemaphoreType(ParametrizedAttribute, TypeAttribute):
    """A counter that each core of the grid has: `!ttl.semaphore`."""

    name = "ttl.semaphore"


@irdl_attr_definition
class PipeType(ParametrizedAttribute, TypeAttribute):
    """A way from one core to others: `!ttl.pipe`."""

    name = "ttl.pipe"


@irdl_attr_definition
class TensorAccessorType(ParametrizedAttribute, TypeAttribute):
    """The pages of a kernel's tensor: `!ttl.tensor_accessor<tensor<64x64xf32, #ttl.tensor_encoding<...>>>`."""

    name = "ttl.tensor_accessor"

    tensor: Attribute = param_def()
    """The type of the tensor, or of the memory that it has become."""


@irdl_attr_definition
class AccessorType(ParametrizedAttribute, TypeAttribute):
    """A short spelling for accessors, by the encoding of the tensor alone: `!ttl.accessor<#ttl.layout<tiled>, DRAM>`.

    Where the accessor is made or used the tensor is known, and the type becomes a `!ttl.tensor_accessor`.
    """

    name = "ttl.accessor"

    layout: LayoutAttr = param_def()
    space: MemorySpaceAttr = param_def()

    def fits(self, tensor: Attribute) -> bool:
        """Return whether a tensor is in this memory, in this layout."""
        found = encoding_of(tensor)
        return (found.layout, found.space) == (self.layout, self.space)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> tuple[Attribute, ...]:
        """Read `<#ttl.layout<tiled>, DRAM>`."""
        with parser.in_angle_brackets():
            layout = parser.parse_attribute()
            parser.parse_punctuation(",")
            word = parser.parse_identifier()
        if not isinstance(layout, LayoutAttr) or word.lower() not in list(MemorySpace):
            parser.raise_error(f"expected a #ttl.layout and DRAM or L1, found {layout} and {word}")
        return layout, MemorySpaceAttr(MemorySpace(word.lower()))

    def print_parameters(self, printer: Printer) -> None:
        """Write `<#ttl.layout<tiled>, DRAM>`."""
        with printer.in_angle_brackets():
            printer.print_attribute(self.layout)
            printer.print_string(f", {self.space.data.value.upper()}")
