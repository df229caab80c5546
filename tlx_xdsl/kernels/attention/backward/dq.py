"""dQ of attention's backward pass for heads of more than 128 elements: a tile of queries is one program's.

S and dP are computed a second time, so that no program adds to what another one wrote (`wide_device`
has dK and dV, and says why):

    S = Q K^T,  dP = dO V^T,  dS = P * (dP - delta),  dQ = dS K * scale

Programs take tiles from a counter. A producer loads Q and dO of a tile's T.consumers * 64 queries and, by TMA, blocks
of 64 keys of V and K, also those of the next tile while the consumers end this one. Consumers of one warp group each
have 64 queries: S and dP stand in registers by queries, and so does dS as the left side of dQ += dS K. Blocks that a
mask cuts come first, from the last one down; all consumers take the same blocks.

Ring. Blocks of V and K take turns in one ring of T.stages, as wide as the wider of them, so that three hold a step and
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

from ...rings import next_place, queue_for, take_next, taken_next, tile_of
from ..pieces import (
    ROWS,
    Ring,
    add_values,
    arrived,
    block_of,
    buffers_for,
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
from ..scores import LN_2, LOG2_E, hide_keys
from .producer import KEYS


@tlx_xdsl.jit
def blocks_of(row, keys, TILE: tl.constexpr, T: tl.constexpr):
    """Blocks of keys that queries of a tile see, and how many of them, the first ones, all queries see whole."""
    blocks = tl.cdiv(keys, KEYS)
    whole = keys // KEYS
    if T.causal:
        return min(tl.cdiv(row + TILE, KEYS), blocks), min((row + 1) // KEYS, whole)
    return blocks, whole


@tlx_xdsl.jit
def add_blocks(
    state, count, q, do, kv, numbers, scale, last_key, first_key, keys, MASKED: tl.constexpr, T: tl.constexpr
):  # fmt: skip
    """A consumer: add so many blocks of keys to dQ, from that at `first_key` down."""
    lse, delta = numbers
    dq, v_slot, v_phase = state
    for turn in tl.range(count, disable_licm=True):
        k_slot, k_phase = next_place(v_slot, v_phase, T.stages)
        v = matrices_of(kv, v_slot)
        k = matrices_of(kv, k_slot)
        tlx.barrier_wait(kv.full[v_slot], v_phase)
        dp = scores_of(do, v)
        tlx.barrier_wait(kv.full[k_slot], k_phase)
        scores = scores_of(q, k)
        dp = tlx.async_dot_wait(T.qk.number, dp)
        tlx.barrier_arrive(kv.empty[v_slot])
        scores = tlx.async_dot_wait(0, scores)
        if MASKED:
            scores = hide_keys(scores, last_key, first_key - turn * KEYS, keys, False)
        p = tl.math.exp2(scores * scale - lse[:, None])
        ds = (p * (dp - delta[:, None])).to(tlx.dtype_of(kv.buffers))
        dq = wait_for(add_values(ds, k, dq))
        tlx.barrier_arrive(kv.empty[k_slot])
        v_slot, v_phase = next_place(k_slot, k_phase, T.stages)
    return dq, v_slot, v_phase


@tlx_xdsl.jit
def attention_backward_dq(
    q_desc, k_desc, v_desc, do_desc, dq_desc, stats_ptr, counter_ptr, sm_scale, grid, num_blocks, T: tl.constexpr
):  # fmt: skip
    """The kernel; see the top of the file. Tiles of the last queries come first.

    `grid` is a `sequences.Grid` of heads of Q. Numbers in `stats_ptr` are in blocks of T.block_m, a head has
    `num_blocks`. The counter is the second one.
    """
    TILE: tl.constexpr = T.consumers * ROWS
    tiles = tl.cdiv(grid.queries, TILE)
    num_tiles = grid.batch_heads * tiles
    counter_ptr += 1

    q_buffers = buffers_for(q_desc, T.consumers, T.qk)
    do_buffers = buffers_for(do_desc, T.consumers, T.v)
    kv_buffers = buffers_for(k_desc, T.stages, T.widest)
    q_full = tlx.alloc_barriers(T.consumers)
    do_full = tlx.alloc_barriers(T.consumers)
    q_empty = tlx.alloc_barriers(T.consumers)
    q = Ring(q_buffers, q_full, q_empty, T.qk)
    do = Ring(do_buffers, do_full, q_empty, T.v)
    kv = Ring(
        kv_buffers, tlx.alloc_barriers(T.stages), tlx.alloc_barriers(T.stages, arrive_count=T.consumers), T.widest
    )
    queue = queue_for(T.consumers)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            slot = 0
            phase = 0
            round = 0
            tile = tl.program_id(0)
            while tile < num_tiles:
                head, place = tile_of(tile, tiles, grid.together, TILE)
                row = (tiles - 1) * TILE - place
                end, _ = blocks_of(row, grid.keys, TILE, T)
                batch = head // grid.heads
                h = head % grid.heads
                for turn in range(end):
                    key = (end - 1 - turn) * KEYS
                    h_kv = h // grid.group
                    load_pieces(v_desc, slot_of(kv, slot, T.v.number), (batch,), h_kv, key, phase)
                    slot, phase = next_place(slot, phase, T.stages)
                    load_pieces(k_desc, slot_of(kv, slot, T.qk.number), (batch,), h_kv, key, phase)
                    slot, phase = next_place(slot, phase, T.stages)
                    if turn == 0:
                        # After the first keys, whose place is free earlier.
                        for part in tl.static_range(T.consumers):
                            at = row + part * ROWS
                            load_pieces(do_desc, slot_of(do, part), (batch,), h, at, round & 1)
                            load_pieces(q_desc, slot_of(q, part), (batch,), h, at, round & 1)
                tile = take_next(counter_ptr, queue, round)
                round += 1

        with tlx.async_task(num_warps=4, replicate=T.consumers, registers=T.registers):  # consumers
            c: tl.constexpr = tlx.async_task_replica_id()
            scale = sm_scale * LOG2_E
            slot = 0
            phase = 0
            round = 0
            tile = tl.program_id(0)
            while tile < num_tiles:
                head, place = tile_of(tile, tiles, grid.together, TILE)
                row = (tiles - 1) * TILE - place
                end, whole = blocks_of(row, grid.keys, TILE, T)
                first_row = row + c * ROWS
                rows = first_row + tl.arange(0, ROWS)
                stats = stats_ptr + (head.to(tl.int64) * num_blocks + first_row // T.block_m) * (2 * T.block_m)
                stats += first_row % T.block_m + tl.arange(0, ROWS)
                # The workspace ends with the last block of queries, not with the last tile.
                lse = tl.load(stats, rows < grid.queries, float("inf"))
                delta = tl.load(stats + T.block_m, rows < grid.queries, 0.0)
                numbers = (lse, delta)
                last_key = first_row if T.causal else first_row + grid.keys
                q_block = matrices_of(q, c)
                do_block = arrived(do, c, round & 1)
                tlx.barrier_wait(q.full[c], round & 1)
                state = zeros_of(ROWS, T.qk.elements, T.qk.number), slot, phase
                state = add_blocks(
                    state, end - whole, q_block, do_block, kv, numbers, scale, last_key, (end - 1) * KEYS, grid.keys,
                    True, T,
                )  # fmt: skip
                state = add_blocks(
                    state, whole, q_block, do_block, kv, numbers, scale, last_key, 0, grid.keys, False, T
                )  # fmt: skip
                dq, slot, phase = state
                result = block_of(q, c)
                put(result, times(dq, tl.full((ROWS,), scale * LN_2, tl.float32)), tlx.dtype_of(q_desc))
                store_pieces(dq_desc, (head // grid.heads,), head % grid.heads, first_row, result)
                tlx.async_descriptor_store_wait(0)
                tlx.barrier_arrive(q.empty[c])
                tile = taken_next(queue, round)
                round += 1
