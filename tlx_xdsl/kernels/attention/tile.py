"""A tile of attention's forward pass: the producer's loads, and what a consumer does from Q to O.

The kernel, `device`, says which tile is whose, and how the tasks work together. `T` is the `config.Tiling` that a
kernel is compiled for.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

from typing import Any, NamedTuple

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ..rings import call_next, next_place, wait_for_turn
from .fp8.blocks import carried, drained_blocks, left_of, multiplied, narrowed, packed, summed
from .pieces import (
    ROWS,
    arrived,
    block_of,
    load_pieces,
    matrices_of,
    put,
    scores_of,
    slot_of,
    store_pieces,
    times,
    wait_for,
    zeros_of,
)
from .scores import (
    LN_2,
    first_softmax,
    hide_keys,
    hide_keys_before,
    next_softmax,
    normalised,
    power_of,
    turned_scores,
    unit_of,
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


class Part(NamedTuple):
    """A consumer's rows of a tile, and the keys that they see."""

    place: Any
    """Batch, head and first row for scores that are turned, else None."""
    first: Any
    last_key: Any
    """That of the first row."""
    end: Any
    """The block after the last one."""
    tile: Any
    power: Any
    """The factor of scores, to powers of two."""


@tlx_xdsl.jit
def load_values(desc, batch, head, key, tile, slot, phase, T: tl.constexpr):
    """Producer: load the block of V at `key`, with zeros after the end: what lies there may be NaN."""
    if T.in_8_bits:
        block, full, empty = slot
        tlx.barrier_wait(empty, phase ^ 1)
        tlx.barrier_expect_bytes(full, T.block_n * T.v.elements)
        tlx.async_descriptor_load(desc, block[0], [batch, head, 0, key], full)
    else:
        start = None if tile.starts is None else tile.starts[1]
        where, row = in_sequence(batch, key, start, tile.lengths[1], T.block_n)
        load_pieces(desc, slot, where, head, row, phase)


@tlx_xdsl.jit
def load_tile(descs, rings, place, tile, blocks, stage, phase, T: tl.constexpr):
    """Producer: load what a tile needs, `blocks` of keys; return the place in the rings after it.

    `place` is batch, head, head of K.
    """
    q_desc, k_desc, v_desc = descs
    q, k, v = rings
    b, h, h_kv = place
    begin, end = blocks
    kv_row = (end - 1) * T.block_n
    q_start, k_start = (None, None) if tile.starts is None else tile.starts
    q_row = row_at(q_start, tile.row)

    # In the order in which the consumers need them: K is a step ahead of V. Q that waits for O comes later.
    if not T.o_in_q:
        load_pieces(q_desc, slot_of(q, 0), (b,), h, q_row, tile.turn & 1)
    load_pieces(k_desc, slot_of(k, stage), (b,), h_kv, row_at(k_start, kv_row), phase)
    for c in tl.static_range(0 if T.o_in_q else 1, T.consumers):
        load_pieces(q_desc, slot_of(q, c), (b,), h, q_row + c * ROWS, tile.turn & 1)
    for _ in range(1, end - begin):
        v_stage = stage
        v_phase = phase
        stage, phase = next_place(stage, phase, T.stages)
        k_row = kv_row - T.block_n
        load_pieces(k_desc, slot_of(k, stage), (b,), h_kv, row_at(k_start, k_row), phase)
        load_values(v_desc, b, h_kv, kv_row, tile, slot_of(v, v_stage), v_phase, T)
        kv_row = k_row
    load_values(v_desc, b, h_kv, kv_row, tile, slot_of(v, stage), phase, T)
    return next_place(stage, phase, T.stages)


