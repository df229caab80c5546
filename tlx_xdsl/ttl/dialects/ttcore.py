"""The `ttcore` dialect as far as TTL needs it: tiles, the grid of cores, and memory spaces.

The tile of Tenstorrent's Tensix core is 32x32 elements; in memory it is four faces of 16x16 elements, the upper left,
the upper right, the lower left and the lower right one, each row-major (TT-Metalium, "Tiles").
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, IntAttr, IntegerType, Signedness
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, ParametrizedAttribute, SpacedOpaqueSyntaxAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from tlx_xdsl.dialects.base.operation import dialect_of
from tlx_xdsl.dialects.base.tensors import element_type_of

TILE_ROWS = TILE_COLUMNS = 32
"""Elements."""

L1_BYTES = 1_499_136
"""Memory of a core that circular buffers can have: what TT-Metalium names in its error about too large ones."""

CIRCULAR_BUFFERS = 32
"""Circular buffers that a core can have."""

SEMAPHORES = 16
"""Semaphores that a core can have."""

DATAMOVEMENT_THREADS = 2
"""Threads of a core that move data, beside the one that computes."""


@dataclass(frozen=True)
class Architecture:
    """A chip, as far as kernels see it."""

    name: str
    columns: int
    """Of the cores that kernels can have, where none is harvested or kept for dispatch."""
    rows: int
    l1_bytes: int
    """Memory of a core that circular buffers can have."""
    gap: tuple[int, int] | None = None
    """The first column after a gap in the network's coordinates, and how many of them are between: the DRAM's."""

    orders_signals: bool = True
    """Whether a signal arrives after the writes to its core that its thread has begun before, without a barrier.

    Both must be of one channel: unicasts, or multicasts. Otherwise they may leave the thread's core in another order.
    """

    def network_columns(self, columns: int) -> tuple[int, ...]:
        """The coordinates on the network of the first columns, less that of the first one."""
        first, width = self.gap or (columns, 0)
        return tuple(column + (width if column >= first else 0) for column in range(columns))


ARCHITECTURES = {
    "wormhole": Architecture("wormhole", 8, 8, L1_BYTES),
    # 140 cores in the columns 1 to 7 and 10 to 16 of the network, of which one column is for dispatch.
    "blackhole": Architecture("blackhole", 13, 10, 1_572_864, gap=(7, 2), orders_signals=False),
}
"""By their names."""


@irdl_attr_definition
class BlockFloatType(ParametrizedAttribute, TypeAttribute):
    """A float whose exponent 16 neighbours in a row of a face share: `!ttcore.block_float<8>`, of sign and 7 bits.

    There are those of 8 and of 4 bits, `bfp8_b` and `bfp4_b` of TT-Metalium; they are in tiles only.
    """

    name = "ttcore.block_float"

    bits_attr: IntAttr = param_def()

    @property
    def bits(self) -> int:
        """Bits of an element without the exponent."""
        return self.bits_attr.data

    def verify(self) -> None:
        """The packer has two of them."""
        if self.bits not in (4, 8):
            raise VerifyException(f"expected a block float of 8 or 4 bits, found {self.bits}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> tuple[Attribute, ...]:
        """Read `<8>`."""
        with parser.in_angle_brackets():
            return (IntAttr(parser.parse_integer()),)

    def print_parameters(self, printer: Printer) -> None:
        """Write `<8>`."""
        with printer.in_angle_brackets():
            printer.print_string(str(self.bits))


SHARING = 16
"""Elements that share an exponent."""

BFP8, BFP4 = (BlockFloatType(IntAttr(bits)) for bits in (8, 4))
UI32, UI16 = (IntegerType(bits, Signedness.UNSIGNED) for bits in (32, 16))

FORMATS: dict[str, Attribute] = {"bfp8_b": BFP8, "bfp4_b": BFP4, "ui32": UI32, "ui16": UI16}
"""The types of data formats that the table of element types does not have, by their names."""


_HELD = ("f32", "bf16", "f16", "i32", "i16", "i8")
"""Elements of the table that a data format has."""
_WIDE = 4
"""Bytes of a register's element where a data format has 32 bits."""


def format_of(type_: Attribute) -> str:
    """The name of the data format that has elements of a type, such as `f32`, `ui16` or `bfp8_b`.

    Raises VerifyException for a type that no data format has.
    """
    for name, each in FORMATS.items():
        if each == type_:
            return name
    found = element_type_of(type_)
    if found is None or found.mlir not in _HELD:
        expected = (*_HELD, *FORMATS)
        raise VerifyException(
            f"no data format has elements of {type_}; expected {', '.join(expected[:-1])} or {expected[-1]}"
        )
    return found.mlir


def element_bytes(type_: Attribute) -> int:
    """Bytes of an element of a row, or of a tile without shared exponents.

    Raises VerifyException for a type that no data format has, and for block floats.
    """
    format_of(type_)
    found = element_type_of(type_)
    if found is None:
        raise VerifyException("block floats are in tiles only, found single elements of them")
    return found.bytes


