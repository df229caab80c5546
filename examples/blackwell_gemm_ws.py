"""C = A @ B on Blackwell: TMA, tcgen05 and warp specialisation, persistent.

Design. As many programs as there are multiprocessors walk over the tiles of C: program p computes tiles p, p + P,
p + 2 P, ... Tasks: a producer of one warp loads by TMA; an MMA task of one warp issues the products, which the tensor
cores do on their own; the default task, one warp group, is the epilogue, since it takes a warp group to read tensor
memory.

Rings: NUM_STAGES stages of shared memory, each with a tile of A and of B; two accumulators in tensor memory, so that
the products of one tile run while the epilogue reads the one before (two of 256 columns fill the 512 that there are);
two staging buffers in shared memory, through which a tile of C leaves in slices of EPILOGUE_N columns.

Barriers: `full[stage]` completes when the bytes of its two copies have arrived, `empty[stage]` when the product that
read the stage is done: the tensor cores arrive there themselves. `acc_full[i]` completes when all products of a tile
are done (a commit tracks those issued so far), `acc_empty[i]` when the epilogue has read the accumulator; it arrives
before its last slice is stored. Step k of the program's j-th tile is step j * num_k + k of the shared-memory ring, and
the tile is step j of the accumulators' ring: the index is that number modulo the ring's length, the phase the number
of earlier turns. Who fills waits for the phase before the current one; a fresh barrier lets the first pass.

A staging buffer is written again when at most one TMA store, that of the other buffer, is still in flight.

    tlx compile examples/blackwell_gemm_ws.py:matmul -o build/     (needs no GPU)
"""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def tile_offsets(tile, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    """First row and column of a C tile. Tiles go in columns of GROUP_M, so that neighbours share tiles in the L2."""
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    first_m = tile // (GROUP_M * tiles_n) * GROUP_M
    group_m = min(tiles_m - first_m, GROUP_M)
    in_group = tile % (GROUP_M * tiles_n)
    return (first_m + in_group % group_m) * BLOCK_M, in_group // group_m * BLOCK_N


@tlx_xdsl.jit
def matmul(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    NUM_STAGES: tl.constexpr, EPILOGUE_N: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    NUM_ACCUMULATORS: tl.constexpr = 2
    NUM_SLICES: tl.constexpr = BLOCK_N // EPILOGUE_N
    dtype: tl.constexpr = tlx.dtype_of(a_desc)
    STAGE_BYTES: tl.constexpr = (BLOCK_M + BLOCK_N) * BLOCK_K * tlx.size_of(dtype)

    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    num_tiles = tl.cdiv(tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N) - pid, programs)  # of this program
    num_k = tl.cdiv(K, BLOCK_K)

    a = tlx.local_alloc((BLOCK_M, BLOCK_K), dtype, NUM_STAGES)
    b = tlx.local_alloc((BLOCK_K, BLOCK_N), dtype, NUM_STAGES)
    c = tlx.local_alloc((BLOCK_M, EPILOGUE_N), dtype, 2)
    acc = tlx.local_alloc((BLOCK_M, BLOCK_N), tl.float32, NUM_ACCUMULATORS, tlx.storage_kind.tmem)
    full = tlx.alloc_barriers(NUM_STAGES)
    empty = tlx.alloc_barriers(NUM_STAGES)
    acc_full = tlx.alloc_barriers(NUM_ACCUMULATORS)
    acc_empty = tlx.alloc_barriers(NUM_ACCUMULATORS)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # epilogue
            for j in range(num_tiles):
                off_m, off_n = tile_offsets(pid + j * programs, M, N, BLOCK_M, BLOCK_N, GROUP_M)
                i, phase = tlx.get_bufidx_phase(j, NUM_ACCUMULATORS)
                tlx.barrier_wait(acc_full[i], phase)
                for part in tl.static_range(NUM_SLICES):
                    columns = tlx.local_load(tlx.subslice(acc[i], part * EPILOGUE_N, EPILOGUE_N))
                    if part == NUM_SLICES - 1:
                        tlx.barrier_arrive(acc_empty[i])
                    tlx.async_descriptor_store_wait(1)
                    tlx.local_store(c[part % 2], columns.to(dtype))
                    tlx.fence_async_shared()  # TMA reads through the async proxy what the threads wrote
                    tlx.async_descriptor_store(c_desc, c[part % 2], [off_m, off_n + part * EPILOGUE_N])
            tlx.async_descriptor_store_wait(0)

        with tlx.async_task(num_warps=1, registers=48):  # MMA
            for j in range(num_tiles):
                i, phase = tlx.get_bufidx_phase(j, NUM_ACCUMULATORS)
                tlx.barrier_wait(acc_empty[i], phase ^ 1)
                for k in range(num_k):
                    stage, k_phase = tlx.get_bufidx_phase(j * num_k + k, NUM_STAGES)
                    tlx.barrier_wait(full[stage], k_phase)
                    tlx.async_dot(a[stage], b[stage], acc[i], use_acc=k > 0, mBarriers=[empty[stage]])
                tlx.tcgen05_commit(acc_full[i])

        with tlx.async_task(num_warps=1, registers=48):  # producer
            for j in range(num_tiles):
                off_m, off_n = tile_offsets(pid + j * programs, M, N, BLOCK_M, BLOCK_N, GROUP_M)
                for k in range(num_k):
                    stage, phase = tlx.get_bufidx_phase(j * num_k + k, NUM_STAGES)
                    tlx.barrier_wait(empty[stage], phase ^ 1)
                    tlx.barrier_expect_bytes(full[stage], STAGE_BYTES)
                    tlx.async_descriptor_load(a_desc, a[stage], [off_m, k * BLOCK_K], full[stage])
                    tlx.async_descriptor_load(b_desc, b[stage], [k * BLOCK_K, off_n], full[stage])


TLX_COMPILE = {
    "matmul": {
        "signature": {
            "a_desc": "tensordesc<fp16[128, 64]>",
            "b_desc": "tensordesc<fp16[64, 256]>",
            "c_desc": "tensordesc<fp16[128, 64]>",
            "M": "i32",
            "N": "i32",
            "K": "i32",
        },
        "constexprs": {
            "BLOCK_M": 128,
            "BLOCK_N": 256,
            "BLOCK_K": 64,
            "NUM_STAGES": 4,
            "EPILOGUE_N": 64,
            "GROUP_M": 8,
        },
        "num_warps": 4,
        "target": "sm_100a",
    }
}
