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

from ...rings import next_place
from ..pieces import ROWS, Ring, add_values, matrices_of, scores_of, times, wait_for, zeros_of
from ..scores import LOG2_E, next_softmax, normalised
from .device import load_items
from .rows import (
    clear_after,
    hidden,
    item_of,
    put_queries,
    split_of,
    store_parts,
    store_result,
)


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
    q_ptr, k_desc, out_ptr, sums_ptr, lengths_ptr, table_ptr, sm_scale, strides, work, T: tl.constexpr
):  # fmt: skip
    """The kernel; T.v are the pieces of V that each group has. See `attention_decode` for the rest."""
    dtype: tl.constexpr = tlx.dtype_of(k_desc)
    COUNT: tl.constexpr = T.v.number
    HALF: tl.constexpr = COUNT * T.v.elements
    q = Ring(tlx.local_alloc((1, 1, ROWS, T.qk.elements), dtype, T.qk.number), None, None, T.qk)
    buffers = tlx.local_alloc((1, 1, T.block_n, T.qk.elements), dtype, T.stages * T.qk.number)
    p = tlx.local_alloc((ROWS, T.block_n), dtype, 1)
    factors = tlx.local_alloc((ROWS,), tl.float32, 1)
    kv = Ring(buffers, tlx.alloc_barriers(T.stages), tlx.alloc_barriers(T.stages, 2), T.qk)
    p_full = tlx.alloc_barriers(1)
    p_empty = tlx.alloc_barriers(1)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            load_items(k_desc, None, kv, None, table_ptr, lengths_ptr, work, T)

        with tlx.async_task(num_warps=4, registers=240):  # scores, and the first half of the columns
            stage = 0
            phase = 0
            turn = 0
            for number in range(tl.program_id(0), work.items, tl.num_programs(0)):
                item = item_of(split_of(number, lengths_ptr, work, T), work, T)
                put_queries(q, q_ptr, strides[0], item, work, T)
                m = tl.full((ROWS,), float("-inf"), tl.float32)
                total = tl.zeros((ROWS,), tl.float32)
                acc = zeros_of(ROWS, T.v.elements, T.v.number)
                for block in range(item.split.begin, item.split.end):
                    key = block * T.block_n
                    rows = matrices_of(kv, stage)
                    tlx.barrier_wait(kv.full[stage], phase)
                    scores = tlx.async_dot_wait(0, scores_of(matrices_of(q, 0), rows))
                    scores = hidden(scores, key, item, work, 1, T)
                    weights, m, total, alpha = next_softmax(scores, sm_scale * LOG2_E, m, total, True)
                    if lengths_ptr is not None and key + T.block_n > item.split.length:
                        clear_after(rows[: 2 * COUNT], item.split.length - key)
                    rounded = weights.to(dtype)
                    hand_over(rounded, p[0], factors[0], alpha, p_full[0], p_empty[0], turn)
                    turn = turn ^ 1
                    acc = wait_for(add_values(rounded, rows[:COUNT], times(acc, alpha)))
                    tlx.barrier_arrive(kv.empty[stage])
                    stage, phase = next_place(stage, phase, T.stages)

                if T.direct:
                    m, total, factor = normalised(m, total, None, True)
                    hand_over(None, p[0], factors[0], factor, p_full[0], p_empty[0], turn)
                    turn = turn ^ 1
                    store_result(out_ptr, times(acc, factor), strides[1], item, work, T)
                else:
                    store_parts(sums_ptr, acc, item, work, T, m=m, total=total)

        with tlx.async_task(num_warps=4, registers=240):  # the second half
            stage = 0
            phase = 0
            turn = 0
            for number in range(tl.program_id(0), work.items, tl.num_programs(0)):
                item = item_of(split_of(number, lengths_ptr, work, T), work, T)
                acc = zeros_of(ROWS, T.v.elements, T.v.number)
                for _ in range(item.split.begin, item.split.end):
                    tlx.barrier_wait(kv.full[stage], phase)
                    tlx.barrier_wait(p_full[0], turn)
                    acc = times(acc, tlx.local_load(factors[0]))
                    acc = wait_for(add_values(p[0], matrices_of(kv, stage)[COUNT : 2 * COUNT], acc))
                    tlx.barrier_arrive(p_empty[0])
                    tlx.barrier_arrive(kv.empty[stage])
                    turn = turn ^ 1
                    stage, phase = next_place(stage, phase, T.stages)

                if T.direct:
                    tlx.barrier_wait(p_full[0], turn)
                    acc = times(acc, tlx.local_load(factors[0]))
                    tlx.barrier_arrive(p_empty[0])
                    turn = turn ^ 1
                    store_result(out_ptr, acc, strides[1], item, work, T, HALF)
                else:
                    store_parts(sums_ptr, acc, item, work, T, HALF)
