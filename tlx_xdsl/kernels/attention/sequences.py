"""Tiles of programs, and the blocks of keys that the rows of a tile see, for the attention kernels.

Query i sees the keys i + lower to i + upper, both included, and none outside of the sequence; None is no limit. A plain
causal mask (CAUSAL) is upper = 0: 64 rows never cross from one block of keys to the next there.

Blocks of keys are numbered from the first one of a sequence, and taken from the last one down. Of those that a
consumer's rows see, the first ones taken may be cut by the upper limit, the last ones by the lower limit, and all rows
see the ones between whole.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

from typing import Any, NamedTuple

import tlx_xdsl
import tlx_xdsl.language as tl

from ..gemm.grouped.parts import cut_at
from ..rings import tile_of as tile_in_turn
from .pieces import ROWS


class Grid(NamedTuple):
    """The source of tiles where each head has a batch of its own: all of one length."""

    batch_heads: Any
    heads: Any
    group: Any
    queries: Any
    keys: Any
    together: Any
    """Heads that take their tiles in turn."""


class Sequences(NamedTuple):
    """The source of tiles where sequences follow each other: `q_sums` and `k_sums` say where each begins."""

    q_sums: Any
    k_sums: Any
    counter: Any
    q_rows: Any
    k_rows: Any
    count: Any
    heads: Any
    group: Any
    together: Any


class Tile(NamedTuple):
    """A tile, the program's `turn`-th one."""

    turn: Any
    row: Any
    """The first one, counted from the start of its sequence."""
    starts: Any
    """Where queries and keys of the sequence begin, None where it has a batch of its own."""
    lengths: Any
    """Queries and keys of the sequence."""
    limits: Any
    """The first and the last key that a query sees, less its own number."""


@tlx_xdsl.jit
def place_in_round(turn, T: tl.constexpr):
    """The place of this program in a round of tiles: a causal mask assigns alternate rounds in reverse order."""
    pid = tl.program_id(0)
    return tl.where(turn % 2 == 0, pid, tl.num_programs(0) - 1 - pid) if T.uneven else pid


@tlx_xdsl.jit
def count_tiles(grid, T: tl.constexpr):
    """The number of tiles that this program takes: one in each full round, and perhaps one of the rest."""
    num_tiles = grid.batch_heads * tl.cdiv(grid.queries, T.block_m)
    rounds = num_tiles // tl.num_programs(0)
    rest = num_tiles - rounds * tl.num_programs(0)
    return rounds + (place_in_round(rounds, T) < rest).to(tl.int32)


@tlx_xdsl.jit
def tile_of(grid, turn, limits, T: tl.constexpr):
    """Head (over all batches) of the program's `turn`-th tile, and the tile."""
    tiles = tl.cdiv(grid.queries, T.block_m)
    tile = turn * tl.num_programs(0) + place_in_round(turn, T)
    together = tiles * grid.together
    rest = tile % together
    place = rest // grid.together
    row = (tiles - 1 - place if T.uneven else place) * T.block_m
    head = tile // together * grid.together + rest % grid.together
    return head, Tile(turn, row, None, (grid.queries, grid.keys), limits)


@tlx_xdsl.jit
def first_block(row, tile, T: tl.constexpr):
    """The block with the first key that `row` sees; where it sees none, the one of the sequence that is nearest."""
    lower, _ = tile.limits
    if lower is None:
        return 0
    return max(min(row + lower, tile.lengths[1] - 1), 0) // T.block_n


