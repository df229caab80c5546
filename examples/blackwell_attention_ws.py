"""Flash attention, forward, on Blackwell: tcgen05, warp specialisation, and tensor memory that is used twice.

O = softmax(Q K^T * scale) V for each head, and for a backward pass the logarithm of each row's softmax denominator.
Blocks of keys are taken one after the other; the running maximum m and the running denominator are kept for each row,
and the output so far is rescaled by alpha when the maximum grows (online softmax). All exponentials are powers of two,
with scale * log2(e) as the factor.

Design. A program computes BLOCK_M rows of one head, in two groups of half as many: while the softmax of one group
runs, the tensor cores work for the other one. Tasks: a producer of one warp loads by TMA; an MMA task of one warp
issues the products; two softmax tasks of one warp group, one for each group of rows, turn scores into probabilities;
the correction task (the default one, one warp group) rescales the output in tensor memory, and at the end divides and
stores it. Rescaling by another task takes the output's registers, and its time, off the softmax.

Tensor memory, per group (128 rows, columns of 4 bytes): the output takes HEAD_DIM columns, the scores BLOCK_N. The
probabilities, in the operand's type and in NUM_SLICES slices, alpha, m and the denominator lie in the memory of the
scores that they are computed from: a softmax has read all scores of its rows before it writes any of them. They must
not overlap each other, since the product reads the probabilities while alpha is still wanted. With HEAD_DIM and
BLOCK_N 128, all 512 columns are in use.

Rings: K and V have one of NUM_STAGES blocks each in shared memory; block n is in stage n % NUM_STAGES, in phase
n // NUM_STAGES. Q stays; when the last product is done it is dead, and O leaves from its memory.

Barriers of one group; phase n is that of block n, except where it is said:
    q_full      the group's part of Q has arrived (once)
    s_full      scores are done, by the tensor cores
    alpha_full  the softmax has written alpha
    o_ready     the correction has rescaled the output, so that the product may add to it
    p_full      (one for each slice) the softmax has written a slice of the probabilities
    o_full      the product with V is done, by the tensor cores. It has read the probabilities, so that the next scores
                may overwrite them; and alpha too has been read, since the product waited for o_ready
    end_full    the softmax has written m and the denominator (once)
The ring's: `k_full[stage]`, `v_full[stage]` complete by the bytes of a copy, `k_empty[stage]`, `v_empty[stage]` when
the products of both groups that read the stage are done: a commit tracks all products issued so far. The producer
waits for the phase before the current one; a fresh barrier lets the first pass.

With a causal mask blocks are taken up to the one with the tile's last row. Each row sees column 0, so no row is
without a finite score after the first block, and the last blocks alone need the mask: one for each group. (Group 0
has its last block masked out altogether, which wastes one block in a tile.)

The length is a multiple of BLOCK_M: the heads are consecutive in one tensor of rows.

    tlx compile examples/blackwell_attention_ws.py:attention -o build/     (needs no GPU)
"""

import math

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

LOG2_E = tl.constexpr(math.log2(math.e))
LN_2 = tl.constexpr(math.log(2))
NUM_GROUPS = tl.constexpr(2)
"""Groups of rows, each with a softmax task."""
COLUMNS = tl.constexpr(32)
"""Columns of the output that the correction holds at once: a thread has a register for each.

Of 65,536 registers the two softmax tasks take 200 for each of their 256 threads, for a row of 128 scores, and the warp
group of MMA and producer 24 for each of its 128. That leaves 88 for a thread of the correction.
"""


@tlx_xdsl.jit
def load_block(desc, row, buffer, full, empty, phase, BYTES: tl.constexpr):
    """Producer: when `buffer` is free, load the block at `row` to it."""
    tlx.barrier_wait(empty, phase ^ 1)
    tlx.barrier_expect_bytes(full, BYTES)
    tlx.async_descriptor_load(desc, buffer, [row, 0], full)


@tlx_xdsl.jit
def add_product(
    n, group: tl.constexpr, p, v_block, o, o_ready, p_full, o_full,
    SLICE_N: tl.constexpr, HEAD_DIM: tl.constexpr, NUM_SLICES: tl.constexpr,
):  # fmt: skip
    """MMA: add P(n) V(n) to the output of a group, each slice as soon as the softmax has written it."""
    tlx.barrier_wait(o_ready[group], n & 1)
    for part in tl.static_range(NUM_SLICES):
        index: tl.constexpr = group * NUM_SLICES + part
        tlx.barrier_wait(p_full[index], n & 1)
        rows = tlx.local_slice(v_block, [part * SLICE_N, 0], [SLICE_N, HEAD_DIM])
        # The first slice of the first block overwrites what was in tensor memory before.
        tlx.async_dot(p[index], rows, o[group], use_acc=(n > 0) | (part > 0), force_async=True)
    tlx.tcgen05_commit(o_full[group])


