"""A tile of attention's forward pass: the producer's loads, and what a consumer does from Q to O.

The kernels, `device` and `varlen_device`, say which tile is whose, and how the tasks work together.
`blocks` are the first block of keys that the tile's rows see and the one after the last. `starts` are the rows where
the queries and the keys of a sequence begin, None where each has a batch of its own.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ..rings import call_next, next_place, wait_for_turn
from .pieces import (
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
from .scores import (
    LN_2,
    LOG2_E,
    first_softmax,
    hide_keys,
    hide_keys_before,
    next_softmax,
    normalised,
    turned_scores,
)
from .sequences import (
    end_block,
    first_block,
    in_sequence,
    last_key_of,
    row_at,
    tile_blocks,
    whole_blocks,
)


@tlx_xdsl.jit
def load_values(desc, batch, head, key, start, length, block, full, empty, phase):
    """Producer: load the block of V at `key`, with zeros after the end: what lies there may be NaN."""
    where, row = in_sequence(batch, key, start, length, block[0].shape[-2])
    load_pieces(desc, where, head, row, block, full, empty, phase)


@tlx_xdsl.jit
def load_tile(
    descs, buffers, q_barriers, rings, place, row, blocks, starts, KV_LENGTH, turn, stage, phase,
    CONSUMERS: tl.constexpr, BLOCK_N: tl.constexpr, NUM_STAGES: tl.constexpr,
    PIECES: tl.constexpr, V_PIECES: tl.constexpr, O_IN_Q: tl.constexpr,
):  # fmt: skip
    """Producer: load what a tile needs, the program's `turn`-th one; return the place in the rings after it."""
    q_desc, k_desc, v_desc = descs
    q, k, v = buffers
    q_full, q_empty = q_barriers
    k_full, k_empty, v_full, v_empty = rings
    b, h, h_kv = place
    begin, end = blocks
    kv_row = (end - 1) * BLOCK_N
    q_start, k_start = (None, None) if starts is None else starts
    q_row = row_at(q_start, row)

    # In the order in which the consumers need them: K is a step ahead of V. Q that waits for O comes later.
    if not O_IN_Q:
        load_pieces(q_desc, (b,), h, q_row, block_of(q, 0, PIECES), q_full[0], q_empty[0], turn & 1)
    k_block = block_of(k, stage, PIECES)
    load_pieces(k_desc, (b,), h_kv, row_at(k_start, kv_row), k_block, k_full[stage], k_empty[stage], phase)
    for c in tl.static_range(0 if O_IN_Q else 1, CONSUMERS):
        q_block = block_of(q, c, PIECES)
        load_pieces(q_desc, (b,), h, q_row + c * ROWS, q_block, q_full[c], q_empty[c], turn & 1)
    for _ in range(1, end - begin):
        v_stage = stage
        v_phase = phase
        stage, phase = next_place(stage, phase, NUM_STAGES)
        k_row = kv_row - BLOCK_N
        k_block = block_of(k, stage, PIECES)
        load_pieces(k_desc, (b,), h_kv, row_at(k_start, k_row), k_block, k_full[stage], k_empty[stage], phase)
        v_block = block_of(v, v_stage, V_PIECES)
        load_values(v_desc, b, h_kv, kv_row, k_start, KV_LENGTH, v_block, v_full[v_stage], v_empty[v_stage], v_phase)
        kv_row = k_row
    v_block = block_of(v, stage, V_PIECES)
    load_values(v_desc, b, h_kv, kv_row, k_start, KV_LENGTH, v_block, v_full[stage], v_empty[stage], phase)
    return next_place(stage, phase, NUM_STAGES)


@tlx_xdsl.jit
def pass_on(rings, first, end, stage, phase, c: tl.constexpr, CONSUMERS: tl.constexpr, NUM_STAGES: tl.constexpr):
    """A consumer gives back the blocks `first` to `end`, unread, with its turns; returns the place after them."""
    k_full, k_empty, v_full, v_empty = rings
    for _ in range(first, end):
        # An arrival before the block is there would count for the block before.
        tlx.barrier_wait(k_full[stage], phase)
        tlx.barrier_arrive(k_empty[stage])
        tlx.barrier_wait(v_full[stage], phase)
        tlx.barrier_arrive(v_empty[stage])
        wait_for_turn(c, CONSUMERS)
        call_next(c, CONSUMERS)
        stage, phase = next_place(stage, phase, NUM_STAGES)
    return stage, phase


