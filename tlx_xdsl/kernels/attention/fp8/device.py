"""Attention forward in fp8 (e4m3) for Hopper: `attention/device`, with what 8 bits change.

Tasks, rings, barriers, masks and the schedule are those of `attention/device`; read its top first. Here is the rest.

V. The tensor cores read 8-bit operands along K alone, and in P V that is along the keys: V comes transposed, (batch,
heads, dim, keys), from `values`, with the keys of each 16 in the order 0 1 8 9 2 3 10 11 4 5 12 13 6 7 14
15.

P. That order is the one in which P already lies. Of each 16 columns of S, thread t of four has 2t, 2t + 1, 2t + 8 and
2t + 9, and the tensor cores want 4t to 4t + 3 of it as their left operand: the same four, with the columns in the
order above. `attention_fp8_blocks.rounded` says so, and nothing moves; a sum over keys may be in any order.

Numbers. Probabilities are at most 1, before the division by their sum; times 2 ** P_BITS they use more of e4m3's range:
the smallest that is no zero is 2 ** -17 of the largest. The sums are in the same units, which cancel out. Scores are
q k * (q_scale * k_scale * sm_scale), and v_scale multiplies the result; each scale is one number, or one for each head.

Sums. The tensor cores keep some 14 bits of the sums of 8-bit products. With EXACT, P V of each block of keys is a sum
of its own, which is added to the f32 sums as these are rescaled, in one instruction; it takes as many registers as
they do. Else the tensor cores add up all keys.

Overlap. OVERLAP chooses between the two ways of `blocks`.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.kernels.rings import begin_turns, call_next, end_turns, next_place, wait_for_turn

from ..pieces import ROWS, as_matrix, load_block
from ..scores import LN_2, LOG2_E, hide_keys
from ..sequences import blocks_until, count_tiles, tile_of
from .blocks import P_BITS, drained_blocks, first_weights, overlapped_blocks


@tlx_xdsl.jit
def load_values(desc, batch, head, key, buffer, full, empty, phase, BYTES: tl.constexpr):
    """Producer: when `buffer` is free, load the values of the keys from `key` on to it."""
    tlx.barrier_wait(empty, phase ^ 1)
    tlx.barrier_expect_bytes(full, BYTES)
    tlx.async_descriptor_load(desc, buffer, [batch, head, 0, key], full)


@tlx_xdsl.jit
def scale_of(pointer, batch, head, strides):
    """The scale of a head, 1 where there is none."""
    if pointer is None:
        return 1.0
    return tl.load(pointer + batch * strides[0] + head * strides[1])


@tlx_xdsl.jit
def attention_fp8(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, q_scale, k_scale, v_scale, sm_scale,
    q_scale_batch, q_scale_head, k_scale_batch, k_scale_head, v_scale_batch, v_scale_head,
    BATCH_HEADS, HEADS, GROUP, Q_LENGTH, KV_LENGTH, HEADS_TOGETHER,
    CONSUMERS: tl.constexpr, REGISTERS: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr,
    NUM_STAGES: tl.constexpr, CAUSAL: tl.constexpr, EVEN: tl.constexpr, EXACT: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    """The kernel; see the top of the file. EVEN says that KV_LENGTH is a multiple of BLOCK_N."""
    tl.static_assert(BLOCK_N % ROWS == 0, "one block of keys holds the diagonal of a consumer's rows")
    tl.static_assert(NUM_STAGES >= 2, "a consumer holds K of a block and V of the block before")
    BLOCK_M: tl.constexpr = CONSUMERS * ROWS
    ENDS_DIFFER: tl.constexpr = CAUSAL and BLOCK_N % BLOCK_M != 0
    MASKED: tl.constexpr = CAUSAL or not EVEN
    dtype: tl.constexpr = tlx.dtype_of(q_desc)
    out_dtype: tl.constexpr = tlx.dtype_of(o_desc)
    Q_BYTES: tl.constexpr = ROWS * HEAD_DIM
    KV_BYTES: tl.constexpr = BLOCK_N * HEAD_DIM
    num_tiles = count_tiles(BATCH_HEADS * tl.cdiv(Q_LENGTH, BLOCK_M), CAUSAL)

    q = tlx.local_alloc((1, 1, ROWS, HEAD_DIM), dtype, CONSUMERS)
    k = tlx.local_alloc((1, 1, BLOCK_N, HEAD_DIM), dtype, NUM_STAGES)
    v = tlx.local_alloc((1, 1, HEAD_DIM, BLOCK_N), dtype, NUM_STAGES)
    o = tlx.local_alloc((1, 1, ROWS, HEAD_DIM), out_dtype, CONSUMERS)
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
            for turn in range(num_tiles):
                head, row = tile_of(turn, Q_LENGTH, HEADS_TOGETHER, BLOCK_M, CAUSAL)
                b = head // HEADS
                h = head % HEADS
                h_kv = h // GROUP
                num_blocks = blocks_until(row + BLOCK_M - 1, KV_LENGTH, BLOCK_N, CAUSAL)
                kv_row = (num_blocks - 1) * BLOCK_N

                # In the order in which the consumers need them: K is a step ahead of V.
                load_block(q_desc, b, h, row, q[0], q_full[0], q_empty[0], turn & 1, Q_BYTES)
                load_block(k_desc, b, h_kv, kv_row, k[stage], k_full[stage], k_empty[stage], phase, KV_BYTES)
                for c in tl.static_range(1, CONSUMERS):
                    load_block(q_desc, b, h, row + c * ROWS, q[c], q_full[c], q_empty[c], turn & 1, Q_BYTES)
                for _ in range(1, num_blocks):
                    v_stage = stage
                    v_phase = phase
                    stage, phase = next_place(stage, phase, NUM_STAGES)
                    k_row = kv_row - BLOCK_N
                    load_block(k_desc, b, h_kv, k_row, k[stage], k_full[stage], k_empty[stage], phase, KV_BYTES)
                    load_values(
                        v_desc, b, h_kv, kv_row, v[v_stage], v_full[v_stage], v_empty[v_stage], v_phase, KV_BYTES
                    )
                    kv_row = k_row
                load_values(v_desc, b, h_kv, kv_row, v[stage], v_full[stage], v_empty[stage], phase, KV_BYTES)
                stage, phase = next_place(stage, phase, NUM_STAGES)

        with tlx.async_task(num_warps=4, replicate=CONSUMERS, registers=REGISTERS):  # consumers
            c: tl.constexpr = tlx.async_task_replica_id()
            begin_turns(c, CONSUMERS)
            stage = 0
            phase = 0
            for turn in range(num_tiles):
                head, row = tile_of(turn, Q_LENGTH, HEADS_TOGETHER, BLOCK_M, CAUSAL)
                b = head // HEADS
                h = head % HEADS
                first_row = row + c * ROWS
                by_q = scale_of(q_scale, b, h, (q_scale_batch, q_scale_head))
                by_k = scale_of(k_scale, b, h // GROUP, (k_scale_batch, k_scale_head))
                scale = sm_scale * LOG2_E * (by_q * by_k)
                # As in `attention/device`: the end of the keys is not to look the same for all tiles.
                last_key = first_row if CAUSAL else first_row + KV_LENGTH
                num_blocks = blocks_until(last_key + ROWS - 1, KV_LENGTH, BLOCK_N, MASKED)
                if ENDS_DIFFER:
                    for _ in range(num_blocks, blocks_until(row + BLOCK_M - 1, KV_LENGTH, BLOCK_N, CAUSAL)):
                        # An arrival before the block is there would count for the block before.
                        tlx.barrier_wait(k_full[stage], phase)
                        tlx.barrier_arrive(k_empty[stage])
                        tlx.barrier_wait(v_full[stage], phase)
                        tlx.barrier_arrive(v_empty[stage])
                        wait_for_turn(c, CONSUMERS)
                        call_next(c, CONSUMERS)
                        stage, phase = next_place(stage, phase, NUM_STAGES)

                tlx.barrier_wait(q_full[c], turn & 1)
                tlx.barrier_wait(k_full[stage], phase)
                first = tlx.async_dot(as_matrix(q[c]), tlx.local_trans(as_matrix(k[stage])))
                first = tlx.async_dot_wait(0, first)
                tlx.barrier_arrive(k_empty[stage])
                if MASKED:
                    first = hide_keys(first, last_key, (num_blocks - 1) * BLOCK_N, KV_LENGTH, EVEN)
                weights, m, total = first_weights(first, scale)
                blocks: tl.constexpr = overlapped_blocks if OVERLAP else drained_blocks
                acc, m, total, stage, phase = blocks(
                    as_matrix(q[c]), k, v, (k_full, v_full, k_empty, v_empty, q_empty[c]), weights, m, total, scale,
                    num_blocks, stage, phase, dtype, HEAD_DIM, NUM_STAGES, EXACT, c, CONSUMERS,
                )  # fmt: skip

                # Not after the store but before the buffer is written again: the store overlaps the next tile.
                by_v = scale_of(v_scale, b, h // GROUP, (v_scale_batch, v_scale_head))
                result = (acc * (by_v / total)[:, None]).to(out_dtype)
                tlx.async_descriptor_store_wait(0)
                tlx.local_store(as_matrix(o[c]), result)
                tlx.fence_async_shared()  # TMA reads through the async proxy what the threads wrote
                tlx.async_descriptor_store(o_desc, o[c], [b, h, first_row, 0])
                rows = first_row + tl.arange(0, ROWS)
                tl.store(lse_ptr + head * Q_LENGTH + rows, (m - P_BITS + tl.log2(total)) * LN_2, mask=rows < Q_LENGTH)
            tlx.async_descriptor_store_wait(0)
            end_turns(c, CONSUMERS)
