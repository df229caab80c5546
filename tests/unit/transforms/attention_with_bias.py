"""Attention with a bias that is loaded from global memory, before or after the product that it is added to."""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def attention(
    q_desc, k_desc, v_desc, bias_ptr, out_ptr, LENGTH, scale,
    BEFORE: tl.constexpr, MOVING: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    q = tlx.local_alloc((64, 128), tl.float16, 2)
    k = tlx.local_alloc((128, 128), tl.float16, STAGES)
    v = tlx.local_alloc((128, 128), tl.float16, STAGES)
    q_full = tlx.alloc_barriers(2)
    full = tlx.alloc_barriers(STAGES)
    empty = tlx.alloc_barriers(STAGES, arrive_count=2)
    row = tl.program_id(0) * 128
    with tlx.async_tasks():
        with tlx.async_task("default"):
            for half in tl.static_range(2):
                tlx.barrier_expect_bytes(q_full[half], 64 * 128 * 2)
                tlx.async_descriptor_load(q_desc, q[half], [row + half * 64, 0], q_full[half])
            for n in range(LENGTH // 128):
                stage, phase = tlx.get_bufidx_phase(n, STAGES)
                tlx.barrier_wait(empty[stage], phase ^ 1)
                tlx.barrier_expect_bytes(full[stage], 2 * 128 * 128 * 2)
                tlx.async_descriptor_load(k_desc, k[stage], [n * 128, 0], full[stage])
                tlx.async_descriptor_load(v_desc, v[stage], [n * 128, 0], full[stage])
        with tlx.async_task(num_warps=4, replicate=2, registers=240):
            half: tl.constexpr = tlx.async_task_replica_id()
            rows = row + half * 64 + tl.arange(0, 64)
            columns = tl.arange(0, 128)
            m = tl.full((64,), -1e6, tl.float32)
            total = tl.zeros((64,), tl.float32)
            acc = tl.zeros((64, 128), tl.float32)
            block = bias_ptr + rows[:, None] * LENGTH + columns[None, :]
            tlx.barrier_wait(q_full[half], 0)
            for n in range(LENGTH // 128):
                stage, phase = tlx.get_bufidx_phase(n, STAGES)
                if BEFORE:
                    bias = tl.load(block if MOVING else block + n * 128)
                tlx.barrier_wait(full[stage], phase)
                scores = tlx.async_dot(q[half], tlx.local_trans(k[stage]))
                scores = tlx.async_dot_wait(0, scores)
                if not BEFORE:
                    bias = tl.load(block if MOVING else block + n * 128)
                scores = scores * scale + bias.to(tl.float32)
                m_new = tl.maximum(m, tl.max(scores, 1))
                p = tl.math.exp2(scores - m_new[:, None])
                alpha = tl.math.exp2(m - m_new)
                total = total * alpha + tl.sum(p, 1)
                acc = acc * alpha[:, None]
                acc = tlx.async_dot(p.to(tl.float16), v[stage], acc)
                acc = tlx.async_dot_wait(0, acc)
                tlx.barrier_arrive(empty[stage])
                m = m_new
                if MOVING:
                    block += 128
            acc = acc / total[:, None]
            tl.store(out_ptr + rows[:, None] * 128 + columns[None, :], acc.to(tl.float16))


SIGNATURE = {
    "q_desc": "tensordesc<fp16[64, 128]>",
    "k_desc": "tensordesc<fp16[128, 128]>",
    "v_desc": "tensordesc<fp16[128, 128]>",
    "bias_ptr": "*fp16:16",
    "out_ptr": "*fp16:16",
    "LENGTH": "i32:16",
    "scale": "fp32",
}