@tlx_xdsl.jit
def issue_products(
    num_blocks, q, k, v, s, p, o, q_full, k_full, v_full, k_empty, v_empty, s_full, p_full, o_ready, o_full,
    BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr, NUM_STAGES: tl.constexpr, NUM_SLICES: tl.constexpr,
):  # fmt: skip
    """MMA: turn n adds the product of block n - 1 and computes the scores of block n, for one group, then the other.

    So the softmax of a group has the time of the other group's products.
    """
    SLICE_N: tl.constexpr = BLOCK_N // NUM_SLICES
    tlx.barrier_wait(k_full[0], 0)
    for group in tl.static_range(NUM_GROUPS):
        tlx.barrier_wait(q_full[group], 0)
        tlx.async_dot(q[group], tlx.local_trans(k[0]), s[group], use_acc=False, mBarriers=[s_full[group]])
    tlx.tcgen05_commit(k_empty[0])
    for n in range(1, num_blocks):
        k_stage, k_phase = tlx.get_bufidx_phase(n, NUM_STAGES)
        v_stage, v_phase = tlx.get_bufidx_phase(n - 1, NUM_STAGES)
        tlx.barrier_wait(v_full[v_stage], v_phase)
        tlx.barrier_wait(k_full[k_stage], k_phase)
        for group in tl.static_range(NUM_GROUPS):
            add_product(n - 1, group, p, v[v_stage], o, o_ready, p_full, o_full, SLICE_N, HEAD_DIM, NUM_SLICES)
            # The scores take the memory of the probabilities, which the product reads until it is done.
            tlx.barrier_wait(o_full[group], (n - 1) & 1)
            tlx.async_dot(q[group], tlx.local_trans(k[k_stage]), s[group], use_acc=False, mBarriers=[s_full[group]])
        tlx.tcgen05_commit(v_empty[v_stage])
        tlx.tcgen05_commit(k_empty[k_stage])
    last = num_blocks - 1
    stage, phase = tlx.get_bufidx_phase(last, NUM_STAGES)
    tlx.barrier_wait(v_full[stage], phase)
    for group in tl.static_range(NUM_GROUPS):
        add_product(last, group, p, v[stage], o, o_ready, p_full, o_full, SLICE_N, HEAD_DIM, NUM_SLICES)


