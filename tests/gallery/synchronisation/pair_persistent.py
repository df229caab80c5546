"""`pair_gemm`, persistent: pairs of CTAs take over the tiles of pairs that were not launched.

The even CTA's MMA task must know that both epilogues have read an accumulator; `acc_empty` counts both there. The
response of cluster launch control is read by three tasks of each CTA. `CONSUMERS` is 6 but in a test.
"""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def place(program, M, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """First row and column of a CTA's half of a tile."""
    tiles_m = tl.cdiv(M, 2 * BLOCK_M)
    tile = program // 2
    return (tile % tiles_m * 2 + program % 2) * BLOCK_M, tile // tiles_m * BLOCK_N


@tlx_xdsl.jit
def matmul(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, NUM_STAGES: tl.constexpr,
    CONSUMERS: tl.constexpr = 6,
):  # fmt: skip
    dtype: tl.constexpr = tlx.dtype_of(a_desc)
    HALF_N: tl.constexpr = BLOCK_N // 2
    STAGE_BYTES: tl.constexpr = 2 * (BLOCK_M + HALF_N) * BLOCK_K * tlx.size_of(dtype)
    rank = tlx.cluster_cta_rank()
    is_even = rank == 0
    num_k = tl.cdiv(K, BLOCK_K)

    a = tlx.local_alloc((BLOCK_M, BLOCK_K), dtype, NUM_STAGES)
    b = tlx.local_alloc((BLOCK_K, HALF_N), dtype, NUM_STAGES)
    c = tlx.local_alloc((BLOCK_M, BLOCK_N), dtype, 1)
    acc = tlx.local_alloc((BLOCK_M, BLOCK_N), tl.float32, 2, tlx.storage_kind.tmem)
    full = tlx.alloc_barriers(NUM_STAGES)
    empty = tlx.alloc_barriers(NUM_STAGES)
    acc_full = tlx.alloc_barriers(2)
    acc_empty = tlx.alloc_barriers(2, 2)
    context = tlx.clc_create_context(CONSUMERS)
    tlx.fence_mbarrier_init_cluster()
    tlx.cluster_barrier()

    with tlx.async_tasks():
        with tlx.async_task("default"):
            program = tl.program_id(0)
            turn = 0
            while program != -1:
                tlx.clc_producer(context, (turn & 1) ^ 1)
                i, phase = tlx.get_bufidx_phase(turn, 2)
                off_m, off_n = place(program, M, BLOCK_M, BLOCK_N)
                tlx.barrier_wait(acc_full[i], phase)
                values = tlx.local_load(acc[i])
                tlx.barrier_arrive(acc_empty[i], 1, remote_cta_rank=0)
                tlx.async_descriptor_store_wait(0)
                tlx.local_store(c[0], values.to(dtype))
                tlx.fence_async_shared()
                tlx.async_descriptor_store(c_desc, c[0], [off_m, off_n])
                program = tlx.clc_consumer(context, turn & 1)
                turn += 1
            tlx.async_descriptor_store_wait(0)

        with tlx.async_task(num_warps=1):
            program = tl.program_id(0)
            turn = 0
            while program != -1:
                i, phase = tlx.get_bufidx_phase(turn, 2)
                tlx.barrier_wait(acc_empty[i], phase ^ 1, is_even)
                for k in range(num_k):
                    stage, k_phase = tlx.get_bufidx_phase(turn * num_k + k, NUM_STAGES)
                    tlx.barrier_wait(full[stage], k_phase, is_even)
                    tlx.async_dot(
                        a[stage], b[stage], acc[i], use_acc=k > 0, pred=is_even, mBarriers=[empty[stage]], two_ctas=True
                    )
                tlx.tcgen05_commit(acc_full[i], two_ctas=True)
                program = tlx.clc_consumer(context, turn & 1)
                turn += 1

        with tlx.async_task(num_warps=1):
            program = tl.program_id(0)
            turn = 0
            while program != -1:
                off_m, off_n = place(program, M, BLOCK_M, BLOCK_N)
                for k in range(num_k):
                    stage, phase = tlx.get_bufidx_phase(turn * num_k + k, NUM_STAGES)
                    tlx.barrier_wait(empty[stage], phase ^ 1)
                    tlx.barrier_expect_bytes(full[stage], STAGE_BYTES, is_even)
                    tlx.async_descriptor_load(a_desc, a[stage], [off_m, k * BLOCK_K], full[stage], two_ctas=True)
                    tlx.async_descriptor_load(
                        b_desc, b[stage], [k * BLOCK_K, off_n + rank * HALF_N], full[stage], two_ctas=True
                    )
                program = tlx.clc_consumer(context, turn & 1)
                turn += 1
