"""Flash attention, forward, in plain `tl` for stock Triton: at compile time the rivals of our attention kernels.

Tile, head dimension, pipeline depth and results are those of examples/hopper_attention_ws.py; stock Triton decides the
rest. One kernel takes TMA descriptors, as the example does, the other one pointers, as most plain kernels do.
"""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
LN_2 = tl.constexpr(0.6931471805599453)

CONSTEXPRS = {"BLOCK_M": 128, "BLOCK_N": 128, "HEAD_DIM": 128}
OPTIONS = {"num_warps": 8, "num_stages": 2}
"""The example's consumers have eight warps together, and its rings two stages."""

_SCALARS = {"lse_ptr": "*fp32", "sm_scale": "fp32", "LENGTH": "i32"}
SIGNATURES = {
    "of_descriptors": dict.fromkeys(("q_desc", "k_desc", "v_desc", "o_desc"), "tensordesc<fp16[128, 128]>") | _SCALARS,
    "of_pointers": dict.fromkeys(("q_ptr", "k_ptr", "v_ptr", "o_ptr"), "*fp16") | _SCALARS,
}


@triton.jit
def next_softmax(scores, scale, m, total):
    m_new = tl.maximum(m, tl.max(scores, 1) * scale)
    p = tl.math.exp2(scores * scale - m_new[:, None])
    alpha = tl.math.exp2(m - m_new)
    return p, m_new, total * alpha + tl.sum(p, 1), alpha


@triton.jit
def of_descriptors(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, sm_scale, LENGTH,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BLOCK_M
    head_row = tl.program_id(1) * LENGTH
    scale = sm_scale * LOG2_E
    q = q_desc.load([head_row + row, 0])
    m = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    for column in range(0, LENGTH, BLOCK_N):
        k = k_desc.load([head_row + column, 0])
        p, m, total, alpha = next_softmax(tl.dot(q, k.T), scale, m, total)
        v = v_desc.load([head_row + column, 0])
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
    rows = head_row + row + tl.arange(0, BLOCK_M)
    tl.store(lse_ptr + rows, (m + tl.log2(total)) * LN_2)
    o_desc.store([head_row + row, 0], (acc / total[:, None]).to(q.dtype))


@triton.jit
def of_pointers(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, sm_scale, LENGTH,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BLOCK_M
    head_row = tl.program_id(1) * LENGTH
    scale = sm_scale * LOG2_E
    columns = tl.arange(0, HEAD_DIM)[None, :]
    rows = head_row + row + tl.arange(0, BLOCK_M)
    block = (head_row + tl.arange(0, BLOCK_N))[:, None] * HEAD_DIM + columns
    q = tl.load(q_ptr + rows[:, None] * HEAD_DIM + columns)
    m = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    for column in range(0, LENGTH, BLOCK_N):
        k = tl.load(k_ptr + column * HEAD_DIM + block)
        p, m, total, alpha = next_softmax(tl.dot(q, k.T), scale, m, total)
        v = tl.load(v_ptr + column * HEAD_DIM + block)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
    tl.store(lse_ptr + rows, (m + tl.log2(total)) * LN_2)
    tl.store(o_ptr + rows[:, None] * HEAD_DIM + columns, (acc / total[:, None]).to(q.dtype))
