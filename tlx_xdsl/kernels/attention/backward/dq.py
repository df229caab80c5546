"""dQ of attention's backward pass for heads of more than 128 elements: a tile of queries is one program's.

S and dP are computed a second time, so that no program adds to what another one wrote (`wide_device`
has dK and dV, and says why):

    S = Q K^T,  dP = dO V^T,  dS = P * (dP - delta),  dQ = dS K * scale

Programs take tiles from a counter. A producer loads Q and dO of a tile's CONSUMERS * 64 queries and, by TMA, blocks of
BLOCK_N keys of V and K, also those of the next tile while the consumers end this one. Consumers of one warp group each
have 64 queries: S and dP stand in registers by queries, and so does dS as the left side of dQ += dS K. Blocks that a
mask cuts come first, from the last one down; all consumers take the same blocks.

Ring. Blocks of V and K take turns in one ring of NUM_SLOTS, as wide as the wider of them, so that three hold a step and
half of the next one. V comes first: it is given back after dP, while K is needed until dQ.

Results. dQ leaves by TMA through the bytes of Q. `q_empty` says that it has left, and that those of the next tile may
come.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.kernels.rings import next_place, take_tile, taken_tile, tile_of

from ..pieces import (
    ROWS,
    add_values,
    block_of,
    load_pieces,
    put,
    scores_of,
    store_pieces,
    times,
    wait_for,
    zeros_of,
)
from ..scores import LN_2, LOG2_E, hide_keys


@tlx_xdsl.jit
def blocks_of(row, KV_LENGTH, TILE: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    """Blocks of keys that queries of a tile see, and how many of them, the first ones, all queries see whole."""
    blocks = tl.cdiv(KV_LENGTH, BLOCK_N)
    whole = KV_LENGTH // BLOCK_N
    if CAUSAL:
        return min(tl.cdiv(row + TILE, BLOCK_N), blocks), min((row + 1) // BLOCK_N, whole)
    return blocks, whole


@tlx_xdsl.jit
def add_blocks(
    state, count, q, do, kv, full, empty, numbers, scale, last_key, first_key, KV_LENGTH,
    PIECES: tl.constexpr, V_PIECES: tl.constexpr, NUM_SLOTS: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """A consumer: add so many blocks of keys to dQ, from that at `first_key` down."""
    SLOT: tl.constexpr = max(PIECES, V_PIECES)
    BLOCK_N: tl.constexpr = kv.shape[-2]
    lse, delta = numbers
    dq, v_slot, v_phase = state
    for turn in tl.range(count, disable_licm=True):
        k_slot, k_phase = next_place(v_slot, v_phase, NUM_SLOTS)
        v = block_of(kv, v_slot, SLOT)[:V_PIECES]
        k = block_of(kv, k_slot, SLOT)[:PIECES]
        tlx.barrier_wait(full[v_slot], v_phase)
        dp = scores_of(do, v)
        tlx.barrier_wait(full[k_slot], k_phase)
        scores = scores_of(q, k)
        dp = tlx.async_dot_wait(PIECES, dp)
        tlx.barrier_arrive(empty[v_slot])
        scores = tlx.async_dot_wait(0, scores)
        if MASKED:
            scores = hide_keys(scores, last_key, first_key - turn * BLOCK_N, KV_LENGTH, False)
        p = tl.math.exp2(scores * scale - lse[:, None])
        ds = (p * (dp - delta[:, None])).to(tlx.dtype_of(kv))
        dq = wait_for(add_values(ds, k, dq))
        tlx.barrier_arrive(empty[k_slot])
        v_slot, v_phase = next_place(k_slot, k_phase, NUM_SLOTS)
    return dq, v_slot, v_phase


@tlx_xdsl.jit
def attention_backward_dq(
    q_desc, k_desc, v_desc, do_desc, dq_desc, stats_ptr, counter_ptr, sm_scale,
    BATCH_HEADS, HEADS, Q_LENGTH, KV_LENGTH, HEADS_TOGETHER, BLOCKS,
    GROUP: tl.constexpr, CONSUMERS: tl.constexpr, REGISTERS: tl.constexpr, BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr, PIECE: tl.constexpr, PIECES: tl.constexpr, V_PIECES: tl.constexpr,
    NUM_SLOTS: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """The kernel; see the top of the file. Tiles of the last queries come first.

    Numbers in `stats_ptr` are in blocks of BLOCK_M, a head has BLOCKS. GROUP heads share one of K and V; the counter is
    the second one.
    """
    TILE: tl.constexpr = CONSUMERS * ROWS
    SLOT: tl.constexpr = max(PIECES, V_PIECES)
    dtype: tl.constexpr = tlx.dtype_of(q_desc)
    tiles = tl.cdiv(Q_LENGTH, TILE)
    num_tiles = BATCH_HEADS * tiles
    counter_ptr += 1

    q = tlx.local_alloc((1, 1, ROWS, PIECE), dtype, CONSUMERS * PIECES)
    do = tlx.local_alloc((1, 1, ROWS, PIECE), dtype, CONSUMERS * V_PIECES)
    kv = tlx.local_alloc((1, 1, BLOCK_N, PIECE), dtype, NUM_SLOTS * SLOT)
    q_full = tlx.alloc_barriers(CONSUMERS)
    do_full = tlx.alloc_barriers(CONSUMERS)
    q_empty = tlx.alloc_barriers(CONSUMERS)
    full = tlx.alloc_barriers(NUM_SLOTS)
    empty = tlx.alloc_barriers(NUM_SLOTS, arrive_count=CONSUMERS)
    next_tile = tlx.local_alloc((1,), tl.int32, 1)
    tile_full = tlx.alloc_barriers(1)
    tile_empty = tlx.alloc_barriers(1, arrive_count=CONSUMERS)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            slot = 0
            phase = 0
            round = 0
            tile = tl.program_id(0)
            while tile < num_tiles:
                head, place = tile_of(tile, tiles, HEADS_TOGETHER, TILE)
                row = (tiles - 1) * TILE - place
                end, _ = blocks_of(row, KV_LENGTH, TILE, BLOCK_N, CAUSAL)
                batch = head // HEADS
                h = head % HEADS
                for turn in range(end):
                    key = (end - 1 - turn) * BLOCK_N
                    load_pieces(
                        v_desc, (batch,), h // GROUP, key, block_of(kv, slot, SLOT)[:V_PIECES],
                        full[slot], empty[slot], phase,
                    )  # fmt: skip
                    slot, phase = next_place(slot, phase, NUM_SLOTS)
                    load_pieces(
                        k_desc, (batch,), h // GROUP, key, block_of(kv, slot, SLOT)[:PIECES],
                        full[slot], empty[slot], phase,
                    )  # fmt: skip
                    slot, phase = next_place(slot, phase, NUM_SLOTS)
                    if turn == 0:
                        # After the first keys, whose place is free earlier.
                        for part in tl.static_range(CONSUMERS):
                            at = row + part * ROWS
                            load_pieces(
                                do_desc, (batch,), h, at, block_of(do, part, V_PIECES),
                                do_full[part], q_empty[part], round & 1,
                            )  # fmt: skip
                            load_pieces(
                                q_desc, (batch,), h, at, block_of(q, part, PIECES),
                                q_full[part], q_empty[part], round & 1,
                            )  # fmt: skip
                tile = take_tile(counter_ptr, next_tile[0], tile_full[0], tile_empty[0], round)
                round += 1

        with tlx.async_task(num_warps=4, replicate=CONSUMERS, registers=REGISTERS):  # consumers
            c: tl.constexpr = tlx.async_task_replica_id()
            scale = sm_scale * LOG2_E
            slot = 0
            phase = 0
            round = 0
            tile = tl.program_id(0)
            while tile < num_tiles:
                head, place = tile_of(tile, tiles, HEADS_TOGETHER, TILE)
                row = (tiles - 1) * TILE - place
                end, whole = blocks_of(row, KV_LENGTH, TILE, BLOCK_N, CAUSAL)
                first_row = row + c * ROWS
                rows = first_row + tl.arange(0, ROWS)
                stats = stats_ptr + (head.to(tl.int64) * BLOCKS + first_row // BLOCK_M) * (2 * BLOCK_M)
                stats += first_row % BLOCK_M + tl.arange(0, ROWS)
                # The workspace ends with the last block of queries, not with the last tile.
                lse = tl.load(stats, rows < Q_LENGTH, float("inf"))
                delta = tl.load(stats + BLOCK_M, rows < Q_LENGTH, 0.0)
                last_key = first_row if CAUSAL else first_row + KV_LENGTH
                q_block = block_of(q, c, PIECES)
                do_block = block_of(do, c, V_PIECES)
                tlx.barrier_wait(do_full[c], round & 1)
                tlx.barrier_wait(q_full[c], round & 1)
                state = zeros_of(ROWS, PIECE, PIECES), slot, phase
                state = add_blocks(
                    state, end - whole, q_block, do_block, kv, full, empty, (lse, delta), scale,
                    last_key, (end - 1) * BLOCK_N, KV_LENGTH, PIECES, V_PIECES, NUM_SLOTS, True,
                )  # fmt: skip
                state = add_blocks(
                    state, whole, q_block, do_block, kv, full, empty, (lse, delta), scale,
                    last_key, 0, KV_LENGTH, PIECES, V_PIECES, NUM_SLOTS, False,
                )  # fmt: skip
                dq, slot, phase = state
                put(q_block, times(dq, tl.full((ROWS,), scale * LN_2, tl.float32)), dtype)
                store_pieces(dq_desc, (head // HEADS,), head % HEADS, first_row, q_block)
                tlx.async_descriptor_store_wait(0)
                tlx.barrier_arrive(q_empty[c])
                tile = taken_tile(next_tile[0], tile_full[0], tile_empty[0], round)
                round += 1
