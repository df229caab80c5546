"""Attention forward of sequences that follow each other in one tensor, for Hopper.

Tasks, rings, barriers and turns are those of `device`; read its top first. Here is the rest.

Tiles. Where the sequences begin is known on the GPU alone. All tiles of a sequence follow each other, HEADS_TOGETHER
heads in turn, whose K and V stay in the L2 cache. Lengths differ, so programs take tiles from a counter
(`rings`): a program that is done early has the next one. The first kernel sets the counter to zero. Each task
finds the sequence of a tile itself, going on from that of the tile before (`attention_sequences.seek`).

Edges. A block may reach into the next sequence. Rows of Q after the end give rows that no task stores, keys after the
end are hidden. Values are not, since 0 * NaN is NaN, nor may O be written there: descriptors of V and O are ragged, and
cut where the sequence ends (`gemm/grouped/parts`). Their dimensions are (2^31, 2^31, heads, 2^30, head dim).

A sequence without keys takes one block, all of it hidden.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalMemberAccess=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ..rings import begin_turns, end_turns, take_tile, taken_tile
from .pieces import ROWS
from .scores import LOG2_E, present
from .sequences import seek, sequence_at, tile_blocks, tile_in_sequence
from .tile import attend_tile, load_tile


@tlx_xdsl.jit
def clear_counter(counter_ptr):
    """Set the counter of tiles to zero."""
    tl.store(counter_ptr, 0.0)


@tlx_xdsl.jit
def limits_in(limits, q_length, k_length, BOTTOM_RIGHT: tl.constexpr):
    """The limits of the keys that a query of a sequence sees; with BOTTOM_RIGHT its last query sees up to its end."""
    lower, upper = limits
    if BOTTOM_RIGHT:
        offset = k_length - q_length
        return None if lower is None else lower + offset, None if upper is None else upper + offset
    return lower, upper


@tlx_xdsl.jit
def attention_varlen(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, q_sums_ptr, k_sums_ptr, counter_ptr, sm_scale,
    Q_ROWS, K_ROWS, SEQUENCES, HEADS, GROUP, HEADS_TOGETHER,
    lower, upper, softcap, sinks_ptr, score_0, score_1, score_2, score_3,
    CONSUMERS: tl.constexpr, REGISTERS: tl.constexpr, BLOCK_N: tl.constexpr, NUM_STAGES: tl.constexpr,
    PIECE: tl.constexpr, PIECES: tl.constexpr, V_PIECE: tl.constexpr, V_PIECES: tl.constexpr, O_IN_Q: tl.constexpr,
    CAUSAL: tl.constexpr, BOTTOM_RIGHT: tl.constexpr, SCORE_MOD: tl.constexpr,
):  # fmt: skip
    """The kernel; see the top of the file. Other arguments are those of `attention_device.attention`."""
    tl.static_assert(BLOCK_N % ROWS == 0, "one block of keys holds the diagonal of a consumer's rows")
    tl.static_assert(NUM_STAGES >= 2, "a consumer holds K of a block and V of the block before")
    BLOCK_M: tl.constexpr = CONSUMERS * ROWS
    UNEVEN: tl.constexpr = CAUSAL or upper is not None
    dtype: tl.constexpr = tlx.dtype_of(q_desc)
    sums = (q_sums_ptr, k_sums_ptr)
    rows = (Q_ROWS, K_ROWS)

    tiles = tlx.storage_alias_spec(storage=tlx.storage_kind.smem) if O_IN_Q else None
    q = tlx.local_alloc((1, 1, ROWS, PIECE), dtype, CONSUMERS * PIECES, reuse=tiles)
    k = tlx.local_alloc((1, 1, BLOCK_N, PIECE), dtype, NUM_STAGES * PIECES)
    v = tlx.local_alloc((1, 1, 1, BLOCK_N, V_PIECE), dtype, NUM_STAGES * V_PIECES)
    o = tlx.local_alloc((1, 1, 1, ROWS, V_PIECE), dtype, CONSUMERS * V_PIECES, reuse=tiles)
    if O_IN_Q:
        tiles.set_buffer_overlap(
            tlx.reuse_group(
                tlx.reuse_group(q, group_size=PIECES),
                tlx.reuse_group(o, group_size=V_PIECES),
                group_type=tlx.reuse_group_type.shared,
            )
        )
    q_full = tlx.alloc_barriers(CONSUMERS)
    q_empty = tlx.alloc_barriers(CONSUMERS)
    k_full = tlx.alloc_barriers(NUM_STAGES)
    v_full = tlx.alloc_barriers(NUM_STAGES)
    k_empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=CONSUMERS)
    v_empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=CONSUMERS)
    rings = (k_full, k_empty, v_full, v_empty)
    next_tile = tlx.local_alloc((1,), tl.int32, 1)
    tile_full = tlx.alloc_barriers(1)
    tile_empty = tlx.alloc_barriers(1, arrive_count=CONSUMERS)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            stage = 0
            phase = 0
            turn = 0
            tile = tl.program_id(0)
            place = seek(tile, (0, 0, *sequence_at(0, sums, rows, SEQUENCES)), sums, rows, SEQUENCES, HEADS, BLOCK_M)
            while place[0] < SEQUENCES:
                sequence, before, starts, lengths = place
                h, row = tile_in_sequence(tile - before, lengths[0], HEADS_TOGETHER, BLOCK_M, UNEVEN)
                low, high = limits_in((lower, upper), lengths[0], lengths[1], BOTTOM_RIGHT)
                blocks = tile_blocks(row, lengths[1], low, high, BLOCK_M, BLOCK_N, CAUSAL, True)
                stage, phase = load_tile(
                    (q_desc, k_desc, v_desc), (q, k, v), (q_full, q_empty), rings, (0, h, h // GROUP), row, blocks,
                    starts, lengths[1], turn, stage, phase,
                    CONSUMERS, BLOCK_N, NUM_STAGES, PIECES, V_PIECES, O_IN_Q,
                )  # fmt: skip
                tile = take_tile(counter_ptr, next_tile[0], tile_full[0], tile_empty[0], turn)
                turn += 1
                place = seek(tile, place, sums, rows, SEQUENCES, HEADS, BLOCK_M)

        with tlx.async_task(num_warps=4, replicate=CONSUMERS, registers=REGISTERS):  # consumers
            c: tl.constexpr = tlx.async_task_replica_id()
            scale = sm_scale * LOG2_E
            score_args = present((score_0, score_1, score_2, score_3))
            begin_turns(c, CONSUMERS)
            stage = 0
            phase = 0
            turn = 0
            tile = tl.program_id(0)
            place = seek(tile, (0, 0, *sequence_at(0, sums, rows, SEQUENCES)), sums, rows, SEQUENCES, HEADS, BLOCK_M)
            while place[0] < SEQUENCES:
                sequence, before, starts, lengths = place
                h, row = tile_in_sequence(tile - before, lengths[0], HEADS_TOGETHER, BLOCK_M, UNEVEN)
                limits = limits_in((lower, upper), lengths[0], lengths[1], BOTTOM_RIGHT)
                stage, phase = attend_tile(
                    (q, k, v, o), (q_full[c], q_empty[c]), rings, (o_desc, lse_ptr, Q_ROWS),
                    (sequence * HEADS + h, HEADS), row, starts, lengths, limits,
                    (scale, sinks_ptr, sm_scale, softcap, score_args), turn, stage, phase, c,
                    CONSUMERS, BLOCK_N, NUM_STAGES, PIECES, V_PIECES, O_IN_Q, CAUSAL, False, True, SCORE_MOD,
                )  # fmt: skip
                tile = taken_tile(next_tile[0], tile_full[0], tile_empty[0], turn)
                turn += 1
                place = seek(tile, place, sums, rows, SEQUENCES, HEADS, BLOCK_M)
            tlx.async_descriptor_store_wait(0)
            end_turns(c, CONSUMERS)