@tlx_xdsl.jit
def attend_blocks(
    state, given, first_step, end_step, c: tl.constexpr, CONSUMERS: tl.constexpr, NUM_STAGES: tl.constexpr,
    PIECES: tl.constexpr, CUT: tl.constexpr, MAY_BE_EMPTY: tl.constexpr, SCORE_MOD: tl.constexpr,
):  # fmt: skip
    """A consumer: the blocks of these steps, which limits may cut where CUT says so; returns the state after them."""
    stage, phase, m, total, p, acc = state
    q, k, v, rings, scale, scoring, where, last_key, first_row, end, limits, KV_LENGTH = given
    k_full, k_empty, v_full, v_empty = rings
    sm_scale, softcap, score_args = scoring
    lower, upper = limits
    BLOCK_N: tl.constexpr = k.shape[-2]
    dtype: tl.constexpr = tlx.dtype_of(q)
    for step in range(first_step, end_step):
        v_stage = stage
        v_phase = phase
        stage, phase = next_place(stage, phase, NUM_STAGES)
        tlx.barrier_wait(k_full[stage], phase)
        wait_for_turn(c, CONSUMERS)
        scores = scores_of(block_of(q, c, PIECES), block_of(k, stage, PIECES))
        tlx.barrier_wait(v_full[v_stage], v_phase)
        acc = add_values(p, block_of(v, v_stage, len(acc)), acc)
        call_next(c, CONSUMERS)
        scores = tlx.async_dot_wait(len(acc), scores)
        tlx.barrier_arrive(k_empty[stage])
        key = (end - 1 - step) * BLOCK_N
        if where is not None:
            scores = turned_scores(scores, sm_scale, softcap, where, key, score_args, SCORE_MOD)
        if CUT and upper is not None:
            scores = hide_keys(scores, last_key, key, KV_LENGTH, True)
        if CUT and lower is not None:
            scores = hide_keys_before(scores, first_row + lower, key)
        weights, m, total, alpha = next_softmax(scores, scale, m, total, MAY_BE_EMPTY)
        p = weights.to(dtype)
        acc = wait_for(acc)
        tlx.barrier_arrive(v_empty[v_stage])
        acc = times(acc, alpha)
    return stage, phase, m, total, p, acc


@tlx_xdsl.jit
def attend_rest(
    state, given, limits, whole, cut, steps, c: tl.constexpr,
    CONSUMERS: tl.constexpr, NUM_STAGES: tl.constexpr, PIECES: tl.constexpr, MAY_BE_EMPTY: tl.constexpr,
    SCORE_MOD: tl.constexpr,
):  # fmt: skip
    """A consumer: all blocks but the first; those from `whole` to `cut` are whole. Returns the state after them."""
    lower, upper = limits
    if upper is not None and lower is not None:
        # Blocks cut by the upper limit, whole ones, those cut by the lower limit, and no more: the text of two loops.
        # Three have more registers than there are.
        for half in range(2):
            is_first = half == 0
            state = attend_blocks(
                state, given, tl.where(is_first, 1, cut), tl.where(is_first, whole, steps), c,
                CONSUMERS, NUM_STAGES, PIECES, True, MAY_BE_EMPTY, SCORE_MOD,
            )  # fmt: skip
            state = attend_blocks(
                state, given, whole, tl.where(is_first, cut, whole), c,
                CONSUMERS, NUM_STAGES, PIECES, False, MAY_BE_EMPTY, SCORE_MOD,
            )  # fmt: skip
        return state
    if upper is not None:
        state = attend_blocks(state, given, 1, whole, c, CONSUMERS, NUM_STAGES, PIECES, True, MAY_BE_EMPTY, SCORE_MOD)
    state = attend_blocks(state, given, whole, cut, c, CONSUMERS, NUM_STAGES, PIECES, False, MAY_BE_EMPTY, SCORE_MOD)
    if lower is not None:
        state = attend_blocks(state, given, cut, steps, c, CONSUMERS, NUM_STAGES, PIECES, True, MAY_BE_EMPTY, SCORE_MOD)
    return state


