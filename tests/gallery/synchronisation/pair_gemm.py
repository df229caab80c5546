"""C = A @ B on Blackwell by pairs of CTAs that work on one product: 256 rows, of which each has one half.

Each CTA loads its half of the rows of A and of the columns of B; the bytes of both complete on the barrier of the even
CTA, which issues the products for both and whose commits arrive in both.

With two PAIRS in a cluster both compute the same rows: each loads one half of A for both, when both have room (`room`).
`DROP` leaves something out, for tests.
"""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def matmul(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, NUM_STAGES: tl.constexpr,
    PAIRS: tl.constexpr = 1, DROP: tl.constexpr = "",
):  # fmt: skip
    dtype: tl.constexpr = tlx.dtype_of(a_desc)
    HALF_N: tl.constexpr = BLOCK_N // 2
    # Both CTAs' copies count on one barrier.
    STAGE_BYTES: tl.constexpr = 2 * (BLOCK_M + HALF_N) * BLOCK_K * tlx.size_of(dtype)
    rank = tlx.cluster_cta_rank()
    in_pair = rank % 2
    is_even = in_pair == 0
    tiles_m = tl.cdiv(M, 2 * BLOCK_M)
    cluster = tl.program_id(0) // (2 * PAIRS)
    off_m = (cluster % tiles_m * 2 + in_pair) * BLOCK_M
    off_n = (cluster // tiles_m * PAIRS + rank // 2) * BLOCK_N
    num_k = tl.cdiv(K, BLOCK_K)

    a = tlx.local_alloc((BLOCK_M, BLOCK_K), dtype, NUM_STAGES)
    b = tlx.local_alloc((BLOCK_K, HALF_N), dtype, NUM_STAGES)
    c = tlx.local_alloc((BLOCK_M, BLOCK_N), dtype, 1)
    acc = tlx.local_alloc((BLOCK_M, BLOCK_N), tl.float32, 1, tlx.storage_kind.tmem)
    full = tlx.alloc_barriers(NUM_STAGES)
    empty = tlx.alloc_barriers(NUM_STAGES)
    if PAIRS > 1:
        room = tlx.alloc_barriers(NUM_STAGES, 2)
    acc_full = tlx.alloc_barriers(1)
    if DROP != "fence and barrier":
        tlx.fence_mbarrier_init_cluster()
        tlx.cluster_barrier()

    with tlx.async_tasks():
        with tlx.async_task("default"):
            if DROP != "acc_full":
                tlx.barrier_wait(acc_full[0], 0)
            tlx.local_store(c[0], tlx.local_load(acc[0]).to(dtype))
            if DROP != "fence":
                tlx.fence_async_shared()
            tlx.async_descriptor_store(c_desc, c[0], [off_m, off_n])
            tlx.async_descriptor_store_wait(0)

        with tlx.async_task(num_warps=1):
            for k in range(num_k):
                stage, phase = tlx.get_bufidx_phase(k, NUM_STAGES)
                if DROP != "full":
                    tlx.barrier_wait(full[stage], phase, is_even)
                tlx.async_dot(
                    a[stage], b[stage], acc[0], use_acc=k > 0, pred=is_even, mBarriers=[empty[stage]], two_ctas=True
                )
            if DROP != "commit":
                tlx.tcgen05_commit(acc_full[0], two_ctas=True)

        with tlx.async_task(num_warps=1):
            for k in range(num_k):
                stage, phase = tlx.get_bufidx_phase(k, NUM_STAGES)
                if DROP != "empty":
                    tlx.barrier_wait(empty[stage], phase ^ 1)
                tlx.barrier_expect_bytes(full[stage], STAGE_BYTES, is_even)
                if PAIRS == 1:
                    tlx.async_descriptor_load(a_desc, a[stage], [off_m, k * BLOCK_K], full[stage], two_ctas=True)
                else:
                    if DROP != "room":
                        tlx.barrier_arrive(room[stage], 1, remote_cta_rank=rank)
                        tlx.barrier_arrive(room[stage], 1, remote_cta_rank=rank ^ 2)
                        tlx.barrier_wait(room[stage], phase)
                    first = rank // 2 * (BLOCK_M // 2)
                    tlx.async_descriptor_load(
                        a_desc, tlx.local_slice(a[stage], [first, 0], [BLOCK_M // 2, BLOCK_K]),
                        [off_m + first, k * BLOCK_K], full[stage],
                        multicast_targets=[in_pair, in_pair + 2], two_ctas=True,
                    )  # fmt: skip
                tlx.async_descriptor_load(
                    b_desc, b[stage], [k * BLOCK_K, off_n + in_pair * HALF_N], full[stage], two_ctas=True
                )