@tlx_xdsl.jit
def end_block(last_key, first, tile, MASKED: tl.constexpr, T: tl.constexpr):
    """The block after the one with `last_key`, or after all where nothing is masked.

    At least one after `first`, whatever the rows see.
    """
    blocks = tl.cdiv(tile.lengths[1], T.block_n)
    end = min(last_key // T.block_n + 1, blocks) if MASKED else blocks
    return max(end, first + 1) if T.may_be_empty else end


@tlx_xdsl.jit
def last_key_of(row, tile, T: tl.constexpr):
    """The last key that a row sees.

    Without a limit the diagonal lies after all keys, and their end counts. That it is the same for all tiles stays
    hidden: LLVM would compute the mask before them, and hold it in registers.
    """
    _, upper = tile.limits
    if upper is None:
        return row if T.causal else row + tile.lengths[1]
    return row + upper


@tlx_xdsl.jit
def tile_blocks(tile, T: tl.constexpr):
    """The first block that the rows of a tile see, and the one after the last."""
    first = first_block(tile.row, tile, T)
    last_key = last_key_of(tile.row + T.block_m - 1, tile, T)
    return first, end_block(last_key, first, tile, T.uneven, T)


@tlx_xdsl.jit
def whole_blocks(first_row, last_key, end, steps, limits, T: tl.constexpr):
    """The first step at which no row's upper limit cuts the block, and the first one at which a lower limit does.

    Step n takes block end - 1 - n. Step 0 stands before both, `steps` is the one after the last.
    """
    lower, upper = limits
    begin = 1
    if upper is not None:
        begin = min(max(end - max(last_key + 1, 0) // T.block_n, 1), steps)
    if lower is None:
        return begin, steps
    return begin, min(max(end - tl.cdiv(max(first_row + ROWS - 1 + lower, 0), T.block_n), begin), steps)


@tlx_xdsl.jit
def row_at(start, row):
    """A row of a sequence that begins at `start`, or at the first row where that is None."""
    return row if start is None else start + row


@tlx_xdsl.jit
def in_sequence(batch, row, start, length, BLOCK: tl.constexpr):
    """The coordinates before and after the head of a block of BLOCK rows, which ends where the sequence does."""
    if start is None:
        return (batch,), row
    far, last, place = cut_at(start + length, start + row, BLOCK)
    return (far, last), place


@tlx_xdsl.jit
def rows_of(sums_ptr, sequence, rows, count):
    """The first row of a sequence and its length, 0 for that after the last; sums outside of the tensor are cut."""
    at = min(sequence, count - 1)
    start = min(max(tl.load(sums_ptr + at), 0), rows)
    end = min(max(tl.load(sums_ptr + at + 1), start), rows)
    return start, tl.where(sequence < count, end - start, 0)


@tlx_xdsl.jit
def sequence_at(sequences, number):
    """First rows of a sequence, of queries and of keys, and its lengths."""
    q_start, q_length = rows_of(sequences.q_sums, number, sequences.q_rows, sequences.count)
    k_start, k_length = rows_of(sequences.k_sums, number, sequences.k_rows, sequences.count)
    return (q_start, k_start), (q_length, k_length)


@tlx_xdsl.jit
def seek(sequences, tile, place, T: tl.constexpr):
    """The place of the sequence that has `tile`, from that of an earlier tile on; past the last when all come before.

    A place is the number of a sequence, the tiles of all heads before it, its first rows and its lengths. Memory is
    read only where the sequence is another one: a tile would wait for it.
    """
    sequence, before, starts, lengths = place
    tiles = tl.cdiv(lengths[0], T.block_m) * sequences.heads
    while (sequence < sequences.count) & (tile >= before + tiles):
        sequence += 1
        before += tiles
        starts, lengths = sequence_at(sequences, sequence)
        tiles = tl.cdiv(lengths[0], T.block_m) * sequences.heads
    return sequence, before, starts, lengths


@tlx_xdsl.jit
def first_place(sequences, tile, T: tl.constexpr):
    """The place of the sequence that has a program's first tile."""
    return seek(sequences, tile, (0, 0, *sequence_at(sequences, 0)), T)


@tlx_xdsl.jit
def tile_at(sequences, number, place, turn, limits, T: tl.constexpr):
    """Head in its sequence of the tile with a number, and the tile; with BOTTOM_RIGHT limits count from the last keys.

    Heads that go together, which divide all, take their tiles in turn. Where later rows see more keys the last ones
    come first.
    """
    _, before, starts, lengths = place
    number -= before
    tiles = tl.cdiv(lengths[0], T.block_m)
    head, row = tile_in_turn(number, tiles, sequences.together, T.block_m)
    row = (tiles - 1) * T.block_m - row if T.uneven else row
    if T.bottom_right:
        lower, upper = limits
        offset = lengths[1] - lengths[0]
        limits = (None if lower is None else lower + offset, None if upper is None else upper + offset)
    return head, Tile(turn, row, starts, lengths, limits)
