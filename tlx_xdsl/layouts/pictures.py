"""Layouts as tables for pictures: who holds which element, in which bank it lies, what a conversion moves.

A picture of a large tensor is one of its first rows and columns, in tiles that one holder has in one piece. What is not
drawn follows from that: all sizes are powers of two, and the layouts repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .address import TMEM_COLUMN_BITS, padded_place, shared_addresses
from .conversion.distributed import distributed_to_linear
from .conversion.tensor_memory import tensor_memory_to_linear
from .conversion.tiling import BLOCK, COL, LANE, REGISTER, ROW, WARP, dim_names
from .conversion_cost import ConversionKind, conversion_kind
from .encodings import DistributedLayout, Ints, SharedLayout, TmemLayout
from .f2 import image
from .linear_layout import LinearLayout
from .matrix_access import matrix_rows
from .shared_access import (
    BANKS,
    WARP_BITS,
    WORD_BYTES,
    element_offsets,
    lanes_per_pass,
    shared_access,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS, ACROSS = 16, 8
"""Rows and columns of tiles in a picture: more can't be read on a phone."""


@dataclass(frozen=True)
class Holders:
    """Holders of the elements of a tensor; of copies the first."""

    ctas: NDArray[np.int64]
    """The CTA of the cluster, by element; the others likewise."""
    warps: NDArray[np.int64]
    lanes: NDArray[np.int64]
    registers: NDArray[np.int64]

    @property
    def threads(self) -> NDArray[np.int64]:
        """The thread of its CTA."""
        return self.warps << WARP_BITS | self.lanes

    def part(self, rows: slice, columns: slice) -> Holders:
        """The holders of some rows and columns."""
        return Holders(*(each[rows, columns] for each in (self.ctas, self.warps, self.lanes, self.registers)))


def holders(layout: DistributedLayout, shape: Ints) -> Holders:
    """The holders of a tensor's elements, as arrays of `shape`. Raises ValueError if the layout does not fit it."""
    inverse = distributed_to_linear(layout, shape).right_inverse()
    indices = dict(zip(dim_names(len(shape)), np.indices(shape, sparse=True), strict=True))
    found = inverse.apply_array(indices)
    return Holders(*(np.broadcast_to(found.get(name, 0), shape) for name in (BLOCK, WARP, LANE, REGISTER)))


def copies(linear: LinearLayout) -> int:
    """The number of holders that each element has."""
    return 1 << (linear.in_bits - linear.rank)


