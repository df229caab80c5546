"""C = A @ B by pairs of CTAs on Hopper: both compute tiles in the same columns, so each loads one half of B for both.

`full[stage]` completes with A and both halves of B; `empty[stage]` when the consumers of both CTAs have read their
stage, since the copies of each CTA go to both. `DROP` leaves something out, for tests.
"""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def matmul(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, NUM_STAGES: tl.constexpr,
    DROP: tl.constexpr = "",
):  # fmt: skip
    HALF_K: tl.constexpr = BLOCK_K // 2
    dtype: tl.constexpr = tlx.dtype_of(a_desc)
    SHORT: tl.constexpr = 16 if DROP == "bytes" else 0
    STAGE_BYTES: tl.constexpr = (BLOCK_M + BLOCK_N) * BLOCK_K * tlx.size_of(dtype) - SHORT
    rank = tlx.cluster_cta_rank()
    # A cluster has two neighbours along M.
    tiles_m = tl.cdiv(tl.cdiv(M, BLOCK_M), 2) * 2
    off_m = tl.program_id(0) % tiles_m * BLOCK_M
    off_n = tl.program_id(0) // tiles_m * BLOCK_N
    num_k = tl.cdiv(K, BLOCK_K)

    a = tlx.local_alloc((BLOCK_M, BLOCK_K), dtype, NUM_STAGES)
    b = tlx.local_alloc((BLOCK_K, BLOCK_N), dtype, NUM_STAGES)
    c = tlx.local_alloc((BLOCK_M, BLOCK_N), dtype, 1)
    full = tlx.alloc_barriers(NUM_STAGES)
    empty = tlx.alloc_barriers(NUM_STAGES, 1 if DROP == "remote arrive" else 2)
    if DROP != "fence and barrier":
        tlx.fence_mbarrier_init_cluster()
        tlx.cluster_barrier()

    with tlx.async_tasks(no_ending_cluster_sync=DROP == "ending barrier"):
        with tlx.async_task("default"):
            acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
            for k in range(num_k):
                stage, phase = tlx.get_bufidx_phase(k, NUM_STAGES)
                tlx.barrier_wait(full[stage], phase)
                acc = tlx.async_dot_wait(0, tlx.async_dot(a[stage], b[stage], acc))
                if DROP == "remote arrive":
                    tlx.barrier_arrive(empty[stage])
                elif DROP == "wrong rank":
                    tlx.barrier_arrive(empty[stage], 1, remote_cta_rank=rank)
                    tlx.barrier_arrive(empty[stage], 1, remote_cta_rank=rank)
                else:
                    tlx.barrier_arrive(empty[stage], 1, remote_cta_rank=0)
                    tlx.barrier_arrive(empty[stage], 1, remote_cta_rank=1)
            tlx.local_store(c[0], acc.to(dtype))
            tlx.fence_async_shared()
            tlx.async_descriptor_store(c_desc, c[0], [off_m, off_n])
            tlx.async_descriptor_store_wait(0)

        with tlx.async_task(num_warps=1):
            for k in range(num_k):
                stage, phase = tlx.get_bufidx_phase(k, NUM_STAGES)
                tlx.barrier_wait(empty[stage], phase ^ 1)
                tlx.barrier_expect_bytes(full[stage], STAGE_BYTES)
                tlx.async_descriptor_load(a_desc, a[stage], [off_m, k * BLOCK_K], full[stage])
                half = tlx.local_slice(b[stage], [rank * HALF_K, 0], [HALF_K, BLOCK_N])
                if DROP == "mask":
                    tlx.async_descriptor_load(
                        b_desc, half, [k * BLOCK_K + rank * HALF_K, off_n], full[stage], multicast_targets=[0]
                    )
                else:
                    tlx.async_descriptor_load(
                        b_desc, half, [k * BLOCK_K + rank * HALF_K, off_n], full[stage], multicast_targets=[0, 1]
                    )
