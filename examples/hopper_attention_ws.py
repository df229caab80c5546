"""Flash attention, forward, on Hopper: TMA, wgmma and warp specialisation.

O = softmax(Q K^T * scale) V for each head, and for a backward pass the logarithm of each row's softmax denominator.
The scores of a row never exist at once: blocks of keys are taken one after the other, and the running maximum m, the
running denominator l and the output so far are rescaled when the maximum grows (online softmax). All exponentials are
powers of two, with scale * log2(e) as the factor.

Design. A program computes BLOCK_M rows of one head. Tasks: one producer (the default task) loads by TMA; two consumers
of one warp group each hold half of the rows, and keep scores, probabilities and output in registers.

Buffers: Q stays in shared memory, one buffer for each consumer; K and V have a ring each, of NUM_STAGES blocks. The
n-th block that a program takes is in stage n % NUM_STAGES, in that ring's phase n // NUM_STAGES. When a consumer is
done, its part of Q is dead, and its part of O leaves from there.

Barriers: `q_full[half]`, `k_full[stage]` and `v_full[stage]` complete when the bytes of a copy have arrived.
`k_empty[stage]` and `v_empty[stage]` complete when both consumers have arrived, each after the wait for the product
that read the stage. The producer waits for the phase before the current one; a fresh barrier lets the first pass.

Blocks are taken from the last one down. With a causal mask the last one holds the diagonal, and it is the only one
that needs a mask. Each row sees its own column in it, so after the first block each running maximum is finite: the
initial -inf meets a finite one, and 2 ** -inf rescales the empty sums by 0.

The length is a multiple of BLOCK_M and BLOCK_N: the heads are consecutive in one tensor of rows.

    tlx compile examples/hopper_attention_ws.py:attention --target sm_90a -o build/     (needs no GPU)
    python examples/hopper_attention_ws.py                                   (needs a Hopper GPU and torch)
"""

import math

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

LOG2_E = tl.constexpr(math.log2(math.e))
LN_2 = tl.constexpr(math.log(2))


@tlx_xdsl.jit
def load_block(desc, row, buffer, full, empty, phase, BYTES: tl.constexpr):
    """Producer: when `buffer` is free, load the block at `row` to it."""
    tlx.barrier_wait(empty, phase ^ 1)
    tlx.barrier_expect_bytes(full, BYTES)
    tlx.async_descriptor_load(desc, buffer, [row, 0], full)


@tlx_xdsl.jit
def causal_mask(scores, first_row, first_column):
    """Hide the keys after each row's own position."""
    rows = first_row + tl.arange(0, scores.shape[0])
    columns = first_column + tl.arange(0, scores.shape[1])
    return tl.where(rows[:, None] >= columns[None, :], scores, float("-inf"))


@tlx_xdsl.jit
def softmax(scores, scale, m, total):
    """Probabilities before the division, their rows' maximum (scaled) and sum so far, and what rescales older sums."""
    m_new = tl.maximum(m, tl.max(scores, 1) * scale)
    p = tl.math.exp2(scores * scale - m_new[:, None])
    alpha = tl.math.exp2(m - m_new)
    return p, m_new, total * alpha + tl.sum(p, 1), alpha


