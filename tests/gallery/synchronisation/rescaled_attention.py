"""Flash attention on Blackwell whose correction rescales the output before every MMA, even of the first one.

What it finds in tensor memory then was never written. The first product overwrites it, and so nothing comes of that:
unless `ADDS`, with which the first product adds to it. A program has BLOCK_M rows of the only head.
"""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def attention(
    q_desc, k_desc, v_desc, o_ptr, LENGTH, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr, ADDS: tl.constexpr = False,
):  # fmt: skip
    row = tl.program_id(0) * BLOCK_M
    blocks = tl.cdiv(LENGTH, BLOCK_N)
    q = tlx.local_alloc((BLOCK_M, HEAD_DIM), tl.float16, 1)
    k = tlx.local_alloc((BLOCK_N, HEAD_DIM), tl.float16, 1)
    v = tlx.local_alloc((BLOCK_N, HEAD_DIM), tl.float16, 1)
    s = tlx.local_alloc((BLOCK_M, BLOCK_N), tl.float32, 1, tlx.storage_kind.tmem)
    p = tlx.local_alloc((BLOCK_M, BLOCK_N), tl.float16, 1, tlx.storage_kind.tmem)
    o = tlx.local_alloc((BLOCK_M, HEAD_DIM), tl.float32, 1, tlx.storage_kind.tmem)
    alpha = tlx.local_alloc((BLOCK_M, 1), tl.float32, 1, tlx.storage_kind.tmem)
    total = tlx.local_alloc((BLOCK_M, 1), tl.float32, 1, tlx.storage_kind.tmem)
    # Phase n is that of block n, but for q_full and total_full.
    q_full, k_full, v_full = tlx.alloc_barriers(1), tlx.alloc_barriers(1), tlx.alloc_barriers(1)
    s_full, p_full, alpha_full = tlx.alloc_barriers(1), tlx.alloc_barriers(1), tlx.alloc_barriers(1)
    o_ready, o_full, total_full = tlx.alloc_barriers(1), tlx.alloc_barriers(1), tlx.alloc_barriers(1)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # correction
            for n in range(blocks):
                tlx.barrier_wait(alpha_full[0], n & 1)
                before = tlx.local_load(o[0])  # reads
                tlx.local_store(o[0], before * tlx.local_load(alpha[0]))  # writes
                tlx.barrier_arrive(o_ready[0])
            tlx.barrier_wait(total_full[0], 0)
            tlx.barrier_wait(o_full[0], (blocks - 1) & 1)
            at = (row + tl.arange(0, BLOCK_M))[:, None] * HEAD_DIM + tl.arange(0, HEAD_DIM)[None, :]
            tl.store(o_ptr + at, tlx.local_load(o[0]) / tlx.local_load(total[0]))

        with tlx.async_task(num_warps=4):  # softmax
            greatest = tl.full((BLOCK_M,), float("-inf"), tl.float32)
            added = tl.zeros((BLOCK_M,), tl.float32)
            for n in range(blocks):
                tlx.barrier_wait(s_full[0], n & 1)
                scores = tlx.local_load(s[0]) * scale
                after = tl.maximum(greatest, tl.max(scores, 1))
                factor = tl.exp(greatest - after)
                weights = tl.exp(scores - after[:, None])
                # The product before has read P, and so the correction has read alpha.
                tlx.barrier_wait(o_full[0], n & 1 ^ 1)
                tlx.local_store(alpha[0], factor[:, None])
                tlx.barrier_arrive(alpha_full[0])
                tlx.local_store(p[0], weights.to(tl.float16))
                tlx.barrier_arrive(p_full[0])
                added = added * factor + tl.sum(weights, 1)
                greatest = after
            tlx.local_store(total[0], added[:, None])
            tlx.barrier_arrive(total_full[0])

        with tlx.async_task(num_warps=1):  # products
            tlx.barrier_wait(q_full[0], 0)
            for n in range(blocks):
                tlx.barrier_wait(k_full[0], n & 1)
                tlx.async_dot(q[0], tlx.local_trans(k[0]), s[0], use_acc=False, mBarriers=[s_full[0]])
                tlx.barrier_wait(v_full[0], n & 1)
                tlx.barrier_wait(p_full[0], n & 1)
                tlx.barrier_wait(o_ready[0], n & 1)
                tlx.async_dot(p[0], v[0], o[0], use_acc=(n > 0) | ADDS, mBarriers=[o_full[0]])

        with tlx.async_task(num_warps=1):  # loads
            tlx.barrier_expect_bytes(q_full[0], BLOCK_M * HEAD_DIM * 2)
            tlx.async_descriptor_load(q_desc, q[0], [row, 0], q_full[0])
            for n in range(blocks):
                # The MMA with V comes after the one with K.
                tlx.barrier_wait(o_full[0], n & 1 ^ 1)
                tlx.barrier_expect_bytes(k_full[0], BLOCK_N * HEAD_DIM * 2)
                tlx.async_descriptor_load(k_desc, k[0], [n * BLOCK_N, 0], k_full[0])
                tlx.barrier_expect_bytes(v_full[0], BLOCK_N * HEAD_DIM * 2)
                tlx.async_descriptor_load(v_desc, v[0], [n * BLOCK_N, 0], v_full[0])