@tlx_xdsl.jit
def pass_on(rings, first, end, stage, phase, c: tl.constexpr, T: tl.constexpr):
    """A consumer gives back the blocks `first` to `end`, unread, with its turns; returns the place after them."""
    _, k, v = rings
    for _ in range(first, end):
        # An arrival before the block is there would count for the block before.
        tlx.barrier_wait(k.full[stage], phase)
        tlx.barrier_arrive(k.empty[stage])
        tlx.barrier_wait(v.full[stage], phase)
        tlx.barrier_arrive(v.empty[stage])
        wait_for_turn(c, T.consumers)
        call_next(c, T.consumers)
        stage, phase = next_place(stage, phase, T.stages)
    return stage, phase


@tlx_xdsl.jit
def attend_blocks(
    state, rings, part, scoring, first_step, end_step, c: tl.constexpr, CUT: tl.constexpr, T: tl.constexpr
):  # fmt: skip
    """A consumer: the blocks of these steps, which limits may cut where CUT says so; returns the state after them."""
    stage, phase, m, total, p, acc, alpha = state
    q, k, v = rings
    lower, upper = part.tile.limits
    dtype: tl.constexpr = tlx.dtype_of(q.buffers)
    for step in range(first_step, end_step):
        v_stage = stage
        v_phase = phase
        stage, phase = next_place(stage, phase, T.stages)
        left = left_of(p, dtype, T)
        k_block = arrived(k, stage, phase)
        wait_for_turn(c, T.consumers)
        scores = scores_of(matrices_of(q, c), k_block)
        products = multiplied(left, arrived(v, v_stage, v_phase), acc, T)
        call_next(c, T.consumers)
        scores = tlx.async_dot_wait(len(acc), scores)
        tlx.barrier_arrive(k.empty[stage])
        key = (part.end - 1 - step) * T.block_n
        if part.place is not None:
            scores = turned_scores(scores, scoring, part.place, key, T.score_mod)
        if CUT and upper is not None:
            scores = hide_keys(scores, part.last_key, key, part.tile.lengths[1], True)
        if CUT and lower is not None:
            scores = hide_keys_before(scores, part.first + lower, key)
        weights, m, total, block_alpha = next_softmax(scores, part.power, m, total, T.may_be_empty, T.bits)
        halves = narrowed(weights, dtype, T)
        products = wait_for(products)
        p = packed(*halves) if T.in_8_bits else halves
        tlx.barrier_arrive(v.empty[v_stage])
        if T.exact:
            acc = summed(acc, products, alpha)
            alpha = block_alpha
        else:
            acc = times(products, block_alpha)
    return stage, phase, m, total, p, acc, alpha


@tlx_xdsl.jit
def attend_rest(state, rings, part, scoring, whole, cut, steps, c: tl.constexpr, T: tl.constexpr):
    """A consumer: all blocks but the first; those from `whole` to `cut` are whole. Returns the state after them."""
    lower, upper = part.tile.limits
    if not T.overlap:
        return drained_blocks(state, rings, part.power, steps, c, T)
    if upper is not None and lower is not None:
        # Blocks cut by the upper limit, whole ones, those cut by the lower limit, and no more: the text of two loops.
        # Three have more registers than there are.
        for half in range(2):
            is_first = half == 0
            first, end = tl.where(is_first, 1, cut), tl.where(is_first, whole, steps)
            state = attend_blocks(state, rings, part, scoring, first, end, c, True, T)
            state = attend_blocks(state, rings, part, scoring, whole, tl.where(is_first, cut, whole), c, False, T)
        return state
    if upper is not None:
        state = attend_blocks(state, rings, part, scoring, 1, whole, c, True, T)
    state = attend_blocks(state, rings, part, scoring, whole, cut, c, False, T)
    if lower is not None:
        state = attend_blocks(state, rings, part, scoring, cut, steps, c, True, T)
    return state