@tlx_xdsl.jit
def attention(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, sm_scale, LENGTH,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr,
    NUM_STAGES: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    tl.static_assert(not CAUSAL or BLOCK_M == BLOCK_N, "one block of keys holds the diagonal of a tile")
    HALF_M: tl.constexpr = BLOCK_M // 2
    dtype: tl.constexpr = tlx.dtype_of(q_desc)
    Q_BYTES: tl.constexpr = HALF_M * HEAD_DIM * tlx.size_of(dtype)
    KV_BYTES: tl.constexpr = BLOCK_N * HEAD_DIM * tlx.size_of(dtype)

    # The longest tiles of a causal mask come first.
    row = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M
    head_row = tl.program_id(1) * LENGTH
    num_blocks = (row + BLOCK_M) // BLOCK_N if CAUSAL else LENGTH // BLOCK_N

    q = tlx.local_alloc((HALF_M, HEAD_DIM), dtype, 2)
    k = tlx.local_alloc((BLOCK_N, HEAD_DIM), dtype, NUM_STAGES)
    v = tlx.local_alloc((BLOCK_N, HEAD_DIM), dtype, NUM_STAGES)
    q_full = tlx.alloc_barriers(2)
    k_full = tlx.alloc_barriers(NUM_STAGES)
    v_full = tlx.alloc_barriers(NUM_STAGES)
    k_empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=2)
    v_empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=2)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            for each in tl.static_range(2):
                tlx.barrier_expect_bytes(q_full[each], Q_BYTES)
                tlx.async_descriptor_load(q_desc, q[each], [head_row + row + each * HALF_M, 0], q_full[each])
            for n in range(num_blocks):
                stage, phase = tlx.get_bufidx_phase(n, NUM_STAGES)
                kv_row = head_row + (num_blocks - 1 - n) * BLOCK_N
                load_block(k_desc, kv_row, k[stage], k_full[stage], k_empty[stage], phase, KV_BYTES)
                load_block(v_desc, kv_row, v[stage], v_full[stage], v_empty[stage], phase, KV_BYTES)

        with tlx.async_task(num_warps=4, replicate=2, registers=240):  # consumers
            half: tl.constexpr = tlx.async_task_replica_id()
            first_row = row + half * HALF_M
            scale = sm_scale * LOG2_E

            m = tl.full((HALF_M,), float("-inf"), tl.float32)
            total = tl.zeros((HALF_M,), tl.float32)
            acc = tl.zeros((HALF_M, HEAD_DIM), tl.float32)
            tlx.barrier_wait(q_full[half], 0)
            for n in range(num_blocks):
                stage, phase = tlx.get_bufidx_phase(n, NUM_STAGES)
                tlx.barrier_wait(k_full[stage], phase)
                scores = tlx.async_dot(q[half], tlx.local_trans(k[stage]))
                scores = tlx.async_dot_wait(0, scores)
                tlx.barrier_arrive(k_empty[stage])
                if CAUSAL and n == 0:  # the block that holds the diagonal
                    scores = causal_mask(scores, first_row, (num_blocks - 1) * BLOCK_N)
                p, m, total, alpha = softmax(scores, scale, m, total)
                acc = acc * alpha[:, None]
                tlx.barrier_wait(v_full[stage], phase)
                acc = tlx.async_dot(p.to(dtype), v[stage], acc)
                acc = tlx.async_dot_wait(0, acc)
                tlx.barrier_arrive(v_empty[stage])

            rows = head_row + first_row + tl.arange(0, HALF_M)
            tl.store(lse_ptr + rows, (m + tl.log2(total)) * LN_2)
            # Q is dead: this consumer alone has read its part, and the last product that did is done.
            tlx.local_store(q[half], (acc / total[:, None]).to(dtype))
            tlx.fence_async_shared()  # TMA reads through the async proxy what the threads wrote
            tlx.async_descriptor_store(o_desc, q[half], [head_row + first_row, 0])
            tlx.async_descriptor_store_wait(0)


TLX_COMPILE = {
    "attention": {
        "signature": {
            "q_desc": "tensordesc<fp16[64, 128]>",
            "k_desc": "tensordesc<fp16[128, 128]>",
            "v_desc": "tensordesc<fp16[128, 128]>",
            "o_desc": "tensordesc<fp16[64, 128]>",
            "lse_ptr": "*fp32:16",
            "sm_scale": "fp32",
            "LENGTH": "i32",
        },
        "constexprs": {"BLOCK_M": 128, "BLOCK_N": 128, "HEAD_DIM": 128, "NUM_STAGES": 2, "CAUSAL": False},
        "num_warps": 4,
    }
}


def launch_arguments(q, k, v, out, lse, scale):
    """The grid and the arguments for contiguous (batch, heads, length, head_dim); `lse` has no head_dim."""
    batch, heads, length, head_dim = q.shape
    tile = TLX_COMPILE["attention"]["constexprs"]
    block_m, block_n = tile["BLOCK_M"], tile["BLOCK_N"]
    assert length % block_m == 0
    assert length % block_n == 0
    blocks = ((q, block_m // 2), (k, block_n), (v, block_n), (out, block_m // 2))
    descriptors = [
        tlx_xdsl.TensorDescriptor.from_tensor(tensor.view(-1, head_dim), [rows, head_dim]) for tensor, rows in blocks
    ]
    return (length // block_m, batch * heads), (*descriptors, lse, scale, length)


def main():
    from check_on_gpu import check_attention

    check_attention(attention, launch_arguments, TLX_COMPILE["attention"]["constexprs"])


if __name__ == "__main__":
    main()
