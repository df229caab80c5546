"""Attention whose values are the first columns of its keys, for Hopper: multi-head latent attention (MLA), decoding.

All heads share one cache of rows, of 576 elements in DeepSeek's models, whose first 512 are the values, too. Rows of
queries, items and splits are those of `device`; a block is loaded once and serves both products.

The sums of 64 rows by 512 columns do not fit into the registers of one warp group, so two have one half of the columns
each. The first one has the scores: it hands the probabilities of a block, rounded, and the factors of the sums before
it to the second one through shared memory. With one split the last thing that it hands over are the factors that
divide.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalMemberAccess=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.kernels.rings import next_place

from ..pieces import ROWS, add_values, block_of, scores_of, times, wait_for, zeros_of
from ..scores import LOG2_E, next_softmax, normalised
from .device import load_items
from .rows import (
    blocks_of,
    clear_after,
    hidden,
    length_of,
    place_of,
    put_queries,
    rows_of,
    store_result,
    store_sums,
    store_totals,
)


@tlx_xdsl.jit
def half_of(block, half: tl.constexpr, COUNT: tl.constexpr):
    """COUNT pieces of a block, the first or the second ones."""
    pieces = ()
    for piece in tl.static_range(COUNT):
        pieces += (block[half * COUNT + piece],)
    return pieces


@tlx_xdsl.jit
def hand_over(weights, p, factors, factor, p_full, p_empty, turn):
    """The first group: give the second one probabilities, or none, and factors of rows."""
    tlx.barrier_wait(p_empty, turn ^ 1)
    if weights is not None:
        tlx.local_store(p, weights)
    tlx.local_store(factors, factor)
    tlx.fence_async_shared()
    tlx.barrier_arrive(p_full)


@tlx_xdsl.jit
def attention_mla(
    q_ptr, k_desc, out_ptr, sums_ptr, lengths_ptr, table_ptr, sm_scale,
    q_batch, q_head, q_row, out_batch, out_head, out_row,
    ITEMS, TILES, SPLITS, GROUP, QUERIES, KEYS, TOTAL_ROWS, DIM, V_DIM,
    BLOCK_N: tl.constexpr, NUM_STAGES: tl.constexpr, PIECE: tl.constexpr, PIECES: tl.constexpr,
    HALF_PIECES: tl.constexpr, CAUSAL: tl.constexpr, DIRECT: tl.constexpr, PAGE: tl.constexpr, PART: tl.constexpr,
    UNIT: tl.constexpr,
):  # fmt: skip
    """The kernel; HALF_PIECES are those of V that each group has. See `attention_decode` for the rest."""
    dtype: tl.constexpr = tlx.dtype_of(k_desc)
    HALF: tl.constexpr = HALF_PIECES * PIECE
    q = tlx.local_alloc((1, 1, ROWS, PIECE), dtype, PIECES)
    kv = tlx.local_alloc((1, 1, BLOCK_N, PIECE), dtype, NUM_STAGES * PIECES)
    p = tlx.local_alloc((ROWS, BLOCK_N), dtype, 1)
    factors = tlx.local_alloc((ROWS,), tl.float32, 1)
    full = tlx.alloc_barriers(NUM_STAGES)
    empty = tlx.alloc_barriers(NUM_STAGES, 2)
    p_full = tlx.alloc_barriers(1)
    p_empty = tlx.alloc_barriers(1)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            load_items(
                k_desc, None, kv, None, full, None, empty, None, table_ptr, lengths_ptr,
                ITEMS, TILES, SPLITS, 1, QUERIES, KEYS, None, BLOCK_N, NUM_STAGES, PIECES, 0, PAGE, PART,
            )  # fmt: skip

        with tlx.async_task(num_warps=4, registers=240):  # scores, and the first half of the columns
            stage = 0
            phase = 0
            turn = 0
            for item in range(tl.program_id(0), ITEMS, tl.num_programs(0)):
                tile, split, _, batch = place_of(item, TILES, SPLITS, 1)
                length = length_of(lengths_ptr, batch, KEYS)
                begin, end = blocks_of(split, length, None, QUERIES, SPLITS, BLOCK_N)
                query, heads, is_row = rows_of(tile, 0, GROUP, QUERIES)
                at = batch.to(tl.int64) * q_batch + heads.to(tl.int64) * q_head + query.to(tl.int64) * q_row
                put_queries(q, q_ptr, at * UNIT, is_row, DIM * UNIT, PIECES)
                m = tl.full((ROWS,), float("-inf"), tl.float32)
                total = tl.zeros((ROWS,), tl.float32)
                acc = zeros_of(ROWS, PIECE, HALF_PIECES)
                for number in range(begin, end):
                    key = number * BLOCK_N
                    block = block_of(kv, stage, PIECES)
                    tlx.barrier_wait(full[stage], phase)
                    scores = tlx.async_dot_wait(0, scores_of(block_of(q, 0, PIECES), block))
                    scores = hidden(scores, key, length, query, QUERIES, None, CAUSAL)
                    weights, m, total, alpha = next_softmax(scores, sm_scale * LOG2_E, m, total, True)
                    if lengths_ptr is not None and key + BLOCK_N > length:
                        clear_after(half_of(block, 0, 2 * HALF_PIECES), length - key)
                    rounded = weights.to(dtype)
                    hand_over(rounded, p[0], factors[0], alpha, p_full[0], p_empty[0], turn)
                    turn = turn ^ 1
                    acc = wait_for(add_values(rounded, half_of(block, 0, HALF_PIECES), times(acc, alpha)))
                    tlx.barrier_arrive(empty[stage])
                    stage, phase = next_place(stage, phase, NUM_STAGES)

                if DIRECT:
                    m, total, factor = normalised(m, total, None, True)
                    hand_over(None, p[0], factors[0], factor, p_full[0], p_empty[0], turn)
                    turn = turn ^ 1
                    place = (batch, heads, query, is_row)
                    store_result(out_ptr, times(acc, factor), place, out_batch, out_head, out_row, V_DIM, UNIT)
                else:
                    row = (batch * GROUP + heads) * QUERIES + query
                    store_sums(sums_ptr, acc, split, row, is_row, TOTAL_ROWS, V_DIM * UNIT)
                    store_totals(sums_ptr, m, total, split, row, is_row, SPLITS, TOTAL_ROWS, V_DIM * UNIT)

        with tlx.async_task(num_warps=4, registers=240):  # the second half
            stage = 0
            phase = 0
            turn = 0
            for item in range(tl.program_id(0), ITEMS, tl.num_programs(0)):
                tile, split, _, batch = place_of(item, TILES, SPLITS, 1)
                length = length_of(lengths_ptr, batch, KEYS)
                begin, end = blocks_of(split, length, None, QUERIES, SPLITS, BLOCK_N)
                query, heads, is_row = rows_of(tile, 0, GROUP, QUERIES)
                acc = zeros_of(ROWS, PIECE, HALF_PIECES)
                for _ in range(begin, end):
                    tlx.barrier_wait(full[stage], phase)
                    tlx.barrier_wait(p_full[0], turn)
                    acc = times(acc, tlx.local_load(factors[0]))
                    values = half_of(block_of(kv, stage, PIECES), 1, HALF_PIECES)
                    acc = wait_for(add_values(p[0], values, acc))
                    tlx.barrier_arrive(p_empty[0])
                    tlx.barrier_arrive(empty[stage])
                    turn = turn ^ 1
                    stage, phase = next_place(stage, phase, NUM_STAGES)

                if DIRECT:
                    tlx.barrier_wait(p_full[0], turn)
                    acc = times(acc, tlx.local_load(factors[0]))
                    tlx.barrier_arrive(p_empty[0])
                    turn = turn ^ 1
                    place = (batch, heads, query, is_row)
                    store_result(out_ptr, acc, place, out_batch, out_head, out_row, V_DIM, UNIT, HALF)
                else:
                    row = (batch * GROUP + heads) * QUERIES + query
                    store_sums(sums_ptr, acc, split, row, is_row, TOTAL_ROWS, V_DIM * UNIT, HALF)