@tlx_xdsl.jit
def attend_tile(rings, o, results, place, tile, scoring, stage, phase, c: tl.constexpr, T: tl.constexpr):
    """Consumer c: its rows of a tile; return the place in the rings after it.

    `results` are the descriptor of O, the address of the logarithms and how many a head has. `place` is the head,
    over all batches, how many there are in a batch, and those that share a head of K and V.
    """
    q, k, v = rings
    o_desc, lse_ptr, LSE_ROWS = results
    head, HEADS, _ = place
    Q_LENGTH, KV_LENGTH = tile.lengths
    lower, upper = tile.limits
    ENDS_DIFFER: tl.constexpr = upper is not None or (T.causal and T.block_n % T.block_m != 0)
    MASKED: tl.constexpr = T.causal or upper is not None or not T.even
    dtype: tl.constexpr = tlx.dtype_of(q.buffers)

    first_row = tile.row + c * ROWS
    power = power_of(scoring, place)
    last_key = last_key_of(first_row, tile, T)
    begin = first_block(first_row, tile, T)
    end = end_block(last_key + ROWS - 1, begin, tile, MASKED, T)
    num_blocks = end - begin
    whole, cut = whole_blocks(first_row, last_key, end, num_blocks, tile.limits, T)
    if ENDS_DIFFER or lower is not None:
        tile_begin, tile_end = tile_blocks(tile, T)
    if ENDS_DIFFER:
        stage, phase = pass_on(rings, end, tile_end, stage, phase, c, T)

    first = scores_of(arrived(q, c, tile.turn & 1), arrived(k, stage, phase))
    first = tlx.async_dot_wait(0, first)
    tlx.barrier_arrive(k.empty[stage])
    where = None
    if T.turned:
        where = (head // HEADS, head % HEADS, first_row)
        first = turned_scores(first, scoring, where, (end - 1) * T.block_n, T.score_mod)
    if MASKED:
        first = hide_keys(first, last_key, (end - 1) * T.block_n, KV_LENGTH, T.even)
    if lower is not None:
        first = hide_keys_before(first, first_row + lower, (end - 1) * T.block_n)
    weights, m, total = first_softmax(first, power, T.may_be_empty, T.bits)
    acc = zeros_of(ROWS, T.v.elements, T.v.number)
    alpha = tl.zeros_like(m) if T.exact else None
    p = carried(weights, dtype, T)

    part = Part(where, first_row, last_key, end, tile, power)
    stage, phase, m, total, p, acc, alpha = attend_rest(
        (stage, phase, m, total, p, acc, alpha), rings, part, scoring, whole, cut, num_blocks, c, T
    )
    left = left_of(p, dtype, T)
    if not T.o_in_q:
        tlx.barrier_arrive(q.empty[c])

    products = wait_for(multiplied(left, arrived(v, stage, phase), acc, T))
    tlx.barrier_arrive(v.empty[stage])
    acc = summed(acc, products, alpha) if T.exact else products
    stage, phase = next_place(stage, phase, T.stages)
    if lower is not None:
        stage, phase = pass_on(rings, tile_begin, begin, stage, phase, c, T)

    sink = None if scoring.sinks is None else tl.load(scoring.sinks + head % HEADS).to(tl.float32)
    m, total, factor = normalised(m, total, sink, T.may_be_empty, unit_of(scoring, place))
    result = times(acc, factor)
    if not T.o_in_q:
        # Not after the store but before the buffer is written again: the store overlaps the next tile.
        tlx.async_descriptor_store_wait(0)
    o_block = block_of(o, c)
    put(o_block, result, tlx.dtype_of(o_desc))
    q_start = None if tile.starts is None else tile.starts[0]
    where, o_row = in_sequence(head // HEADS, first_row, q_start, Q_LENGTH, ROWS)
    store_pieces(o_desc, where, head % HEADS, o_row, o_block)
    top = m - T.bits if T.bits else m
    numbers = first_row + tl.arange(0, ROWS)
    lse_ptr += head * Q_LENGTH if tile.starts is None else head % HEADS * LSE_ROWS + q_start
    tl.store(lse_ptr + numbers, (top + tl.log2(total)) * LN_2, mask=numbers < Q_LENGTH)
    if T.o_in_q:
        tlx.async_descriptor_store_wait(0)
        tlx.barrier_arrive(q.empty[c])
    return stage, phase
