"""The consumer of attention to a long cache: items of rows, splits of their keys, and what it leaves of each.

`device` says what rows, splits and items are.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalMemberAccess=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.kernels.rings import next_place

from ..pieces import (
    ROWS,
    add_values,
    as_matrix,
    block_of,
    scores_of,
    times,
    wait_for,
    zeros_of,
)
from ..scores import LOG2_E, next_softmax, normalised, turned_scores


@tlx_xdsl.jit
def length_of(lengths_ptr, batch, KEYS):
    """The keys of a sequence: as many as there is memory for, or those that are said, within that."""
    if lengths_ptr is None:
        return KEYS
    return tl.minimum(tl.maximum(tl.load(lengths_ptr + batch), 0), KEYS)


@tlx_xdsl.jit
def blocks_of(split, length, left, QUERIES, SPLITS, BLOCK_N: tl.constexpr):
    """A split's first block of keys, and the one after its last."""
    begin = 0
    if left is not None:
        begin = tl.maximum(length - QUERIES - left, 0) // BLOCK_N
    count = tl.cdiv(length, BLOCK_N) - begin
    return begin + count * split // SPLITS, begin + count * (split + 1) // SPLITS


@tlx_xdsl.jit
def place_of(item, TILES, SPLITS, KV_HEADS):
    """Tile of rows, split, head of K and V and batch of an item."""
    rest = item // TILES
    head = rest // SPLITS
    return item % TILES, rest % SPLITS, head % KV_HEADS, head // KV_HEADS


@tlx_xdsl.jit
def hidden(scores, key, length, query, QUERIES, left, CAUSAL: tl.constexpr):
    """The scores, minus infinity for keys that a row does not see; its last query stands at the last key."""
    keys = key + tl.arange(0, scores.shape[1])
    seen = (keys < length)[None, :]
    if CAUSAL:
        seen = seen & (keys[None, :] <= (length - QUERIES + query)[:, None])
    if left is not None:
        seen = seen & (keys[None, :] >= (length - QUERIES + query - left)[:, None])
    return tl.where(seen, scores, float("-inf"))


@tlx_xdsl.jit
def clear_after(block, rows):
    """Put zeros to a block of V from row `rows` on."""
    for piece in tl.static_range(len(block)):
        matrix = as_matrix(block[piece])
        values = tlx.local_load(matrix)
        at = tl.arange(0, values.shape[0])
        tlx.local_store(matrix, tl.where((at < rows)[:, None], values, 0.0))
    tlx.fence_async_shared()


@tlx_xdsl.jit
def rows_of(tile, head, GROUP, QUERIES, COUNT: tl.constexpr = ROWS):
    """Query and head of each of the COUNT rows of a tile, and whether there is one."""
    rows = tile * COUNT + tl.arange(0, COUNT)
    query = rows // GROUP
    return query, head * GROUP + rows % GROUP, query < QUERIES


@tlx_xdsl.jit
def put_queries(q, q_ptr, at, is_row, DIM, PIECES: tl.constexpr):
    """Write the rows at `at` to shared memory."""
    PIECE: tl.constexpr = q[0].shape[-1]
    for piece in tl.static_range(PIECES):
        columns = piece * PIECE + tl.arange(0, PIECE)
        inside = is_row[:, None] & (columns < DIM)[None, :]
        values = tl.load(q_ptr + at[:, None] + columns[None, :], inside, 0.0)
        tlx.local_store(as_matrix(q[piece]), values)
    tlx.fence_async_shared()


@tlx_xdsl.jit
def store_result(
    out_ptr, acc, place, out_batch, out_head, out_row, V_DIM, UNIT: tl.constexpr, FIRST: tl.constexpr = 0
):  # fmt: skip
    """Write the results of rows, of which `place` has batch, heads, queries, and which are there.

    FIRST is the column of the first sums.
    """
    batch, q_heads, query, is_row = place
    at = batch.to(tl.int64) * out_batch + q_heads.to(tl.int64) * out_head
    at = (at + query.to(tl.int64) * out_row) * UNIT
    for piece in tl.static_range(len(acc)):
        columns = FIRST + piece * acc[0].shape[1] + tl.arange(0, acc[0].shape[1])
        inside = is_row[:, None] & (columns < V_DIM * UNIT)[None, :]
        tl.store(out_ptr + at[:, None] + columns[None, :], acc[piece].to(out_ptr.dtype.element_ty), inside)


@tlx_xdsl.jit
def store_sums(sums_ptr, acc, split, row, is_row, TOTAL_ROWS, V_DIM, FIRST: tl.constexpr = 0):
    """Write the sums that a split has of rows, from column FIRST on."""
    slot = split.to(tl.int64) * TOTAL_ROWS + row
    for piece in tl.static_range(len(acc)):
        columns = FIRST + piece * acc[0].shape[1] + tl.arange(0, acc[0].shape[1])
        inside = is_row[:, None] & (columns < V_DIM)[None, :]
        tl.store(sums_ptr + slot[:, None] * V_DIM + columns[None, :], acc[piece], inside)


@tlx_xdsl.jit
def store_totals(sums_ptr, m, total, split, row, is_row, SPLITS, TOTAL_ROWS, V_DIM):
    """Write the maxima and the denominators that a split has of rows, after all sums."""
    slot = split.to(tl.int64) * TOTAL_ROWS + row
    maxima = sums_ptr + SPLITS.to(tl.int64) * TOTAL_ROWS * V_DIM
    tl.store(maxima + slot, m, is_row)
    tl.store(maxima + SPLITS.to(tl.int64) * TOTAL_ROWS + slot, total, is_row)


