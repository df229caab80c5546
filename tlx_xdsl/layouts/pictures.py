"""Layouts as tables for pictures: who holds which element, in which bank it lies, what a conversion moves.

A picture of a large tensor is one of its first rows and columns, in tiles that one holder has in one piece. What is not
drawn follows from that: all sizes are powers of two, and the layouts repeat. Tables are computed without numpy, since
pictures are drawn in browsers, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .address import TMEM_COLUMN_BITS, padded_place, split
from .conversion.distributed import distributed_to_linear
from .conversion.shared import buffer_rank, shared_to_linear
from .conversion.tensor_memory import tensor_memory_to_linear
from .conversion.tiling import BLOCK, COL, LANE, OFFSET, REGISTER, ROW, WARP, dim_names
from .conversion_cost import ConversionKind, conversion_kind
from .encodings import DistributedLayout, Ints, SharedLayout, TmemLayout
from .f2 import image
from .linear_layout import LinearLayout, log2
from .matrix_access import matrix_rows
from .shared_access import (
    BANKS,
    WARP_BITS,
    WORD_BYTES,
    element_offsets,
    lanes_per_pass,
    shared_access,
)

ROWS, ACROSS = 16, 8
"""Rows and columns of tiles in a picture: more can't be read on a phone."""


@dataclass(frozen=True)
class Table:
    """A table of numbers, by row and column."""

    rows: tuple[tuple[int, ...], ...]

    @staticmethod
    def linear(down: Sequence[int], across: Sequence[int]) -> Table:
        """The table of a linear map over F2: bases of the bits of the row's number and of the column's.

        >>> Table.linear([1], [2, 4]).rows
        ((0, 2, 4, 6), (1, 3, 5, 7))
        """
        right = images(across)
        return Table(tuple(tuple(start ^ each for each in right) for start in images(down)))

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and that of columns."""
        return len(self.rows), len(self.rows[0])

    @property
    def turned(self) -> Table:
        """The table with rows for columns."""
        return Table(tuple(zip(*self.rows, strict=True)))

    def part(self, rows: slice, columns: slice) -> Table:
        """Return some of the rows and columns."""
        return Table(tuple(row[columns] for row in self.rows[rows]))

    def map(self, function: Callable[[int], int]) -> Table:
        """The table of a function of the numbers."""
        return Table(tuple(tuple(map(function, row)) for row in self.rows))

    def each(self) -> Iterator[tuple[tuple[int, int], int]]:
        """The places, as row and column, and the numbers, row by row."""
        for i, row in enumerate(self.rows):
            for j, number in enumerate(row):
                yield (i, j), number

    def __getitem__(self, place: tuple[int, int]) -> int:
        """The number at a row and a column."""
        return self.rows[place[0]][place[1]]


def images(bases: Sequence[int]) -> list[int]:
    """The images of all numbers below 2 to the number of bits, by the image of each bit.

    >>> images([1, 4])
    [0, 1, 4, 5]
    """
    found = [0]
    for basis in bases:
        found += [each ^ basis for each in found]
    return found


def _matrix(linear: LinearLayout, shape: Ints, names: Sequence[str]) -> list[Table]:
    """The outputs of a layout by the last two dimensions of a tensor, at the index 0 of those before.

    A vector is a row. An output that the layout does not have is 0.
    """
    down, across = ("", *dim_names(len(shape)))[-2:]
    tables: list[Table] = []
    for name in names:
        at = linear.out_names.index(name) if name in linear.out_names else None
        bases = [linear.bases_of(dim) if dim in linear.in_names else () for dim in (down, across)]
        tables.append(Table.linear(*([0 if at is None else basis[at] for basis in side] for side in bases)))
    return tables


@dataclass(frozen=True)
class Holders:
    """Holders of the elements of a matrix; of copies the first."""

    ctas: Table
    """The CTA of the cluster, by element; the others likewise."""
    warps: Table
    lanes: Table
    registers: Table

    @property
    def threads(self) -> Table:
        """The thread of its CTA."""
        rows = zip(self.warps.rows, self.lanes.rows, strict=True)
        return Table(tuple(tuple(w << WARP_BITS | lane for w, lane in zip(*row, strict=True)) for row in rows))

    def part(self, rows: slice, columns: slice) -> Holders:
        """The holders of some rows and columns."""
        return Holders(*(each.part(rows, columns) for each in (self.ctas, self.warps, self.lanes, self.registers)))


def holders(layout: DistributedLayout, shape: Ints) -> Holders:
    """The holders of a tensor's last two dimensions, at the index 0 of those before; a vector is a row.

    Raises ValueError if the layout does not fit the shape.
    """
    inverse = distributed_to_linear(layout, shape).right_inverse()
    return Holders(*_matrix(inverse, shape, (BLOCK, WARP, LANE, REGISTER)))


def copies(linear: LinearLayout) -> int:
    """The number of holders that each element has."""
    return 1 << (linear.in_bits - linear.rank)


@dataclass(frozen=True)
class RegisterTiles:
    """The first tiles of a tensor in registers; a tile is what a thread holds in registers that follow each other."""

    tile: tuple[int, int]
    """Rows and columns of a tile: one of the two is 1."""
    holders: Holders
    """Who holds each tile, by row and column of tiles; the registers are the first of each."""
    blocks: Table
    """The warp of each block of the whole tensor, in the largest blocks that lie in one warp."""
    block: tuple[int, int]
    """Rows and columns of such a block."""


def register_tiles(layout: DistributedLayout, shape: Ints) -> RegisterTiles:
    """The picture of a tensor in registers. Raises ValueError if the layout does not fit the shape."""
    whole = holders(layout, shape)
    threads = whole.threads
    tile = (1, _run(threads, whole.registers))
    if tile[1] == 1:
        tile = (_run(threads.turned, whole.registers.turned), 1)
    rows, columns = (slice(0, count * size, size) for count, size in zip((ROWS, ACROSS), tile, strict=True))
    block = (_constant(whole.warps), _constant(whole.warps.turned))
    blocks = whole.warps.part(slice(None, None, block[0]), slice(None, None, block[1]))
    return RegisterTiles(tile, whole.part(rows, columns), blocks, block)


def _run(threads: Table, registers: Table) -> int:
    """The elements of a row, as a power of two, that a thread holds in registers that follow each other."""
    size = 1
    while 2 * size <= threads.shape[1]:
        wide = 2 * size
        for thread, register in zip(threads.rows, registers.rows, strict=True):
            follow = range(register[0], register[0] + wide)
            if any(each != thread[0] for each in thread[:wide]) or register[:wide] != tuple(follow):
                return size
        size = wide
    return size


def _constant(table: Table) -> int:
    """The rows, as a power of two, that are alike from each multiple of this number on."""
    size, rows = 1, table.rows
    while 2 * size <= len(rows) and all(rows[at] == rows[at + size] for at in range(0, len(rows), 2 * size)):
        size *= 2
    return size


# --- shared memory --------------------------------------------------------------------------------------------------

CHUNK_BYTES = 16
"""Bytes of a tile at most: what a lane moves with one instruction, and what the swizzles of TMA and wgmma move."""


@dataclass(frozen=True)
class SharedTiles:
    """The first tiles of a buffer in shared memory; a tile is at most 16 bytes that lie in one piece."""

    across: int
    """The dimension that is drawn from left to right, of the last two: 1, or 0 where columns lie in one piece."""
    elements: int
    """Elements of a tile."""
    bytes: Table
    """The byte at which each tile begins."""

    @property
    def banks(self) -> Table:
        """The bank in which each tile begins."""
        return self.bytes.map(lambda byte: byte // WORD_BYTES % BANKS)


def shared_tiles(layout: SharedLayout, shape: Ints, element_bits: int) -> SharedTiles:
    """The picture of a buffer in shared memory. Raises ValueError if the layout does not fit the shape."""
    tile = split(shape, buffer_rank(layout))[1]
    (offsets,) = _matrix(shared_to_linear(layout, tile).right_inverse(), tile, [OFFSET])
    addresses = offsets.map(lambda place: padded_place(layout, place) * element_bits // 8)
    width = max(1, element_bits // 8)
    across = 1 if addresses.shape[1] > 1 and addresses[0, 1] - addresses[0, 0] == width else 0
    if addresses.shape[0] == 1:
        across = 1
    drawn = addresses if across else addresses.turned
    elements = 1
    while 2 * elements * width <= CHUNK_BYTES and 2 * elements <= drawn.shape[1]:
        size = 2 * elements * width
        if any(row[: 2 * elements] != tuple(range(row[0], row[0] + size, width)) for row in drawn.rows):
            break
        elements *= 2
    return SharedTiles(across, elements, drawn.part(slice(ROWS), slice(0, ACROSS * elements, elements)))


def bank_words(
    layout: DistributedLayout,
    buffer: SharedLayout,
    shape: Ints,
    element_bits: int,
    *,
    matrices: bool = False,
    alloc_shape: Ints | None = None,
) -> list[int]:
    """The number of words that each bank gives in one pass of an access of warp 0, its first register.

    The access is that of `shared_access`, in vectors as wide as the layouts allow, or with `matrices` one wavefront of
    `matrix_access`. Without paddings all passes are alike up to the order of the banks, so the largest number is the
    number of ways of the conflict.
    Raises ValueError if a layout does not fit the shape.
    """
    rows = matrix_rows(layout, buffer, shape, element_bits, alloc_shape) if matrices else None
    if rows is not None:
        words = {image(rows, index) // WORD_BYTES for index in range(1 << len(rows))}
    else:
        width = shared_access(layout, buffer, shape, element_bits, alloc_shape).width_bits // 8
        lanes = element_offsets(layout, buffer, shape, alloc_shape).lanes
        places = (padded_place(buffer, image(lanes, lane)) for lane in range(lanes_per_pass(width)))
        starts = [place * max(1, element_bits // 8) for place in places]
        words = {word for at in starts for word in range(at // WORD_BYTES, (at + width - 1) // WORD_BYTES + 1)}
    return [sum(word % BANKS == bank for word in words) for bank in range(BANKS)]


# --- tensor memory --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TensorMemoryTiles:
    """A buffer in tensor memory, in tiles that hold a rectangle of the matrix as it is."""

    lanes: int
    """Lanes of a tile, and elements along them."""
    columns: float
    """Columns of 32 bits that a tile takes."""
    width: int
    """Elements of a tile along the columns."""
    rows: Table
    """The matrix's row with which each tile begins, by lanes and columns of tiles."""
    starts: Table
    """The matrix's column with which it begins."""
    copy: Table
    """1 where a tile holds what another one holds, too."""