def register_bytes(type_: Attribute) -> int:
    """Bytes of an element in a destination register: 4 for formats of 32 bits, else 2."""
    return _WIDE if not isinstance(type_, BlockFloatType) and element_bytes(type_) == _WIDE else 2


def is_float(type_: Attribute) -> bool:
    """Return whether elements are floats, block floats among them."""
    return isinstance(type_, BlockFloatType | Float32Type | Float16Type | BFloat16Type)


@irdl_attr_definition
class TileType(ParametrizedAttribute, TypeAttribute):
    """A tile of elements: `!ttcore.tile<32x32, f32>`."""

    name = "ttcore.tile"

    shape_rows: IntAttr = param_def()
    shape_columns: IntAttr = param_def()
    data_type: Attribute = param_def()
    """f32, bf16, f16, an integer or a block float."""

    @staticmethod
    def get(data_type: Attribute) -> TileType:
        """The tile of 32x32 elements."""
        return TileType(IntAttr(TILE_ROWS), IntAttr(TILE_COLUMNS), data_type)

    @property
    def rows(self) -> int:
        """Elements of a column."""
        return self.shape_rows.data

    @property
    def columns(self) -> int:
        """Elements of a row."""
        return self.shape_columns.data

    @property
    def bytes(self) -> int:
        """Bytes of the tile in memory: 4096 of f32, 1088 of `bfp8_b`, whose exponents come first."""
        elements = self.rows * self.columns
        if isinstance(self.data_type, BlockFloatType):
            return elements // SHARING + elements * self.data_type.bits // 8
        return elements * element_bytes(self.data_type)

    def verify(self) -> None:
        """The hardware's full tile, of elements that a data format has."""
        if (self.rows, self.columns) != (TILE_ROWS, TILE_COLUMNS):
            raise VerifyException(f"expected a tile of 32x32 elements, found {self.rows}x{self.columns}")
        format_of(self.data_type)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> tuple[Attribute, ...]:
        """Read `<32x32, f32>`."""
        with parser.in_angle_brackets():
            rows, columns = parse_dimensions(parser, 2)
            parser.parse_punctuation(",")
            return IntAttr(rows), IntAttr(columns), parser.parse_type()

    def print_parameters(self, printer: Printer) -> None:
        """Write `<32x32, f32>`."""
        with printer.in_angle_brackets():
            printer.print_string(f"{self.rows}x{self.columns}, ")
            printer.print_attribute(self.data_type)


def parse_dimensions(parser: AttrParser, count: int) -> list[int]:
    """Read numbers with an `x` between two of them: `32x32`."""
    found = [parser.parse_shape_dimension()]
    while len(found) < count:
        parser.parse_shape_delimiter()
        found.append(parser.parse_shape_dimension())
    return found


@irdl_attr_definition
class GridAttr(ParametrizedAttribute):
    """The cores that run a kernel: `#ttcore.grid<4x2>` is four columns (x) and two rows (y) of them."""

    name = "ttcore.grid"

    size_x: IntAttr = param_def()
    size_y: IntAttr = param_def()

    @staticmethod
    def get(x: int, y: int) -> GridAttr:
        """The grid with x columns and y rows."""
        return GridAttr(IntAttr(x), IntAttr(y))

    @property
    def x(self) -> int:
        """Columns of cores."""
        return self.size_x.data

    @property
    def y(self) -> int:
        """Rows of cores."""
        return self.size_y.data

    @property
    def cores(self) -> int:
        """All cores."""
        return self.x * self.y

    def verify(self) -> None:
        """Check that there is a core."""
        if self.x < 1 or self.y < 1:
            raise VerifyException(f"a grid has at least one core, found {self.x}x{self.y}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> tuple[Attribute, ...]:
        """Read `<4x2>`."""
        with parser.in_angle_brackets():
            x, y = parse_dimensions(parser, 2)
        return IntAttr(x), IntAttr(y)

    def print_parameters(self, printer: Printer) -> None:
        """Write `<4x2>`."""
        with printer.in_angle_brackets():
            printer.print_string(f"{self.x}x{self.y}")


class MemorySpace(StrEnum):
    """Memory that a buffer is in."""

    DRAM = "dram"
    """The device's memory, in banks."""
    L1 = "l1"
    """The memory of a core."""


@irdl_attr_definition
class MemorySpaceAttr(EnumAttribute[MemorySpace], SpacedOpaqueSyntaxAttribute):
    """`#ttcore<memory_space l1>`, which is also read as `#ttcore.memory_space<l1>`."""

    name = "ttcore.memory_space"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> MemorySpace:
        """Read the word, in angle brackets or after a space."""
        if parser.parse_optional_punctuation("<"):
            word = parser.parse_str_enum(MemorySpace)
            parser.parse_punctuation(">")
            return word
        return parser.parse_str_enum(MemorySpace)


TTCORE = dialect_of("ttcore", globals())
