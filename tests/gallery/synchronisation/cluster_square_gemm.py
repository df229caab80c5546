"""C = A @ B by 2 x 2 CTAs on Hopper: those in one row share the copies of A, those in one column the copies of B.

Each CTA loads one half of the tile of A for its row and one half of that of B for its column. `full[stage]` completes
with both halves of both; `empty[stage]` when the three CTAs that share something with this one have read their stage.
Without SYNC it is the compiler that has to see to it that all CTAs have started.
"""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def matmul(
    a_desc, b_desc, c_desc, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, NUM_STAGES: tl.constexpr,
    SYNC: tl.constexpr = True,
):  # fmt: skip
    HALF_M: tl.constexpr = BLOCK_M // 2
    HALF_N: tl.constexpr = BLOCK_N // 2
    dtype: tl.constexpr = tlx.dtype_of(a_desc)
    STAGE_BYTES: tl.constexpr = (BLOCK_M + BLOCK_N) * BLOCK_K * tlx.size_of(dtype)
    rank = tlx.cluster_cta_rank()
    row = rank // 2
    column = rank % 2
    # The cluster has two CTAs along x, which are two columns, and two along y.
    off_m = tl.program_id(1) * BLOCK_M
    off_n = tl.program_id(0) * BLOCK_N
    num_k = tl.cdiv(K, BLOCK_K)

    a = tlx.local_alloc((BLOCK_M, BLOCK_K), dtype, NUM_STAGES)
    b = tlx.local_alloc((BLOCK_N, BLOCK_K), dtype, NUM_STAGES)
    full = tlx.alloc_barriers(NUM_STAGES)
    # This CTA's own consumers, those in its row and those in its column.
    empty = tlx.alloc_barriers(NUM_STAGES, 3)
    if SYNC:
        tlx.fence_mbarrier_init_cluster()
        tlx.cluster_barrier()

    with tlx.async_tasks():
        with tlx.async_task("default"):
            acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
            for k in range(num_k):
                stage, phase = tlx.get_bufidx_phase(k, NUM_STAGES)
                tlx.barrier_wait(full[stage], phase)
                acc = tlx.async_dot_wait(0, tlx.async_dot(a[stage], tlx.local_trans(b[stage]), acc))
                tlx.barrier_arrive(empty[stage], 1, remote_cta_rank=rank)
                tlx.barrier_arrive(empty[stage], 1, remote_cta_rank=rank ^ 1)
                tlx.barrier_arrive(empty[stage], 1, remote_cta_rank=rank ^ 2)
            c_desc.store([off_m, off_n], acc.to(dtype))

        with tlx.async_task(num_warps=1):
            for k in range(num_k):
                stage, phase = tlx.get_bufidx_phase(k, NUM_STAGES)
                tlx.barrier_wait(empty[stage], phase ^ 1)
                tlx.barrier_expect_bytes(full[stage], STAGE_BYTES)
                a_half = tlx.local_slice(a[stage], [column * HALF_M, 0], [HALF_M, BLOCK_K])
                tlx.async_descriptor_load(
                    a_desc, a_half, [off_m + column * HALF_M, k * BLOCK_K], full[stage],
                    multicast_targets=[row * 2, row * 2 + 1],
                )  # fmt: skip
                b_half = tlx.local_slice(b[stage], [row * HALF_N, 0], [HALF_N, BLOCK_K])
                tlx.async_descriptor_load(
                    b_desc, b_half, [off_n + row * HALF_N, k * BLOCK_K], full[stage],
                    multicast_targets=[column, column + 2],
                )  # fmt: skip
