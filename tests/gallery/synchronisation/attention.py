"""Attention, forward, on Blackwell, small: one softmax task; probabilities lie in the tensor memory of the scores.

`DROP` leaves something out, for tests.
"""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def attention(
    q_desc, k_desc, v_desc, o_ptr, scale, LENGTH,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr, DROP: tl.constexpr = "",
):  # fmt: skip
    dtype: tl.constexpr = tlx.dtype_of(q_desc)
    row = tl.program_id(0) * BLOCK_M
    num_blocks = LENGTH // BLOCK_N
    q = tlx.local_alloc((BLOCK_M, HEAD_DIM), dtype, 1)
    k = tlx.local_alloc((BLOCK_N, HEAD_DIM), dtype, 2)
    v = tlx.local_alloc((BLOCK_N, HEAD_DIM), dtype, 2)
    o = tlx.local_alloc((BLOCK_M, HEAD_DIM), tl.float32, 1, tlx.storage_kind.tmem)
    region = tlx.storage_alias_spec(storage=tlx.storage_kind.tmem)
    s = tlx.local_alloc((BLOCK_M, BLOCK_N), tl.float32, 1, tlx.storage_kind.tmem, reuse=region)
    p = tlx.local_alloc((BLOCK_M, BLOCK_N), dtype, 1, tlx.storage_kind.tmem, reuse=region)
    region.set_buffer_overlap(tlx.reuse_group(s, p, group_type=tlx.reuse_group_type.shared))
    q_full = tlx.alloc_barriers(1)
    kv_full = tlx.alloc_barriers(2)
    kv_empty = tlx.alloc_barriers(2)
    s_full = tlx.alloc_barriers(1)
    p_full = tlx.alloc_barriers(1)
    o_full = tlx.alloc_barriers(1)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # softmax, and the output's correction
            rows = row + tl.arange(0, BLOCK_M)
            m = tl.full((BLOCK_M,), float("-inf"), tl.float32)
            total = tl.zeros((BLOCK_M,), tl.float32)
            for n in range(num_blocks):
                tlx.barrier_wait(s_full[0], n & 1)
                scores = tlx.local_load(s[0]) * scale
                m_new = tl.maximum(m, tl.max(scores, 1))
                factor = tl.exp(m - m_new)
                weights = tl.exp(scores - m_new[:, None])
                total = total * factor + tl.sum(weights, 1)
                m = m_new
                if DROP != "p":
                    tlx.local_store(p[0], weights.to(dtype))
                if n > 0:
                    # The scores came after the last MMA in its barrier, so the output is complete.
                    tlx.local_store(o[0], tlx.local_load(o[0]) * factor[:, None])
                tlx.barrier_arrive(p_full[0])
            if DROP != "last wait":
                tlx.barrier_wait(o_full[0], (num_blocks - 1) & 1)
            out = tlx.local_load(o[0]) / total[:, None]
            columns = tl.arange(0, HEAD_DIM)
            tl.store(o_ptr + rows[:, None] * HEAD_DIM + columns[None, :], out)

        with tlx.async_task(num_warps=1):  # MMA
            tlx.barrier_wait(q_full[0], 0)
            for n in range(num_blocks):
                stage, phase = tlx.get_bufidx_phase(n, 2)
                tlx.barrier_wait(kv_full[stage], phase)
                if DROP != "o_full":
                    # Before the first block there is no product to wait for: a fresh barrier lets that pass.
                    tlx.barrier_wait(o_full[0], (n & 1) ^ 1)
                tlx.async_dot(q[0], tlx.local_trans(k[stage]), s[0], use_acc=False, mBarriers=[s_full[0]])
                if DROP != "p_full":
                    tlx.barrier_wait(p_full[0], n & 1)
                tlx.async_dot(p[0], v[stage], o[0], use_acc=n > 0, mBarriers=[o_full[0], kv_empty[stage]])

        with tlx.async_task(num_warps=1):  # producer
            tlx.barrier_expect_bytes(q_full[0], BLOCK_M * HEAD_DIM * tlx.size_of(dtype))
            tlx.async_descriptor_load(q_desc, q[0], [row, 0], q_full[0])
            for n in range(num_blocks):
                stage, phase = tlx.get_bufidx_phase(n, 2)
                tlx.barrier_wait(kv_empty[stage], phase ^ 1)
                tlx.barrier_expect_bytes(kv_full[stage], 2 * BLOCK_N * HEAD_DIM * tlx.size_of(dtype))
                tlx.async_descriptor_load(k_desc, k[stage], [n * BLOCK_N, 0], kv_full[stage])
                tlx.async_descriptor_load(v_desc, v[stage], [n * BLOCK_N, 0], kv_full[stage])