def tensor_memory_tiles(layout: TmemLayout, shape: Ints, element_bits: int) -> TensorMemoryTiles:
    """The picture of a buffer in tensor memory. Raises ValueError if the layout does not fit the shape."""
    tile = shape[-2:]
    linear = tensor_memory_to_linear(layout, tile)
    along, across = linear.bases_of(ROW), linear.bases_of(COL)
    lanes = _leading(along, 0)
    gap = next((bit for bit, basis in enumerate(across) if any(basis)), 0)
    width = _leading(across[gap:], 1)
    step = width << gap
    rows, starts = (
        Table.linear([basis[dim] for basis in along[log2(lanes) :]], [basis[dim] for basis in across[log2(step) :]])
        for dim in (linear.out_names.index("dim0"), linear.out_names.index("dim1"))
    )
    seen: set[tuple[int, int]] = set()
    copy: list[list[int]] = [[0] * rows.shape[1] for _ in rows.rows]
    for (i, j), row in rows.each():
        copy[i][j] = int((row, starts[i, j]) in seen)
        seen.add((row, starts[i, j]))
    columns = step * element_bits / TMEM_COLUMN_BITS
    return TensorMemoryTiles(lanes, columns, width, rows, starts, Table(tuple(map(tuple, copy))))


def _leading(bases: Sequence[Ints], dim: int) -> int:
    """The elements along `dim` that the first bits of an index number as they are."""
    size = 1
    for basis in bases:
        if basis[dim] != size or any(value for other, value in enumerate(basis) if other != dim):
            break
        size *= 2
    return size