@tlx_xdsl.jit
def weights_of(
    scores, m, total, factor, softcap, key, length, query, QUERIES, left, CAUSAL: tl.constexpr,
    IS_LAST: tl.constexpr,
):  # fmt: skip
    """Probabilities of a block, as `next_softmax`. The end of the keys is in an item's last block, if in any."""
    if softcap is not None:
        scores = turned_scores(scores, factor, softcap, None, key, (), None)
    if IS_LAST or CAUSAL or left is not None:
        scores = hidden(scores, key, length, query, QUERIES, left, CAUSAL)
    return next_softmax(scores, factor * LOG2_E if softcap is None else LOG2_E, m, total, True)


@tlx_xdsl.jit
def attend_blocks(
    q, k, v, barriers, stage, phase, acc, m, total, factor, softcap, begin, end, length, query, QUERIES, left,
    BLOCK_N: tl.constexpr, NUM_STAGES: tl.constexpr, PIECES: tl.constexpr, V_PIECES: tl.constexpr,
    CAUSAL: tl.constexpr, IS_CUT: tl.constexpr,
):  # fmt: skip
    """One block of an item or more: while one is multiplied with V, so is the next one of K with the queries.

    Needs two stages or more. IS_CUT: memory after the end of the keys may hold NaN.
    """
    k_full, v_full, k_empty, v_empty = barriers
    dtype: tl.constexpr = tlx.dtype_of(q)
    tlx.barrier_wait(k_full[stage], phase)
    scores = tlx.async_dot_wait(0, scores_of(block_of(q, 0, PIECES), block_of(k, stage, PIECES)))
    tlx.barrier_arrive(k_empty[stage])
    for block in range(begin, end - 1):
        weights, m, total, alpha = weights_of(
            scores, m, total, factor, softcap, block * BLOCK_N, length, query, QUERIES, left, CAUSAL, False
        )
        acc = times(acc, alpha)
        rounded = weights.to(dtype)
        next_stage, next_phase = next_place(stage, phase, NUM_STAGES)
        tlx.barrier_wait(k_full[next_stage], next_phase)
        scores = scores_of(block_of(q, 0, PIECES), block_of(k, next_stage, PIECES))
        tlx.barrier_wait(v_full[stage], phase)
        acc = add_values(rounded, block_of(v, stage, V_PIECES), acc)
        scores = tlx.async_dot_wait(V_PIECES, scores)
        tlx.barrier_arrive(k_empty[next_stage])
        acc = wait_for(acc)
        tlx.barrier_arrive(v_empty[stage])
        stage = next_stage
        phase = next_phase
    key = (end - 1) * BLOCK_N
    weights, m, total, alpha = weights_of(
        scores, m, total, factor, softcap, key, length, query, QUERIES, left, CAUSAL, True
    )
    acc = times(acc, alpha)
    tlx.barrier_wait(v_full[stage], phase)
    v_block = block_of(v, stage, V_PIECES)
    if IS_CUT and key + BLOCK_N > length:
        clear_after(v_block, length - key)
    acc = wait_for(add_values(weights.to(dtype), v_block, acc))
    tlx.barrier_arrive(v_empty[stage])
    return acc, m, total, *next_place(stage, phase, NUM_STAGES)


@tlx_xdsl.jit
def attend(
    q, k, v, k_full, v_full, k_empty, v_empty,
    q_ptr, out_ptr, sums_ptr, lengths_ptr, sm_scale, q_batch, q_head, q_row, out_batch, out_head, out_row,
    ITEMS, TILES, SPLITS, KV_HEADS, GROUP, QUERIES, KEYS, TOTAL_ROWS, DIM, V_DIM, left, softcap,
    BLOCK_N: tl.constexpr, NUM_STAGES: tl.constexpr, PIECES: tl.constexpr, V_PIECES: tl.constexpr,
    CAUSAL: tl.constexpr, DIRECT: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """Consumer: the results of its items, or their parts, from the blocks in the rings."""
    V_PIECE: tl.constexpr = v[0].shape[-1]
    barriers = (k_full, v_full, k_empty, v_empty)
    stage = 0
    phase = 0
    for item in range(tl.program_id(0), ITEMS, tl.num_programs(0)):
        tile, split, head, batch = place_of(item, TILES, SPLITS, KV_HEADS)
        length = length_of(lengths_ptr, batch, KEYS)
        begin, end = blocks_of(split, length, left, QUERIES, SPLITS, BLOCK_N)
        query, q_heads, is_row = rows_of(tile, head, GROUP, QUERIES)
        at = batch.to(tl.int64) * q_batch + q_heads.to(tl.int64) * q_head + query.to(tl.int64) * q_row
        put_queries(q, q_ptr, at * UNIT, is_row, DIM * UNIT, PIECES)
        m = tl.full((ROWS,), float("-inf"), tl.float32)
        total = tl.zeros((ROWS,), tl.float32)
        acc = zeros_of(ROWS, V_PIECE, V_PIECES)
        if begin < end:
            acc, m, total, stage, phase = attend_blocks(
                q, k, v, barriers, stage, phase, acc, m, total, sm_scale, softcap, begin, end, length, query,
                QUERIES, left, BLOCK_N, NUM_STAGES, PIECES, V_PIECES, CAUSAL, lengths_ptr is not None,
            )  # fmt: skip

        place = (batch, q_heads, query, is_row)
        if DIRECT:
            m, total, factor = normalised(m, total, None, True)
            store_result(out_ptr, times(acc, factor), place, out_batch, out_head, out_row, V_DIM, UNIT)
        else:
            row = (batch * KV_HEADS * GROUP + q_heads) * QUERIES + query
            store_sums(sums_ptr, acc, split, row, is_row, TOTAL_ROWS, V_DIM * UNIT)
            store_totals(sums_ptr, m, total, split, row, is_row, SPLITS, TOTAL_ROWS, V_DIM * UNIT)
