"""Division of the work of `attention_decode`: splits of the keys, blocks, programs of a multiprocessor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..config import CONSUMER_ROWS, SHARED_BYTES, Pieces, pieces_of

PIECE = 64
"""Elements of a piece of a head at most."""

MAX_REGISTERS = {1: None, 2: 128}
"""Registers of a thread at the launch, by the programs of a multiprocessor; the consumer gets the producer's."""

FP8_REGISTERS = 128
"""The same of caches in 8 bits, whose programs are RESIDENT."""

MAX_SPLITS = 64
"""Parts of a head's keys, which one program merges at once."""

ITEM_BLOCKS = 2
"""What an item costs besides its blocks, in blocks of keys: its queries and its sums. An estimate, not measured."""


def splits_for(heads: int, blocks: int, programs: int) -> int:
    """Return the number of parts into which each of `heads` (over batches and tiles) divides its blocks of keys.

    The number, at most MAX_SPLITS, for which the program with the most work has the least: rounds of items, times an
    item's blocks and what it costs besides. Of equal ones the smallest, which merges least.
    """
    return min(
        range(1, min(blocks, MAX_SPLITS) + 1),
        key=lambda splits: (-(-heads * splits // programs) * (-(-blocks // splits) + ITEM_BLOCKS), splits),
    )


class Blocks(NamedTuple):
    """Keys of a block, how many blocks of K and V a program has in shared memory, and programs of a multiprocessor."""

    keys: int
    stages: int
    resident: int


@dataclass(frozen=True)
class Tiling:
    """Facts that a kernel is compiled for: blocks of keys, pieces of heads of K and V, and what it may rest on.

    With `direct` there is one split. `page` are the rows of a page, of which `part` are loaded at once; without pages
    both are those of a block. Rows of queries and results are multiples of `unit` elements. `rows` are the queries of a
    tile, those of a wgmma or, of a cache `in_8_bits`, the columns of one.
    """

    block_n: int
    stages: int
    qk: Pieces
    v: Pieces
    causal: bool
    direct: bool
    page: int
    part: int
    unit: int
    rows: int = CONSUMER_ROWS
    in_8_bits: bool = False

    @property
    def qk_parts(self) -> Pieces:
        """The parts of a block of K."""
        return Pieces(self.qk.elements, self.qk.number * self.block_n // self.part)

    @property
    def v_parts(self) -> Pieces:
        """The parts of a block of V."""
        return Pieces(self.v.elements, self.v.number * self.block_n // self.part)


RESIDENT = 2
"""Programs of a multiprocessor where they fit: one loads while the other computes, begins or ends an item."""

_ELEMENT_BYTES = 2
"""Of what is multiplied."""


def blocks_for(dim: int, v_dim: int) -> Blocks:
    """Blocks of some 32 KB of K and V, and as many as fit beside the queries, and the sums on their way to memory.

    Those are in the order of the products' results, and change to that of rows through shared memory.
    """
    width, v_pieces = decode_pieces(dim).width, decode_pieces(v_dim)
    v_width = v_pieces.width
    keys = 128 if width + v_width <= 128 else 64
    resident = RESIDENT if width <= 128 and v_width <= 128 else 1
    free = SHARED_BYTES // resident - CONSUMER_ROWS * (width * _ELEMENT_BYTES + v_pieces.elements * 4)
    return Blocks(keys, min(free // (keys * (width + v_width) * _ELEMENT_BYTES), 6), resident)


def columns_for(rows: int, v_dim: int) -> int:
    """Queries that are the columns of a product with a cache in 8 bits: a power of two, as many as there are rows.

    Their sums are in the registers of one warp group.
    """
    return min(max(8, 1 << (rows - 1).bit_length()), 64 if v_dim <= 128 else 32)


FP8_STAGES = 2
"""Blocks of a cache in 8 bits that a program has in shared memory: 3, 4 and 6 were up to 5 % slower on an H200."""


def fp8_blocks_for(dim: int, v_dim: int) -> Blocks:
    """Choose blocks of some 16 KB for a cache in 8 bits, or of 32 KB where a head has more than 128 elements."""
    return Blocks(128 if fp8_pieces(dim).width + fp8_pieces(v_dim).width <= 128 else 64, FP8_STAGES, RESIDENT)


def fp8_pieces(dim: int) -> Pieces:
    """Pieces of a head in 8 bits: those of V are rows of a product's left operand, which are 64 or more."""
    return pieces_of(dim, 64 if dim <= 64 else 128)


def decode_pieces(dim: int) -> Pieces:
    """Pieces of rows of at most 128 bytes: parts of a block lie in shared memory as the block does.

    With sums of 128 columns an item cost 20 us more on an H200, whatever its keys.
    """
    found = pieces_of(dim)
    return found if found.elements <= PIECE else pieces_of(dim, PIECE)