# --- conversions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Flow:
    """Elements that a conversion moves from each holder to each other one; holders are the smallest that exchange."""

    kind: ConversionKind
    holders: str
    """What the numbers count: `register`, `lane` (of warp 0) or `warp`."""
    elements: Table
    """The number of elements by source and target. Copies that the target wants count each."""


def flow(source: DistributedLayout, target: DistributedLayout, shape: Ints) -> Flow:
    """The flow of a conversion of a tensor of `shape`; what a holder has already it does not get from another one.

    Raises ValueError if a layout does not fit the shape.
    """
    ours, theirs = distributed_to_linear(source, shape), distributed_to_linear(target, shape)
    kind = conversion_kind(ours, theirs)
    name = {ConversionKind.IN_THREAD: REGISTER, ConversionKind.IN_WARP: LANE}.get(kind, WARP)
    sent, wanted = _elements(ours, name), _elements(theirs, name)
    first: dict[int, int] = {}
    for giver, elements in enumerate(sent):
        for element in elements:
            first.setdefault(element, giver)
    held = [set(elements) for elements in sent]
    table = [[0] * len(wanted) for _ in sent]
    for taker, elements in enumerate(wanted):
        for element in elements:
            own = taker < len(held) and element in held[taker]
            table[taker if own else first[element]][taker] += 1
    return Flow(kind, name, Table(tuple(map(tuple, table))))


def _elements(linear: LinearLayout, name: str) -> list[list[int]]:
    """The elements, packed, of each index `name`: of a lane those in warp 0, of a register in lane 0."""
    inner = (REGISTER, LANE, WARP)[: (REGISTER, LANE, WARP).index(name)]
    within = images([basis for each in inner for basis in linear.packed_bases(each)])
    return [[start ^ each for each in within] for start in images(linear.packed_bases(name))]
