"""dK and dV of attention's backward pass for heads of more than 128 elements: two consumers share a tile of keys.

`device` has the formulas. There each consumer keeps dK and dV of its keys in registers; with heads
this long one of the two is all that it can hold. So both consumers have the same 64 keys:

    consumer 0:  S^T = K Q^T,   P^T,           dV += P^T dO
    consumer 1:  dP^T = V dO^T, dS^T with P^T, dK += dS^T Q * scale

each of which is half of the work. P^T goes from one to the other through shared memory, in f32: `p_full` says that it
is written, `p_empty` that it is read. While one consumer computes exponentials the other has the tensor cores.

dQ, a sum over keys, has no place here; `dq` computes it from S and dP of its own. No program adds to
what another one wrote: the same bits come out at each call.

Rings. Blocks of Q and dO have PIECES and V_PIECES pieces of 64 columns (`attention/pieces`); NUM_STAGES of each
advance together. Q brings the logarithms with it, dO the deltas. Both consumers give both back.

Results. dV leaves by TMA through the bytes of K, which only consumer 0 reads, dK through those of V. `k_empty` and
`v_empty` say that it has left, and that those of the next tile may come.

Tiles, masks and edges are as in `device`.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.kernels.rings import next_place, take_tile, taken_tile, tile_of

from ..pieces import (
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
from ..scores import LN_2, LOG2_E
from .device import hide, is_cut
from .producer import KEYS, block_of_turn, first_block, load_turn


@tlx_xdsl.jit
def add_to_dv(
    dv, k, q, do, lse, p, q_full, do_full, q_empty, do_empty, p_full, p_empty,
    phase, scale, first_key, first_query, KV_LENGTH, CAUSAL: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """Consumer 0: a block of queries."""
    tlx.barrier_wait(q_full, phase)
    scores = tlx.async_dot_wait(0, scores_of(k, q))
    weights = tl.math.exp2(scores * scale - tlx.local_load(lse)[None, :])
    tlx.barrier_arrive(q_empty)
    if (CAUSAL or not EVEN) and is_cut(first_key, first_query, KV_LENGTH, CAUSAL, EVEN):
        weights = hide(weights, first_key, first_query, KV_LENGTH, CAUSAL, EVEN)
    tlx.barrier_wait(p_empty, phase ^ 1)
    tlx.local_store(p, weights)
    tlx.barrier_arrive(p_full)
    tlx.barrier_wait(do_full, phase)
    dv = wait_for(add_values(weights.to(tlx.dtype_of(do[0])), do, dv))
    tlx.barrier_arrive(do_empty)
    return dv


@tlx_xdsl.jit
def add_to_dk(dk, v, q, do, delta, p, q_full, do_full, q_empty, do_empty, p_full, p_empty, phase):
    """Consumer 1: a block of queries."""
    tlx.barrier_wait(do_full, phase)
    dp = tlx.async_dot_wait(0, scores_of(v, do))
    dp -= tlx.local_load(delta)[None, :]
    tlx.barrier_arrive(do_empty)
    tlx.barrier_wait(p_full, phase)
    gradient = (tlx.local_load(p) * dp).to(tlx.dtype_of(q[0]))
    tlx.barrier_arrive(p_empty)
    tlx.barrier_wait(q_full, phase)
    dk = wait_for(add_values(gradient, q, dk))
    tlx.barrier_arrive(q_empty)
    return dk


@tlx_xdsl.jit
def leave(desc, block, gradient, empty, batch, head, row):
    """A consumer: store dV or dK of a tile through the bytes of `block`, and give those back."""
    put(block, gradient, tlx.dtype_of(desc))
    store_pieces(desc, (batch,), head, row, block)
    tlx.async_descriptor_store_wait(0)
    tlx.barrier_arrive(empty)


@tlx_xdsl.jit
def attention_backward_wide(
    q_desc, k_desc, v_desc, do_desc, dk_desc, dv_desc, stats_ptr, counter_ptr, sm_scale,
    BATCH_HEADS, KV_HEADS, Q_LENGTH, KV_LENGTH, HEADS_TOGETHER,
    GROUP: tl.constexpr, REGISTERS: tl.constexpr, BLOCK_M: tl.constexpr, PIECE: tl.constexpr, PIECES: tl.constexpr,
    V_PIECES: tl.constexpr, NUM_STAGES: tl.constexpr, CAUSAL: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """The kernel; see the top of the file. BATCH_HEADS are the heads of K and V of all batches.

    EVEN says that KV_LENGTH is a multiple of the tile's 64 keys.
    """
    dtype: tl.constexpr = tlx.dtype_of(q_desc)
    tiles = tl.cdiv(KV_LENGTH, KEYS)
    num_tiles = BATCH_HEADS * tiles
    num_blocks = tl.cdiv(Q_LENGTH, BLOCK_M)

    # Each holds the results of the other, too: dV as long as V in the bytes of K, dK as long as K in those of V.
    k = tlx.local_alloc((1, 1, KEYS, PIECE), dtype, max(PIECES, V_PIECES))
    v = tlx.local_alloc((1, 1, KEYS, PIECE), dtype, max(PIECES, V_PIECES))
    q = tlx.local_alloc((1, 1, BLOCK_M, PIECE), dtype, NUM_STAGES * PIECES)
    do = tlx.local_alloc((1, 1, BLOCK_M, PIECE), dtype, NUM_STAGES * V_PIECES)
    lse = tlx.local_alloc((BLOCK_M,), tl.float32, NUM_STAGES)
    delta = tlx.local_alloc((BLOCK_M,), tl.float32, NUM_STAGES)
    p = tlx.local_alloc((KEYS, BLOCK_M), tl.float32, NUM_STAGES)
    k_full = tlx.alloc_barriers(1)
    v_full = tlx.alloc_barriers(1)
    k_empty = tlx.alloc_barriers(1)
    v_empty = tlx.alloc_barriers(1)
    q_full = tlx.alloc_barriers(NUM_STAGES)
    do_full = tlx.alloc_barriers(NUM_STAGES)
    q_empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=2)
    do_empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=2)
    p_full = tlx.alloc_barriers(NUM_STAGES)
    p_empty = tlx.alloc_barriers(NUM_STAGES)
    next_tile = tlx.local_alloc((1,), tl.int32, 1)
    tile_full = tlx.alloc_barriers(1)
    tile_empty = tlx.alloc_barriers(1, arrive_count=2)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            stage = 0
            phase = 0
            tile = tl.program_id(0)
            round = 0
            while tile < num_tiles:
                kv_head, first_row = tile_of(tile, tiles, HEADS_TOGETHER, KEYS)
                batch = kv_head // KV_HEADS
                head = kv_head % KV_HEADS
                begin = first_block(first_row, num_blocks, BLOCK_M, CAUSAL)
                turns = GROUP * (num_blocks - begin)
                for turn in range(turns):
                    load_turn(
                        q_desc, do_desc, stats_ptr, turn, begin, num_blocks, batch, head, kv_head * GROUP * num_blocks,
                        q, do, lse, delta, q_full, do_full, q_empty, do_empty, stage, phase,
                        GROUP, False, PIECES, V_PIECES,
                    )  # fmt: skip
                    stage, phase = next_place(stage, phase, NUM_STAGES)
                    if turn == 0:
                        # After the first queries, whose place is free earlier.
                        load_pieces(
                            k_desc, (batch,), head, first_row, block_of(k, 0, PIECES), k_full[0], k_empty[0], round & 1
                        )
                        load_pieces(
                            v_desc, (batch,), head, first_row, block_of(v, 0, V_PIECES), v_full[0], v_empty[0],
                            round & 1,
                        )  # fmt: skip
                    if turn == turns - 1:
                        # As late as it costs nothing: who is done first has the next one.
                        tile = take_tile(counter_ptr, next_tile[0], tile_full[0], tile_empty[0], round)
                round += 1

        with tlx.async_task(num_warps=4, replicate=2, registers=REGISTERS):  # consumers
            c: tl.constexpr = tlx.async_task_replica_id()
            scale = sm_scale * LOG2_E
            stage = 0
            phase = 0
            tile = tl.program_id(0)
            round = 0
            while tile < num_tiles:
                kv_head, first_key = tile_of(tile, tiles, HEADS_TOGETHER, KEYS)
                batch = kv_head // KV_HEADS
                head = kv_head % KV_HEADS
                begin = first_block(first_key, num_blocks, BLOCK_M, CAUSAL)
                sums = zeros_of(KEYS, PIECE, V_PIECES if c == 0 else PIECES)
                tlx.barrier_wait(k_full[0] if c == 0 else v_full[0], round & 1)
                for turn in tl.range(GROUP * (num_blocks - begin), disable_licm=True):
                    _, block = block_of_turn(turn, begin, num_blocks, GROUP, False)
                    q_block = block_of(q, stage, PIECES)
                    do_block = block_of(do, stage, V_PIECES)
                    if c == 0:
                        sums = add_to_dv(
                            sums, block_of(k, 0, PIECES), q_block, do_block, lse[stage], p[stage],
                            q_full[stage], do_full[stage], q_empty[stage], do_empty[stage], p_full[stage],
                            p_empty[stage], phase, scale, first_key, block * BLOCK_M, KV_LENGTH, CAUSAL, EVEN,
                        )  # fmt: skip
                    else:
                        sums = add_to_dk(
                            sums, block_of(v, 0, V_PIECES), q_block, do_block, delta[stage], p[stage],
                            q_full[stage], do_full[stage], q_empty[stage], do_empty[stage], p_full[stage],
                            p_empty[stage], phase,
                        )  # fmt: skip
                    stage, phase = next_place(stage, phase, NUM_STAGES)
                if c == 0:
                    leave(dv_desc, block_of(k, 0, V_PIECES), sums, k_empty[0], batch, head, first_key)
                else:
                    sums = times(sums, tl.full((KEYS,), scale * LN_2, tl.float32))
                    leave(dk_desc, block_of(v, 0, PIECES), sums, v_empty[0], batch, head, first_key)
                tile = taken_tile(next_tile[0], tile_full[0], tile_empty[0], round)
                round += 1