def as_matrix(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """The last two dimensions of a table, at the index 0 of those before; a vector is a row."""
    while table.ndim > 2:
        table = table[0]
    return table.reshape(1, -1) if table.ndim < 2 else table


@dataclass(frozen=True)
class RegisterTiles:
    """The first tiles of a tensor in registers; a tile is what a thread holds in registers that follow each other."""

    tile: tuple[int, int]
    """Rows and columns of a tile: one of the two is 1."""
    holders: Holders
    """Who holds each tile, by row and column of tiles; the registers are the first of each."""
    blocks: NDArray[np.int64]
    """The warp of each block of the whole tensor, in the largest blocks that lie in one warp."""
    block: tuple[int, int]
    """Rows and columns of such a block."""


def register_tiles(layout: DistributedLayout, shape: Ints) -> RegisterTiles:
    """The picture of a tensor in registers. Raises ValueError if the layout does not fit the shape."""
    found = holders(layout, shape)
    whole = Holders(*map(as_matrix, (found.ctas, found.warps, found.lanes, found.registers)))
    threads = whole.threads
    tile = (1, _run(threads, whole.registers))
    if tile[1] == 1:
        tile = (_run(threads.T, whole.registers.T), 1)
    rows, columns = (slice(0, count * size, size) for count, size in zip((ROWS, ACROSS), tile, strict=True))
    block = (_constant(whole.warps), _constant(whole.warps.T))
    return RegisterTiles(tile, whole.part(rows, columns), whole.warps[:: block[0], :: block[1]], block)


def _run(threads: NDArray[np.int64], registers: NDArray[np.int64]) -> int:
    """The elements of a row, as a power of two, that a thread holds in registers that follow each other."""
    size = 1
    while 2 * size <= threads.shape[1]:
        wide = 2 * size
        steps = registers[:, :wide] - registers[:, :1]
        if (threads[:, :wide] != threads[:, :1]).any() or (steps != np.arange(wide)).any():
            break
        size = wide
    return size


def _constant(table: NDArray[np.int64]) -> int:
    """The rows, as a power of two, that are alike from each multiple of this number on."""
    size = 1
    while 2 * size <= table.shape[0]:
        groups = table.reshape(-1, 2 * size, table.shape[1])
        if (groups != groups[:, :1]).any():
            break
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
    bytes: NDArray[np.int64]
    """The byte at which each tile begins."""

    @property
    def banks(self) -> NDArray[np.int64]:
        """The bank in which each tile begins."""
        return self.bytes // WORD_BYTES % BANKS


def shared_tiles(layout: SharedLayout, shape: Ints, element_bits: int) -> SharedTiles:
    """The picture of a buffer in shared memory. Raises ValueError if the layout does not fit the shape."""
    addresses = as_matrix(shared_addresses(layout, shape, element_bits))
    width = max(1, element_bits // 8)
    across = 1 if addresses.shape[1] > 1 and addresses[0, 1] - addresses[0, 0] == width else 0
    if addresses.shape[0] == 1:
        across = 1
    drawn = addresses if across else addresses.T
    elements = 1
    while 2 * elements * width <= CHUNK_BYTES and 2 * elements <= drawn.shape[1]:
        wide = drawn[:, : 2 * elements] - drawn[:, :1]
        if (wide != width * np.arange(2 * elements)).any():
            break
        elements *= 2
    return SharedTiles(across, elements, drawn[:ROWS, : ACROSS * elements : elements])


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
    rows: NDArray[np.int64]
    """The matrix's row with which each tile begins, by lanes and columns of tiles."""
    starts: NDArray[np.int64]
    """The matrix's column with which it begins."""
    copy: NDArray[np.bool_]
    """Whether a tile holds what another one holds, too."""


def tensor_memory_tiles(layout: TmemLayout, shape: Ints, element_bits: int) -> TensorMemoryTiles:
    """The picture of a buffer in tensor memory. Raises ValueError if the layout does not fit the shape."""
    tile = shape[-2:]
    linear = tensor_memory_to_linear(layout, tile)
    along, across = linear.bases_of(ROW), linear.bases_of(COL)
    lanes = _leading(along, 0)
    gap = next((bit for bit, basis in enumerate(across) if any(basis)), 0)
    width = _leading(across[gap:], 1)
    step = width << gap
    lane, column = np.arange(0, 1 << len(along), lanes), np.arange(0, 1 << len(across), step)
    extra = {name: np.asarray(0) for name in linear.in_names if name not in (ROW, COL)}
    found = linear.apply_array({ROW: lane[:, None], COL: column[None, :], **extra})
    rows, starts = found["dim0"], found["dim1"]
    seen: set[tuple[int, int]] = set()
    copy = np.zeros(rows.shape, np.bool_)
    for place in np.ndindex(*rows.shape):
        key = (int(rows[place]), int(starts[place]))
        copy[place] = key in seen
        seen.add(key)
    return TensorMemoryTiles(lanes, step * element_bits / TMEM_COLUMN_BITS, width, rows, starts, copy)


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
    elements: NDArray[np.int64]
    """The number of elements by source and target. Copies that the target wants count each."""


def flow(source: DistributedLayout, target: DistributedLayout, shape: Ints) -> Flow:
    """The flow of a conversion of a tensor of `shape`; what a holder has already it does not get from another one.

    Raises ValueError if a layout does not fit the shape.
    """
    ours, theirs = distributed_to_linear(source, shape), distributed_to_linear(target, shape)
    kind = conversion_kind(ours, theirs)
    name = {ConversionKind.IN_THREAD: REGISTER, ConversionKind.IN_WARP: LANE}.get(kind, WARP)
    sent, wanted = _elements(ours, name), _elements(theirs, name)
    count = max(len(sent), len(wanted))
    held = np.zeros((count, 1 << ours.out_bits), np.bool_)
    held[np.arange(len(sent))[:, None], sent] = True
    takers = np.broadcast_to(np.arange(len(wanted))[:, None], wanted.shape)
    givers = np.where(held[takers, wanted], takers, held.argmax(axis=0)[wanted])
    table = np.zeros((len(sent), len(wanted)), np.int64)
    np.add.at(table, (givers, takers), 1)
    return Flow(kind, name, table)


def _elements(linear: LinearLayout, name: str) -> NDArray[np.int64]:
    """The elements (row-major numbers) of each index `name`: of a lane those in warp 0, of a register in lane 0."""
    inner = (REGISTER, LANE, WARP)[: (REGISTER, LANE, WARP).index(name)]
    sizes = [linear.in_sizes[name], *(linear.in_sizes[each] for each in inner)]
    grids = dict(zip((name, *inner), np.indices(sizes, sparse=True), strict=True))
    found = linear.apply_array({each: grids.get(each, np.asarray(0)) for each in linear.in_names})
    numbers = np.zeros(sizes, np.int64)
    for dim, size in linear.outs:
        numbers = numbers * size + found[dim]
    return numbers.reshape(sizes[0], -1)