@tlx_xdsl.jit
def softmax_step(
    n, group: tl.constexpr, m, total, scale, first_row, s, p, alpha, s_full, alpha_full, p_full,
    BLOCK_N: tl.constexpr, NUM_SLICES: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Softmax: turn the scores of block n into probabilities, in place; the new maximum and denominator."""
    tlx.barrier_wait(s_full[group], n & 1)
    scores = tlx.local_load(s[group])
    if MASKED:
        rows = first_row + tl.arange(0, scores.shape[0])
        columns = n * BLOCK_N + tl.arange(0, BLOCK_N)
        scores = tl.where(rows[:, None] >= columns[None, :], scores, float("-inf"))
    m_new = tl.maximum(m, tl.max(scores, 1) * scale)
    factor = tl.math.exp2(m - m_new)
    # First what the correction waits for: it works while the exponentials are computed.
    tlx.local_store(alpha[group], factor[:, None])
    tlx.barrier_arrive(alpha_full[group])
    weights = tl.math.exp2(scores * scale - m_new[:, None])
    operand = weights.to(tlx.dtype_of(p))
    if NUM_SLICES == 1:
        tlx.local_store(p[group], operand)
        tlx.barrier_arrive(p_full[group])
    else:
        halves = tl.permute(tl.reshape(operand, (operand.shape[0], 2, BLOCK_N // 2)), (0, 2, 1))
        left, right = tl.split(halves)
        tlx.local_store(p[group * 2], left)
        tlx.barrier_arrive(p_full[group * 2])
        tlx.local_store(p[group * 2 + 1], right)
        tlx.barrier_arrive(p_full[group * 2 + 1])
    return m_new, total * factor + tl.sum(weights, 1)


@tlx_xdsl.jit
def attention(
    q_desc, k_desc, v_desc, o_desc, lse_ptr, sm_scale, LENGTH,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr,
    NUM_STAGES: tl.constexpr, NUM_SLICES: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    GROUP_M: tl.constexpr = BLOCK_M // NUM_GROUPS
    SLICE_N: tl.constexpr = BLOCK_N // NUM_SLICES
    tl.static_assert(NUM_SLICES == 1 or NUM_SLICES == 2, "probabilities are written whole or in two slices")
    tl.static_assert(not CAUSAL or GROUP_M == BLOCK_N, "one block of keys holds the diagonal of a group")
    dtype: tl.constexpr = tlx.dtype_of(q_desc)
    Q_BYTES: tl.constexpr = GROUP_M * HEAD_DIM * tlx.size_of(dtype)
    KV_BYTES: tl.constexpr = BLOCK_N * HEAD_DIM * tlx.size_of(dtype)

    # The longest tiles of a causal mask come first.
    row = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_M
    head_row = tl.program_id(1) * LENGTH
    num_blocks = (row + BLOCK_M) // BLOCK_N if CAUSAL else LENGTH // BLOCK_N
    num_unmasked = num_blocks - NUM_GROUPS if CAUSAL else num_blocks

    q = tlx.local_alloc((GROUP_M, HEAD_DIM), dtype, NUM_GROUPS)
    k = tlx.local_alloc((BLOCK_N, HEAD_DIM), dtype, NUM_STAGES)
    v = tlx.local_alloc((BLOCK_N, HEAD_DIM), dtype, NUM_STAGES)
    o = tlx.local_alloc((GROUP_M, HEAD_DIM), tl.float32, NUM_GROUPS, tlx.storage_kind.tmem)

    scores_memory = tlx.storage_alias_spec(storage=tlx.storage_kind.tmem)
    s = tlx.local_alloc((GROUP_M, BLOCK_N), tl.float32, NUM_GROUPS, tlx.storage_kind.tmem, reuse=scores_memory)
    p = tlx.local_alloc((GROUP_M, SLICE_N), dtype, NUM_GROUPS * NUM_SLICES, tlx.storage_kind.tmem, reuse=scores_memory)
    alpha = tlx.local_alloc((GROUP_M, 1), tl.float32, NUM_GROUPS, tlx.storage_kind.tmem, reuse=scores_memory)
    end_m = tlx.local_alloc((GROUP_M, 1), tl.float32, NUM_GROUPS, tlx.storage_kind.tmem, reuse=scores_memory)
    end_total = tlx.local_alloc((GROUP_M, 1), tl.float32, NUM_GROUPS, tlx.storage_kind.tmem, reuse=scores_memory)
    scores_memory.set_buffer_overlap(
        tlx.reuse_group(
            s,
            tlx.reuse_group(
                tlx.reuse_group(p, group_size=NUM_SLICES),
                alpha,
                end_m,
                end_total,
                group_type=tlx.reuse_group_type.distinct,
            ),
            group_type=tlx.reuse_group_type.shared,
        )
    )

    k_full = tlx.alloc_barriers(NUM_STAGES)
    v_full = tlx.alloc_barriers(NUM_STAGES)
    k_empty = tlx.alloc_barriers(NUM_STAGES)
    v_empty = tlx.alloc_barriers(NUM_STAGES)
    q_full = tlx.alloc_barriers(NUM_GROUPS)
    s_full = tlx.alloc_barriers(NUM_GROUPS)
    alpha_full = tlx.alloc_barriers(NUM_GROUPS)
    o_ready = tlx.alloc_barriers(NUM_GROUPS)
    p_full = tlx.alloc_barriers(NUM_GROUPS * NUM_SLICES)
    o_full = tlx.alloc_barriers(NUM_GROUPS)
    end_full = tlx.alloc_barriers(NUM_GROUPS)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # correction
            for each in tl.static_range(NUM_GROUPS):
                # The first product overwrites the output: there is nothing to rescale.
                tlx.barrier_wait(alpha_full[each], 0)
                tlx.barrier_arrive(o_ready[each])
            for n in range(1, num_blocks):
                for each in tl.static_range(NUM_GROUPS):
                    tlx.barrier_wait(alpha_full[each], n & 1)
                    factor = tlx.local_load(alpha[each])
                    tlx.barrier_wait(o_full[each], (n - 1) & 1)
                    for column in tl.static_range(0, HEAD_DIM, COLUMNS):
                        part = tlx.subslice(o[each], column, COLUMNS)
                        tlx.local_store(part, tlx.local_load(part) * factor)
                    tlx.barrier_arrive(o_ready[each])
            for each in tl.static_range(NUM_GROUPS):
                tlx.barrier_wait(end_full[each], 0)
                m = tlx.local_load(end_m[each])
                total = tlx.local_load(end_total[each])
                first_row = head_row + row + each * GROUP_M
                rows = first_row + tl.arange(0, GROUP_M)
                tl.store(lse_ptr + rows[:, None], (m + tl.log2(total)) * LN_2)
                # After the last product Q is dead as well: O leaves from its memory.
                tlx.barrier_wait(o_full[each], (num_blocks - 1) & 1)
                for column in tl.static_range(0, HEAD_DIM, COLUMNS):
                    block = tlx.local_load(tlx.subslice(o[each], column, COLUMNS)) / total
                    tlx.local_store(tlx.local_slice(q[each], [0, column], [GROUP_M, COLUMNS]), block.to(dtype))
                tlx.fence_async_shared()  # TMA reads through the async proxy what the threads wrote
                tlx.async_descriptor_store(o_desc, q[each], [first_row, 0])
            tlx.async_descriptor_store_wait(0)

        with tlx.async_task(num_warps=4, replicate=NUM_GROUPS, registers=200):  # softmax
            group: tl.constexpr = tlx.async_task_replica_id()
            scale = sm_scale * LOG2_E
            first_row = row + group * GROUP_M
            m = tl.full((GROUP_M,), float("-inf"), tl.float32)
            total = tl.zeros((GROUP_M,), tl.float32)
            for n in range(num_unmasked):
                m, total = softmax_step(
                    n, group, m, total, scale, first_row, s, p, alpha, s_full, alpha_full, p_full,
                    BLOCK_N, NUM_SLICES, MASKED=False,
                )  # fmt: skip
            if CAUSAL:
                for n in range(num_unmasked, num_blocks):
                    m, total = softmax_step(
                        n, group, m, total, scale, first_row, s, p, alpha, s_full, alpha_full, p_full,
                        BLOCK_N, NUM_SLICES, MASKED=True,
                    )  # fmt: skip
            tlx.local_store(end_m[group], m[:, None])
            tlx.local_store(end_total[group], total[:, None])
            tlx.barrier_arrive(end_full[group])

        with tlx.async_task(num_warps=1, registers=24):  # MMA
            issue_products(
                num_blocks, q, k, v, s, p, o, q_full, k_full, v_full, k_empty, v_empty, s_full, p_full, o_ready, o_full,
                BLOCK_N, HEAD_DIM, NUM_STAGES, NUM_SLICES,
            )  # fmt: skip

        with tlx.async_task(num_warps=1, registers=24):  # producer
            for group in tl.static_range(NUM_GROUPS):
                tlx.barrier_expect_bytes(q_full[group], Q_BYTES)
                tlx.async_descriptor_load(q_desc, q[group], [head_row + row + group * GROUP_M, 0], q_full[group])
            for n in range(num_blocks):
                stage, phase = tlx.get_bufidx_phase(n, NUM_STAGES)
                kv_row = head_row + n * BLOCK_N
                load_block(k_desc, kv_row, k[stage], k_full[stage], k_empty[stage], phase, KV_BYTES)
                load_block(v_desc, kv_row, v[stage], v_full[stage], v_empty[stage], phase, KV_BYTES)


TLX_COMPILE = {
    "attention": {
        "signature": {
            "q_desc": "tensordesc<fp16[128, 128]>",
            "k_desc": "tensordesc<fp16[128, 128]>",
            "v_desc": "tensordesc<fp16[128, 128]>",
            "o_desc": "tensordesc<fp16[128, 128]>",
            "lse_ptr": "*fp32:16",
            "sm_scale": "fp32",
            "LENGTH": "i32",
        },
        "constexprs": {
            "BLOCK_M": 256,
            "BLOCK_N": 128,
            "HEAD_DIM": 128,
            "NUM_STAGES": 2,
            "NUM_SLICES": 2,
            "CAUSAL": False,
        },
        "num_warps": 4,
        "target": "sm_100a",
    }
}
