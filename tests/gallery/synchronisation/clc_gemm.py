"""C = A @ B on Blackwell, persistent by cluster launch control: every program asks for the tiles of programs that
were not launched, until there are none.

The producer, the MMA and the epilogue each read the response; the epilogue asks, one tile ahead. `DROP` leaves
something out, for tests.
"""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def matmul(
    a_desc, b_desc, c_desc, count_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, NUM_STAGES: tl.constexpr,
    DROP: tl.constexpr = "",
):  # fmt: skip
    dtype: tl.constexpr = tlx.dtype_of(a_desc)
    STAGE_BYTES: tl.constexpr = (BLOCK_M + BLOCK_N) * BLOCK_K * tlx.size_of(dtype)
    tiles_m = tl.cdiv(M, BLOCK_M)
    num_k = tl.cdiv(K, BLOCK_K)
    first = tl.program_id(0)

    a = tlx.local_alloc((BLOCK_M, BLOCK_K), dtype, NUM_STAGES)
    b = tlx.local_alloc((BLOCK_K, BLOCK_N), dtype, NUM_STAGES)
    c = tlx.local_alloc((BLOCK_M, BLOCK_N), dtype, 1)
    acc = tlx.local_alloc((BLOCK_M, BLOCK_N), tl.float32, 1, tlx.storage_kind.tmem)
    full = tlx.alloc_barriers(NUM_STAGES)
    empty = tlx.alloc_barriers(NUM_STAGES)
    acc_full = tlx.alloc_barriers(1)
    acc_empty = tlx.alloc_barriers(1)
    context = tlx.clc_create_context(3)

    with tlx.async_tasks():
        with tlx.async_task("default"):
            tile = first
            turn = 0
            while tile != -1:
                tlx.clc_producer(context, (turn & 1) ^ 1, multi_ctas=False)
                tlx.barrier_wait(acc_full[0], turn & 1)
                values = tlx.local_load(acc[0])
                tlx.barrier_arrive(acc_empty[0])
                tlx.async_descriptor_store_wait(0)
                tlx.local_store(c[0], values.to(dtype))
                tlx.fence_async_shared()
                tlx.async_descriptor_store(c_desc, c[0], [tile % tiles_m * BLOCK_M, tile // tiles_m * BLOCK_N])
                tl.atomic_add(count_ptr + tile, 1)
                tile = tlx.clc_consumer(context, turn & 1, multi_ctas=False)
                turn += 1
            tlx.async_descriptor_store_wait(0)

        with tlx.async_task(num_warps=1):
            tile = first
            turn = 0
            while tile != -1:
                if DROP != "acc_empty":
                    tlx.barrier_wait(acc_empty[0], (turn & 1) ^ 1)
                for k in range(num_k):
                    stage, phase = tlx.get_bufidx_phase(turn * num_k + k, NUM_STAGES)
                    tlx.barrier_wait(full[stage], phase)
                    tlx.async_dot(a[stage], b[stage], acc[0], use_acc=k > 0, mBarriers=[empty[stage]])
                tlx.tcgen05_commit(acc_full[0])
                tile = tlx.clc_consumer(context, turn & 1, multi_ctas=False)
                turn += 1

        with tlx.async_task(num_warps=1):
            tile = first
            turn = 0
            while tile != -1:
                for k in range(num_k):
                    stage, phase = tlx.get_bufidx_phase(turn * num_k + k, NUM_STAGES)
                    tlx.barrier_wait(empty[stage], phase ^ 1)
                    tlx.barrier_expect_bytes(full[stage], STAGE_BYTES)
                    tlx.async_descriptor_load(a_desc, a[stage], [tile % tiles_m * BLOCK_M, k * BLOCK_K], full[stage])
                    tlx.async_descriptor_load(b_desc, b[stage], [k * BLOCK_K, tile // tiles_m * BLOCK_N], full[stage])
                tile = tlx.clc_consumer(context, turn & 1, multi_ctas=False)
                turn += 1
