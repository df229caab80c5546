"""dQ of attention in one order: a tile of queries is one program's, which goes over the keys.

For who wants the same bits at each call. S and dP are computed a second time, so that no program adds to what another
one wrote. The main kernel (`attention_backward_device`) leaves dQ out then.

Programs take tiles as those of the main kernel do. A producer loads Q and dO of a tile's CONSUMERS * 64 queries and
then, by TMA, blocks of K and V; also for the next tile while the consumers end this one. Consumers of one warp group
each have 64 queries: S = Q K^T and dP = dO V^T stand in registers by queries, and so does dS as the left side of
dQ += dS K. Blocks that a mask cuts come first, from the last one down; all consumers take the same blocks.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.kernels.attention_pieces import ROWS, as_matrix, load_block
from tlx_xdsl.kernels.attention_scores import LN_2, LOG2_E, hide_keys
from tlx_xdsl.kernels.rings import next_place
from tlx_xdsl.kernels.tile_counter import take_tile, taken_tile, tile_of


@tlx_xdsl.jit
def add_block(
    dq, q, do, k, v, lse, delta, k_full, v_full, k_empty, v_empty, stage, phase, scale, last_key, first_key, KV_LENGTH,
    MASKED: tl.constexpr,
):  # fmt: skip
    """A consumer: add a block of keys to dQ."""
    tlx.barrier_wait(k_full[stage], phase)
    scores = tlx.async_dot(as_matrix(q), tlx.local_trans(as_matrix(k[stage])))
    tlx.barrier_wait(v_full[stage], phase)
    dp = tlx.async_dot(as_matrix(do), tlx.local_trans(as_matrix(v[stage])))
    scores = tlx.async_dot_wait(1, scores)
    if MASKED:
        scores = hide_keys(scores, last_key, first_key, KV_LENGTH, False)
    p = tl.math.exp2(scores * scale - lse[:, None])
    dp = tlx.async_dot_wait(0, dp)
    tlx.barrier_arrive(v_empty[stage])
    ds = (p * (dp - delta[:, None])).to(tlx.dtype_of(k))
    dq = tlx.async_dot(ds, as_matrix(k[stage]), dq)
    dq = tlx.async_dot_wait(0, dq)
    tlx.barrier_arrive(k_empty[stage])
    return dq


@tlx_xdsl.jit
def blocks_of(row, KV_LENGTH, TILE: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    """Blocks of keys that queries of a tile see, and how many of them, the first ones, all queries see whole."""
    blocks = tl.cdiv(KV_LENGTH, BLOCK_N)
    whole = KV_LENGTH // BLOCK_N
    if CAUSAL:
        return min(tl.cdiv(row + TILE, BLOCK_N), blocks), min((row + 1) // BLOCK_N, whole)
    return blocks, whole


@tlx_xdsl.jit
def attention_backward_dq(
    q_desc, k_desc, v_desc, do_desc, dq_desc, stats_ptr, counter_ptr, sm_scale,
    BATCH_HEADS, HEADS, GROUP, Q_LENGTH, KV_LENGTH, HEADS_TOGETHER, BLOCKS,
    CONSUMERS: tl.constexpr, REGISTERS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    HEAD_DIM: tl.constexpr, NUM_STAGES: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Tiles of the last queries come first. Numbers in `stats_ptr` are in blocks of BLOCK_M, a head has BLOCKS."""
    TILE: tl.constexpr = CONSUMERS * ROWS
    dtype: tl.constexpr = tlx.dtype_of(q_desc)
    ROW_BYTES: tl.constexpr = HEAD_DIM * tlx.size_of(dtype)
    tiles = tl.cdiv(Q_LENGTH, TILE)
    num_tiles = BATCH_HEADS * tiles

    q = tlx.local_alloc((1, 1, ROWS, HEAD_DIM), dtype, CONSUMERS)
    do = tlx.local_alloc((1, 1, ROWS, HEAD_DIM), dtype, CONSUMERS)
    k = tlx.local_alloc((1, 1, BLOCK_N, HEAD_DIM), dtype, NUM_STAGES)
    v = tlx.local_alloc((1, 1, BLOCK_N, HEAD_DIM), dtype, NUM_STAGES)
    result = tlx.local_alloc((1, 1, ROWS, HEAD_DIM), dtype, CONSUMERS)
    next_tile = tlx.local_alloc((1,), tl.int32, 1)
    tile_full = tlx.alloc_barriers(1)
    tile_empty = tlx.alloc_barriers(1, arrive_count=CONSUMERS)
    q_full = tlx.alloc_barriers(CONSUMERS)
    q_empty = tlx.alloc_barriers(CONSUMERS)
    k_full = tlx.alloc_barriers(NUM_STAGES)
    v_full = tlx.alloc_barriers(NUM_STAGES)
    k_empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=CONSUMERS)
    v_empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=CONSUMERS)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            stage = 0
            phase = 0
            round = 0
            tile = tl.program_id(0)
            while tile < num_tiles:
                head, place = tile_of(tile, tiles, HEADS_TOGETHER, TILE)
                row = (tiles - 1) * TILE - place
                end, _ = blocks_of(row, KV_LENGTH, TILE, BLOCK_N, CAUSAL)
                batch = head // HEADS
                h = head % HEADS
                for part in tl.static_range(CONSUMERS):
                    at = [batch, h, row + part * ROWS, 0]
                    tlx.barrier_wait(q_empty[part], (round & 1) ^ 1)
                    tlx.barrier_expect_bytes(q_full[part], 2 * ROWS * ROW_BYTES)
                    tlx.async_descriptor_load(q_desc, q[part], at, q_full[part])
                    tlx.async_descriptor_load(do_desc, do[part], at, q_full[part])
                for turn in range(end):
                    key = (end - 1 - turn) * BLOCK_N
                    load_block(
                        k_desc, batch, h // GROUP, key, k[stage], k_full[stage], k_empty[stage], phase,
                        BLOCK_N * ROW_BYTES,
                    )  # fmt: skip
                    load_block(
                        v_desc, batch, h // GROUP, key, v[stage], v_full[stage], v_empty[stage], phase,
                        BLOCK_N * ROW_BYTES,
                    )  # fmt: skip
                    stage, phase = next_place(stage, phase, NUM_STAGES)
                tile = take_tile(counter_ptr, next_tile[0], tile_full[0], tile_empty[0], round)
                round += 1

        with tlx.async_task(num_warps=4, replicate=CONSUMERS, registers=REGISTERS):  # consumers
            c: tl.constexpr = tlx.async_task_replica_id()
            scale = sm_scale * LOG2_E
            stage = 0
            phase = 0
            round = 0
            tile = tl.program_id(0)
            while tile < num_tiles:
                head, place = tile_of(tile, tiles, HEADS_TOGETHER, TILE)
                row = (tiles - 1) * TILE - place
                end, whole = blocks_of(row, KV_LENGTH, TILE, BLOCK_N, CAUSAL)
                first_row = row + c * ROWS
                rows = first_row + tl.arange(0, ROWS)
                numbers = stats_ptr + (head.to(tl.int64) * BLOCKS + first_row // BLOCK_M) * (2 * BLOCK_M)
                numbers += first_row % BLOCK_M + tl.arange(0, ROWS)
                # The workspace ends with the last block of queries, not with the last tile.
                lse = tl.load(numbers, rows < Q_LENGTH, float("inf"))
                delta = tl.load(numbers + BLOCK_M, rows < Q_LENGTH, 0.0)
                last_key = first_row if CAUSAL else first_row + KV_LENGTH
                dq = tl.zeros((ROWS, HEAD_DIM), tl.float32)
                tlx.barrier_wait(q_full[c], round & 1)
                for turn in tl.range(end - whole, disable_licm=True):
                    dq = add_block(
                        dq, q[c], do[c], k, v, lse, delta, k_full, v_full, k_empty, v_empty, stage, phase, scale,
                        last_key, (end - 1 - turn) * BLOCK_N, KV_LENGTH, True,
                    )  # fmt: skip
                    stage, phase = next_place(stage, phase, NUM_STAGES)
                for _ in tl.range(whole, disable_licm=True):
                    dq = add_block(
                        dq, q[c], do[c], k, v, lse, delta, k_full, v_full, k_empty, v_empty, stage, phase, scale,
                        last_key, 0, KV_LENGTH, False,
                    )  # fmt: skip
                    stage, phase = next_place(stage, phase, NUM_STAGES)
                tlx.barrier_arrive(q_empty[c])

                tlx.async_descriptor_store_wait(0)
                tlx.local_store(as_matrix(result[c]), (dq * (scale * LN_2)).to(dtype))
                tlx.fence_async_shared()  # TMA reads through the async proxy what the threads wrote
                tlx.async_descriptor_store(dq_desc, result[c], [head // HEADS, head % HEADS, first_row, 0])
                tile = taken_tile(next_tile[0], tile_full[0], tile_empty[0], round)
                round += 1
            tlx.async_descriptor_store_wait(0)
