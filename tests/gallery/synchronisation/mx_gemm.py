"""C = (A * scales) @ (B * scales) on Blackwell with block scales of 32 elements, which TMA brings in the hardware's
order and `tmem_copy` puts into tensor memory. A is M x K, B is N x K; both 8-bit floats, or A fp4 in pairs.

`DROP` leaves something out, for tests.
"""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def matmul(
    a_desc, b_desc, as_desc, bs_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, NUM_STAGES: tl.constexpr,
    A_FORMAT: tl.constexpr, B_FORMAT: tl.constexpr, A_PACK: tl.constexpr, DROP: tl.constexpr = "",
):  # fmt: skip
    SCALES: tl.constexpr = BLOCK_K // 32
    LINES: tl.constexpr = BLOCK_N // 128 * 32
    STAGE_BYTES: tl.constexpr = BLOCK_M * BLOCK_K // A_PACK + BLOCK_N * BLOCK_K + (32 + LINES) * 16
    tiles_m = tl.cdiv(M, BLOCK_M)
    tile_m = tl.program_id(0) % tiles_m
    tile_n = tl.program_id(0) // tiles_m
    num_k = tl.cdiv(K, BLOCK_K)

    a = tlx.local_alloc((BLOCK_M, BLOCK_K // A_PACK), tlx.dtype_of(a_desc), NUM_STAGES)
    b = tlx.local_alloc((BLOCK_N, BLOCK_K), tlx.dtype_of(b_desc), NUM_STAGES)
    a_scale = tlx.local_alloc((32, 16), tl.uint8, NUM_STAGES)
    b_scale = tlx.local_alloc((LINES, 16), tl.uint8, NUM_STAGES)
    acc = tlx.local_alloc((BLOCK_M, BLOCK_N), tl.float32, 1, tlx.storage_kind.tmem)
    a_tmem = tlx.local_alloc((BLOCK_M, SCALES), tl.uint8, 1, tlx.storage_kind.tmem)
    b_tmem = tlx.local_alloc((BLOCK_N, SCALES), tl.uint8, 1, tlx.storage_kind.tmem)
    c = tlx.local_alloc((BLOCK_M, BLOCK_N), tl.float32, 1)
    full = tlx.alloc_barriers(NUM_STAGES)
    empty = tlx.alloc_barriers(NUM_STAGES)
    read = tlx.alloc_barriers(1)
    done = tlx.alloc_barriers(1)

    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.barrier_wait(done[0], 0)
            tlx.local_store(c[0], tlx.local_load(acc[0]))
            tlx.fence_async_shared()
            tlx.async_descriptor_store(c_desc, c[0], [tile_m * BLOCK_M, tile_n * BLOCK_N])
            tlx.async_descriptor_store_wait(0)

        with tlx.async_task(num_warps=1):
            for k in range(num_k):
                stage, phase = tlx.get_bufidx_phase(k, NUM_STAGES)
                tlx.barrier_wait(full[stage], phase)
                if DROP != "scales read":
                    tlx.barrier_wait(read[0], (k & 1) ^ 1)
                if DROP != "copy":
                    tlx.tmem_copy(a_scale[stage], a_tmem[0])
                tlx.tmem_copy(b_scale[stage], b_tmem[0])
                tlx.async_dot_scaled(
                    a[stage], tlx.local_trans(b[stage]), acc[0], a_tmem[0], A_FORMAT, b_tmem[0], B_FORMAT,
                    use_acc=k > 0, mBarriers=[empty[stage], read[0]],
                )  # fmt: skip
            tlx.tcgen05_commit(done[0])

        with tlx.async_task(num_warps=1):
            for k in range(num_k):
                stage, phase = tlx.get_bufidx_phase(k, NUM_STAGES)
                tlx.barrier_wait(empty[stage], phase ^ 1)
                tlx.barrier_expect_bytes(full[stage], STAGE_BYTES)
                tlx.async_descriptor_load(a_desc, a[stage], [tile_m * BLOCK_M, k * (BLOCK_K // A_PACK)], full[stage])
                tlx.async_descriptor_load(b_desc, b[stage], [tile_n * BLOCK_N, k * BLOCK_K], full[stage])
                tlx.async_descriptor_load(as_desc, a_scale[stage], [(tile_m * num_k + k) * 32, 0], full[stage])
                tlx.async_descriptor_load(bs_desc, b_scale[stage], [(tile_n * num_k + k) * LINES, 0], full[stage])
