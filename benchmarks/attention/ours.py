"""Flash attention, forward, in TLX as stock.py has it with descriptors: the cost of compiling the same thing.

The same tile, head dimension, pipeline depth, operands and results. One task loads by TMA into rings of two stages, one
of eight warps computes. examples/hopper_attention_ws.py has two tasks of four warps instead, whose code stands in the
binary twice.
"""

import math

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

LOG2_E = tl.constexpr(math.log2(math.e))
LN_2 = tl.constexpr(math.log(2))


@tlx_xdsl.jit
def attention(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, sm_scale, LENGTH,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr, NUM_STAGES: tl.constexpr,
):  # fmt: skip
    dtype: tl.constexpr = tlx.dtype_of(q_desc)
    Q_BYTES: tl.constexpr = BLOCK_M * HEAD_DIM * tlx.size_of(dtype)
    KV_BYTES: tl.constexpr = BLOCK_N * HEAD_DIM * tlx.size_of(dtype)
    row = tl.program_id(0) * BLOCK_M
    head_row = tl.program_id(1) * LENGTH
    num_blocks = LENGTH // BLOCK_N

    q = tlx.local_alloc((BLOCK_M, HEAD_DIM), dtype, 1)
    k = tlx.local_alloc((BLOCK_N, HEAD_DIM), dtype, NUM_STAGES)
    v = tlx.local_alloc((BLOCK_N, HEAD_DIM), dtype, NUM_STAGES)
    q_full = tlx.alloc_barriers(1)
    k_full = tlx.alloc_barriers(NUM_STAGES)
    v_full = tlx.alloc_barriers(NUM_STAGES)
    k_empty = tlx.alloc_barriers(NUM_STAGES)
    v_empty = tlx.alloc_barriers(NUM_STAGES)

    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.barrier_expect_bytes(q_full[0], Q_BYTES)
            tlx.async_descriptor_load(q_desc, q[0], [head_row + row, 0], q_full[0])
            for n in range(num_blocks):
                stage, phase = tlx.get_bufidx_phase(n, NUM_STAGES)
                tlx.barrier_wait(k_empty[stage], phase ^ 1)
                tlx.barrier_expect_bytes(k_full[stage], KV_BYTES)
                tlx.async_descriptor_load(k_desc, k[stage], [head_row + n * BLOCK_N, 0], k_full[stage])
                tlx.barrier_wait(v_empty[stage], phase ^ 1)
                tlx.barrier_expect_bytes(v_full[stage], KV_BYTES)
                tlx.async_descriptor_load(v_desc, v[stage], [head_row + n * BLOCK_N, 0], v_full[stage])

        with tlx.async_task(num_warps=8, registers=200):
            scale = sm_scale * LOG2_E
            m = tl.full((BLOCK_M,), float("-inf"), tl.float32)
            total = tl.zeros((BLOCK_M,), tl.float32)
            acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
            tlx.barrier_wait(q_full[0], 0)
            for n in range(num_blocks):
                stage, phase = tlx.get_bufidx_phase(n, NUM_STAGES)
                tlx.barrier_wait(k_full[stage], phase)
                scores = tlx.async_dot(q[0], tlx.local_trans(k[stage]))
                scores = tlx.async_dot_wait(0, scores)
                tlx.barrier_arrive(k_empty[stage])
                m_new = tl.maximum(m, tl.max(scores, 1) * scale)
                p = tl.math.exp2(scores * scale - m_new[:, None])
                alpha = tl.math.exp2(m - m_new)
                total = total * alpha + tl.sum(p, 1)
                acc = acc * alpha[:, None]
                tlx.barrier_wait(v_full[stage], phase)
                acc = tlx.async_dot(p.to(dtype), v[stage], acc)
                acc = tlx.async_dot_wait(0, acc)
                tlx.barrier_arrive(v_empty[stage])
                m = m_new
            rows = head_row + row + tl.arange(0, BLOCK_M)
            tl.store(lse_ptr + rows, (m + tl.log2(total)) * LN_2)
            tlx.local_store(q[0], (acc / total[:, None]).to(dtype))
            tlx.fence_async_shared()
            tlx.async_descriptor_store(o_desc, q[0], [head_row + row, 0])
            tlx.async_descriptor_store_wait(0)


TLX_COMPILE = {
    "attention": {
        "signature": {
            "q_desc": "tensordesc<fp16[128, 128]>",
            "k_desc": "tensordesc<fp16[128, 128]>",
            "v_desc": "tensordesc<fp16[128, 128]>",
            "o_desc": "tensordesc<fp16[128, 128]>",
            "lse_ptr": "*fp32",
            "sm_scale": "fp32",
            "LENGTH": "i32",
        },
        "constexprs": {"BLOCK_M": 128, "BLOCK_N": 128, "HEAD_DIM": 128, "NUM_STAGES": 2},
        "num_warps": 4,
    }
}