@tlx_xdsl.jit
def attend_tile(
    buffers, q_barriers, rings, results, place, row, starts, lengths, limits, scoring, turn, stage, phase,
    c: tl.constexpr, CONSUMERS: tl.constexpr, BLOCK_N: tl.constexpr, NUM_STAGES: tl.constexpr,
    PIECES: tl.constexpr, V_PIECES: tl.constexpr, O_IN_Q: tl.constexpr,
    CAUSAL: tl.constexpr, EVEN: tl.constexpr, MAY_BE_EMPTY: tl.constexpr, SCORE_MOD: tl.constexpr,
):  # fmt: skip
    """Consumer c: its rows of a tile, the program's `turn`-th one; return the place in the rings after it.

    `results` are the descriptor of O, the address of the logarithms and how many a head has. `place` is the head,
    over all batches, and how many there are in a batch.
    """
    q, k, v, o = buffers
    q_full, q_empty = q_barriers
    k_full, k_empty, v_full, v_empty = rings
    o_desc, lse_ptr, LSE_ROWS = results
    head, HEADS = place
    Q_LENGTH, KV_LENGTH = lengths
    lower, upper = limits
    scale, sinks_ptr, sm_scale, softcap, score_args = scoring
    BLOCK_M: tl.constexpr = CONSUMERS * ROWS
    ENDS_DIFFER: tl.constexpr = upper is not None or (CAUSAL and BLOCK_N % BLOCK_M != 0)
    MASKED: tl.constexpr = CAUSAL or upper is not None or not EVEN
    TURNED: tl.constexpr = softcap is not None or SCORE_MOD is not None
    dtype: tl.constexpr = tlx.dtype_of(q)
    if TURNED:
        scale = LOG2_E

    first_row = row + c * ROWS
    last_key = last_key_of(first_row, KV_LENGTH, upper, CAUSAL)
    begin = first_block(first_row, lower, KV_LENGTH, BLOCK_N)
    end = end_block(last_key + ROWS - 1, begin, KV_LENGTH, BLOCK_N, MASKED, MAY_BE_EMPTY)
    num_blocks = end - begin
    whole, cut = whole_blocks(first_row, last_key, end, num_blocks, lower, upper, ROWS, BLOCK_N)
    if ENDS_DIFFER or lower is not None:
        tile_begin, tile_end = tile_blocks(row, KV_LENGTH, lower, upper, BLOCK_M, BLOCK_N, CAUSAL, MAY_BE_EMPTY)
    if ENDS_DIFFER:
        stage, phase = pass_on(rings, end, tile_end, stage, phase, c, CONSUMERS, NUM_STAGES)

    tlx.barrier_wait(q_full, turn & 1)
    tlx.barrier_wait(k_full[stage], phase)
    first = scores_of(block_of(q, c, PIECES), block_of(k, stage, PIECES))
    first = tlx.async_dot_wait(0, first)
    tlx.barrier_arrive(k_empty[stage])
    where = None
    if TURNED:
        where = (head // HEADS, head % HEADS, first_row)
        first = turned_scores(first, sm_scale, softcap, where, (end - 1) * BLOCK_N, score_args, SCORE_MOD)
    if MASKED:
        first = hide_keys(first, last_key, (end - 1) * BLOCK_N, KV_LENGTH, EVEN)
    if lower is not None:
        first = hide_keys_before(first, first_row + lower, (end - 1) * BLOCK_N)
    weights, m, total = first_softmax(first, scale, MAY_BE_EMPTY)
    p = weights.to(dtype)
    acc = zeros_of(ROWS, v.shape[-1], V_PIECES)

    given = (q, k, v, rings, scale, (sm_scale, softcap, score_args), where, last_key, first_row, end, limits, KV_LENGTH)
    stage, phase, m, total, p, acc = attend_rest(
        (stage, phase, m, total, p, acc), given, limits, whole, cut, num_blocks, c,
        CONSUMERS, NUM_STAGES, PIECES, MAY_BE_EMPTY, SCORE_MOD,
    )  # fmt: skip
    if not O_IN_Q:
        tlx.barrier_arrive(q_empty)

    tlx.barrier_wait(v_full[stage], phase)
    acc = wait_for(add_values(p, block_of(v, stage, V_PIECES), acc))
    tlx.barrier_arrive(v_empty[stage])
    stage, phase = next_place(stage, phase, NUM_STAGES)
    if lower is not None:
        stage, phase = pass_on(rings, tile_begin, begin, stage, phase, c, CONSUMERS, NUM_STAGES)

    sink = None if sinks_ptr is None else tl.load(sinks_ptr + head % HEADS).to(tl.float32)
    m, total, factor = normalised(m, total, sink, MAY_BE_EMPTY)
    result = times(acc, factor)
    if not O_IN_Q:
        # Not after the store but before the buffer is written again: the store overlaps the next tile.
        tlx.async_descriptor_store_wait(0)
    o_block = block_of(o, c, V_PIECES)
    put(o_block, result, dtype)
    q_start = None if starts is None else starts[0]
    where, o_row = in_sequence(head // HEADS, first_row, q_start, Q_LENGTH, ROWS)
    store_pieces(o_desc, where, head % HEADS, o_row, o_block)
    rows = first_row + tl.arange(0, ROWS)
    lse_ptr += head * Q_LENGTH if starts is None else head % HEADS * LSE_ROWS + q_start
    tl.store(lse_ptr + rows, (m + tl.log2(total)) * LN_2, mask=rows < Q_LENGTH)
    if O_IN_Q:
        tlx.async_descriptor_store_wait(0)
        tlx.barrier_arrive(q_empty)
    return stage, phase
