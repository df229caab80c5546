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

import tlx_xdsl
import tlx_xdsl.language as tl

from ..gemm.grouped.parts import cut_at
from ..rings import tile_of as tile_in_turn


@tlx_xdsl.jit
def place_in_round(turn, CAUSAL: tl.constexpr):
    """The place of this program in a round of tiles: a causal mask assigns alternate rounds in reverse order."""
    pid = tl.program_id(0)
    return tl.where(turn % 2 == 0, pid, tl.num_programs(0) - 1 - pid) if CAUSAL else pid


@tlx_xdsl.jit
def count_tiles(num_tiles, CAUSAL: tl.constexpr):
    """The number of tiles that this program takes: one in each full round, and perhaps one of the rest."""
    rounds = num_tiles // tl.num_programs(0)
    rest = num_tiles - rounds * tl.num_programs(0)
    return rounds + (place_in_round(rounds, CAUSAL) < rest).to(tl.int32)


@tlx_xdsl.jit
def tile_of(turn, Q_LENGTH, HEADS_TOGETHER, BLOCK_M: tl.constexpr, CAUSAL: tl.constexpr):
    """Head (over all batches) and first row of the program's `turn`-th tile."""
    tiles = tl.cdiv(Q_LENGTH, BLOCK_M)
    tile = turn * tl.num_programs(0) + place_in_round(turn, CAUSAL)
    together = tiles * HEADS_TOGETHER
    rest = tile % together
    place = rest // HEADS_TOGETHER
    row = (tiles - 1 - place if CAUSAL else place) * BLOCK_M
    return tile // together * HEADS_TOGETHER + rest % HEADS_TOGETHER, row


@tlx_xdsl.jit
def blocks_until(last_key, KV_LENGTH, BLOCK_N: tl.constexpr, MASKED: tl.constexpr):
    """Blocks of keys up to the one with `last_key`, or all of them where nothing is masked."""
    blocks = tl.cdiv(KV_LENGTH, BLOCK_N)
    return min(last_key // BLOCK_N + 1, blocks) if MASKED else blocks


@tlx_xdsl.jit
def first_block(row, lower, KV_LENGTH, BLOCK_N: tl.constexpr):
    """The block with the first key that `row` sees; where it sees none, the one of the sequence that is nearest."""
    if lower is None:
        return 0
    return max(min(row + lower, KV_LENGTH - 1), 0) // BLOCK_N


@tlx_xdsl.jit
def end_block(
    last_key, first, KV_LENGTH, BLOCK_N: tl.constexpr, MASKED: tl.constexpr, MAY_BE_EMPTY: tl.constexpr
):  # fmt: skip
    """The block after the one with `last_key`; at least one after `first`, whatever the rows see."""
    end = blocks_until(last_key, KV_LENGTH, BLOCK_N, MASKED)
    return max(end, first + 1) if MAY_BE_EMPTY else end


@tlx_xdsl.jit
def last_key_of(row, KV_LENGTH, upper, CAUSAL: tl.constexpr):
    """The last key that a row sees.

    Without a limit the diagonal lies after all keys, and their end counts. That it is the same for all tiles stays
    hidden: LLVM would compute the mask before them, and hold it in registers.
    """
    if upper is None:
        return row if CAUSAL else row + KV_LENGTH
    return row + upper


@tlx_xdsl.jit
def tile_blocks(
    row, KV_LENGTH, lower, upper, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
    MAY_BE_EMPTY: tl.constexpr,
):  # fmt: skip
    """The first block that the rows of a tile see, and the one after the last."""
    first = first_block(row, lower, KV_LENGTH, BLOCK_N)
    last_key = last_key_of(row + BLOCK_M - 1, KV_LENGTH, upper, CAUSAL)
    return first, end_block(last_key, first, KV_LENGTH, BLOCK_N, CAUSAL or upper is not None, MAY_BE_EMPTY)


@tlx_xdsl.jit
def whole_blocks(first_row, last_key, end, steps, lower, upper, ROWS: tl.constexpr, BLOCK_N: tl.constexpr):
    """The first step at which no row's upper limit cuts the block, and the first one at which a lower limit does.

    Step n takes block end - 1 - n. Step 0 stands before both, `steps` is the one after the last.
    """
    begin = 1
    if upper is not None:
        begin = min(max(end - max(last_key + 1, 0) // BLOCK_N, 1), steps)
    if lower is None:
        return begin, steps
    return begin, min(max(end - tl.cdiv(max(first_row + ROWS - 1 + lower, 0), BLOCK_N), begin), steps)


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
def rows_of(sums_ptr, sequence, ROWS, SEQUENCES):
    """The first row of a sequence and its length, 0 for that after the last; sums outside of the tensor are cut."""
    at = min(sequence, SEQUENCES - 1)
    start = min(max(tl.load(sums_ptr + at), 0), ROWS)
    end = min(max(tl.load(sums_ptr + at + 1), start), ROWS)
    return start, tl.where(sequence < SEQUENCES, end - start, 0)


@tlx_xdsl.jit
def sequence_at(sequence, sums, rows, SEQUENCES):
    """First rows of a sequence, of queries and of keys, and its lengths; `sums` and `rows` are of both, too."""
    q_start, q_length = rows_of(sums[0], sequence, rows[0], SEQUENCES)
    k_start, k_length = rows_of(sums[1], sequence, rows[1], SEQUENCES)
    return (q_start, k_start), (q_length, k_length)


@tlx_xdsl.jit
def seek(tile, place, sums, rows, SEQUENCES, HEADS, BLOCK_M: tl.constexpr):
    """The place of the sequence that has `tile`, from that of an earlier tile on; SEQUENCES when all come before.

    A place is the number of a sequence, the tiles of all heads before it, its first rows and its lengths. Memory is
    read only where the sequence is another one: a tile would wait for it.
    """
    sequence, before, starts, lengths = place
    tiles = tl.cdiv(lengths[0], BLOCK_M) * HEADS
    while (sequence < SEQUENCES) & (tile >= before + tiles):
        sequence += 1
        before += tiles
        starts, lengths = sequence_at(sequence, sums, rows, SEQUENCES)
        tiles = tl.cdiv(lengths[0], BLOCK_M) * HEADS
    return sequence, before, starts, lengths


@tlx_xdsl.jit
def tile_in_sequence(tile, length, HEADS_TOGETHER, BLOCK_M: tl.constexpr, UNEVEN: tl.constexpr):
    """Head and first row of a sequence's tile; HEADS_TOGETHER heads, which divide all, take theirs in turn.

    Where later rows see more keys the last ones come first.
    """
    tiles = tl.cdiv(length, BLOCK_M)
    head, row = tile_in_turn(tile, tiles, HEADS_TOGETHER, BLOCK_M)
    return head, (tiles - 1) * BLOCK_M - row if UNEVEN else row
