"""dK and dV of attention's backward pass for heads of more than 128 elements: two consumers share a tile of keys.

`device` has the formulas. There each consumer keeps dK and dV of its keys in registers; with heads
this long one of the two is all that it can hold. So both consumers have the same 64 keys:

    consumer 0:  S^T = K Q^T,   P^T,           dV += P^T dO
    consumer 1:  dP^T = V dO^T, dS^T with P^T, dK += dS^T Q * scale

each of which is half of the work. P^T goes from one to the other through shared memory, in f32: `p_full` says that it
is written, `p_empty` that it is read. While one consumer computes exponentials the other has the tensor cores.

dQ, a sum over keys, has no place here; `dq` computes it from S and dP of its own. No program adds to
what another one wrote: the same bits come out at each call.

Rings. Blocks of Q and dO have pieces of 64 columns (`attention/pieces`); T.stages of each
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

from ...rings import next_place, queue_for, take_next, taken_next
from ..pieces import (
    Ring,
    add_values,
    block_of,
    buffers_for,
    load_pieces,
    matrices_of,
    put,
    rings_of,
    scores_of,
    slot_of,
    store_pieces,
    times,
    wait_for,
    zeros_of,
)
from ..scores import LN_2, LOG2_E
from .device import hide, is_cut
from .producer import KEYS, block_of_turn, blocks_of, load_turn


@tlx_xdsl.jit
def add_to_dv(dv, k, q, do, lse, p, barriers, phase, scale, first_key, first_query, keys_end, T: tl.constexpr):
    """Consumer 0: a block of queries."""
    q_full, do_full, q_empty, do_empty, p_full, p_empty = barriers
    tlx.barrier_wait(q_full, phase)
    scores = tlx.async_dot_wait(0, scores_of(k, q))
    weights = tl.math.exp2(scores * scale - tlx.local_load(lse)[None, :])
    tlx.barrier_arrive(q_empty)
    if (T.causal or not T.even) and is_cut(first_key, first_query, keys_end, T):
        weights = hide(weights, first_key, first_query, keys_end, T)
    tlx.barrier_wait(p_empty, phase ^ 1)
    tlx.local_store(p, weights)
    tlx.barrier_arrive(p_full)
    tlx.barrier_wait(do_full, phase)
    dv = wait_for(add_values(weights.to(tlx.dtype_of(do[0])), do, dv))
    tlx.barrier_arrive(do_empty)
    return dv


@tlx_xdsl.jit
def add_to_dk(dk, v, q, do, delta, p, barriers, phase):
    """Consumer 1: a block of queries."""
    q_full, do_full, q_empty, do_empty, p_full, p_empty = barriers
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
def leave(desc, ring, pieces, gradient, batch, head, row):
    """A consumer: store dV or dK of a tile through the bytes of a ring, in `pieces`, and give those back."""
    block = block_of(Ring(ring.buffers, None, None, pieces), 0)
    put(block, gradient, tlx.dtype_of(desc))
    store_pieces(desc, (batch,), head, row, block)
    tlx.async_descriptor_store_wait(0)
    tlx.barrier_arrive(ring.empty[0])


@tlx_xdsl.jit
def attention_backward_wide(
    q_desc, k_desc, v_desc, do_desc, dk_desc, dv_desc, stats_ptr, counter_ptr, sm_scale, grid, T: tl.constexpr
):  # fmt: skip
    """The kernel; see the top of the file. `grid` is a `sequences.Grid` of heads of K and V."""
    tiles = tl.cdiv(grid.keys, KEYS)
    num_tiles = grid.batch_heads * tiles
    num_blocks = tl.cdiv(grid.queries, T.block_m)

    # Each holds the results of the other, too: dV as long as V in the bytes of K, dK as long as K in those of V.
    k_buffers = buffers_for(k_desc, 1, T.widest)
    v_buffers = buffers_for(v_desc, 1, T.widest)
    q_buffers = buffers_for(q_desc, T.stages, T.qk)
    do_buffers = buffers_for(do_desc, T.stages, T.v)
    lse = tlx.local_alloc((T.block_m,), tl.float32, T.stages)
    delta = tlx.local_alloc((T.block_m,), tl.float32, T.stages)
    p = tlx.local_alloc((KEYS, T.block_m), tl.float32, T.stages)
    k, v = rings_of(k_buffers, v_buffers, 1, 1, T)
    q, do = rings_of(q_buffers, do_buffers, T.stages, 2, T)
    barriers = (q.full, do.full, q.empty, do.empty, tlx.alloc_barriers(T.stages), tlx.alloc_barriers(T.stages))
    queue = queue_for(2)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            stage = 0
            phase = 0
            tile = tl.program_id(0)
            round = 0
            while tile < num_tiles:
                blocks = blocks_of(tile, tiles, num_blocks, grid, KEYS, T)
                first_row, begin, _, batch, head, _ = blocks
                turns = grid.group * (num_blocks - begin)
                for turn in range(turns):
                    load_turn(
                        (q_desc, do_desc), stats_ptr, (q, do), (lse, delta), turn, blocks, stage, phase,
                        grid.group, False, T,
                    )  # fmt: skip
                    stage, phase = next_place(stage, phase, T.stages)
                    if turn == 0:
                        # After the first queries, whose place is free earlier.
                        load_pieces(k_desc, slot_of(k, 0), (batch,), head, first_row, round & 1)
                        load_pieces(v_desc, slot_of(v, 0), (batch,), head, first_row, round & 1)
                    if turn == turns - 1:
                        # As late as it costs nothing: who is done first has the next one.
                        tile = take_next(counter_ptr, queue, round)
                round += 1

        with tlx.async_task(num_warps=4, replicate=2, registers=T.registers):  # consumers
            c: tl.constexpr = tlx.async_task_replica_id()
            scale = sm_scale * LOG2_E
            stage = 0
            phase = 0
            tile = tl.program_id(0)
            round = 0
            while tile < num_tiles:
                first_key, begin, _, batch, head, _ = blocks_of(tile, tiles, num_blocks, grid, KEYS, T)
                sums = zeros_of(KEYS, T.qk.elements, T.v.number if c == 0 else T.qk.number)
                tlx.barrier_wait(k.full[0] if c == 0 else v.full[0], round & 1)
                for turn in tl.range(grid.group * (num_blocks - begin), disable_licm=True):
                    _, block = block_of_turn(turn, begin, num_blocks, grid.group, False)
                    q_block = matrices_of(q, stage)
                    do_block = matrices_of(do, stage)
                    if c == 0:
                        sums = add_to_dv(
                            sums, matrices_of(k, 0), q_block, do_block, lse[stage], p[stage],
                            [each[stage] for each in barriers], phase, scale,
                            first_key, block * T.block_m, grid.keys, T,
                        )  # fmt: skip
                    else:
                        sums = add_to_dk(
                            sums, matrices_of(v, 0), q_block, do_block, delta[stage], p[stage],
                            [each[stage] for each in barriers], phase,
                        )  # fmt: skip
                    stage, phase = next_place(stage, phase, T.stages)
                if c == 0:
                    leave(dv_desc, k, T.v, sums, batch, head, first_key)
                else:
                    sums = times(sums, tl.full((KEYS,), scale * LN_2, tl.float32))
                    leave(dk_desc, v, T.qk, sums, batch, head, first_key)
                tile = taken_next(queue, round)
                round += 1
