"""C = A @ B on Hopper with persistent programs whose two consumers take turns at the tensor cores (ping-pong).

Design. As many programs as there are multiprocessors walk over the tiles of C: program p computes tiles p, p + P,
p + 2 P, ... Tasks: one producer (the default task) loads by TMA; two consumers of one warp group each compute whole
tiles, consumer 0 the program's even ones and consumer 1 the odd ones. While one multiplies, the other converts and
stores its tile: the tensor cores never wait for an epilogue, which counts when K is short.

Ring: NUM_STAGES stages, each with a tile of A and a tile of B. Step k of the program's j-th tile is step
j * num_k + k of the ring; its stage is that number modulo NUM_STAGES, its phase the number of earlier turns. The
consumers' stages follow each other in the one ring, in the order in which the consumers take turns.

Barriers: `full[stage]` completes when the bytes of its two copies have arrived; `empty[stage]` completes when the one
consumer that reads the stage has arrived. It does so one step late, when `async_dot_wait(1)` says that the product
before is done. The producer waits for the phase before the current one; a fresh barrier lets the first turn pass.

Turns: named barrier c is "consumer c may multiply", with 256 threads: the 128 that wait and the 128 that arrive. A
consumer waits for its turn before the first product of a tile and gives the turn to the other one when it has issued
the last. Tile 0 needs no turn, and after the last tile of the program no task is called, so each barrier completes as
often as a task waits for it.

C goes through shared memory: each consumer has a staging buffer of its own, and waits for its last TMA store before
it writes the buffer again, not after the store, so that the store overlaps its next tile.

    tlx compile examples/hopper_gemm_persistent_pingpong.py:matmul --target sm_90a -o build/     (needs no GPU)
    python examples/hopper_gemm_persistent_pingpong.py                          (needs a Hopper GPU and torch)
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


TURN_THREADS = tl.constexpr(256)
"""Threads that meet at a named barrier: both consumers."""


@tlx_xdsl.jit
def matmul(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    NUM_STAGES: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    tl.static_assert(NUM_STAGES >= 2, "a stage is given back when the next one is being multiplied")
    dtype: tl.constexpr = tlx.dtype_of(a_desc)
    STAGE_BYTES: tl.constexpr = (BLOCK_M + BLOCK_N) * BLOCK_K * tlx.size_of(dtype)

    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    num_tiles = tl.cdiv(tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N) - pid, programs)  # of this program
    num_k = tl.cdiv(K, BLOCK_K)

    a = tlx.local_alloc((BLOCK_M, BLOCK_K), dtype, NUM_STAGES)
    b = tlx.local_alloc((BLOCK_K, BLOCK_N), dtype, NUM_STAGES)
    c = tlx.local_alloc((BLOCK_M, BLOCK_N), dtype, 2)
    full = tlx.alloc_barriers(NUM_STAGES)
    empty = tlx.alloc_barriers(NUM_STAGES)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            for j in range(num_tiles):
                off_m, off_n = tile_offsets(pid + j * programs, M, N, BLOCK_M, BLOCK_N, GROUP_M)
                for k in range(num_k):
                    stage, phase = tlx.get_bufidx_phase(j * num_k + k, NUM_STAGES)
                    tlx.barrier_wait(empty[stage], phase ^ 1)
                    tlx.barrier_expect_bytes(full[stage], STAGE_BYTES)
                    off_k = k * BLOCK_K
                    tlx.async_descriptor_load(a_desc, a[stage], [off_m, off_k], full[stage])
                    tlx.async_descriptor_load(b_desc, b[stage], [off_k, off_n], full[stage])

        with tlx.async_task(num_warps=4, replicate=2, registers=232):  # consumers
            consumer: tl.constexpr = tlx.async_task_replica_id()
            for j in range(consumer, num_tiles, 2):
                off_m, off_n = tile_offsets(pid + j * programs, M, N, BLOCK_M, BLOCK_N, GROUP_M)
                acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
                if j > 0:
                    tlx.named_barrier_wait(consumer, TURN_THREADS)
                for k in range(num_k):
                    step = j * num_k + k
                    stage, phase = tlx.get_bufidx_phase(step, NUM_STAGES)
                    tlx.barrier_wait(full[stage], phase)
                    acc = tlx.async_dot(a[stage], b[stage], acc, use_acc=k > 0)
                    # One product stays in flight; the one before it is done, so its stage can be refilled.
                    acc = tlx.async_dot_wait(1, acc)
                    tlx.barrier_arrive(empty[(step + NUM_STAGES - 1) % NUM_STAGES], pred=k > 0)
                if j + 1 < num_tiles:
                    tlx.named_barrier_arrive(1 - consumer, TURN_THREADS)
                acc = tlx.async_dot_wait(0, acc)
                tlx.barrier_arrive(empty[(j * num_k + num_k - 1) % NUM_STAGES])

                tlx.async_descriptor_store_wait(0)
                tlx.local_store(c[consumer], acc.to(dtype))
                tlx.fence_async_shared()  # TMA reads through the async proxy what the threads wrote
                tlx.async_descriptor_store(c_desc, c[consumer], [off_m, off_n])
            tlx.async_descriptor_store_wait(0)


TLX_COMPILE = {
    "matmul": {
        "signature": {
            "a_desc": "tensordesc<fp16[128, 64]>",
            "b_desc": "tensordesc<fp16[64, 128]>",
            "c_desc": "tensordesc<fp16[128, 128]>",
            "M": "i32",
            "N": "i32",
            "K": "i32",
        },
        "constexprs": {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "NUM_STAGES": 5, "GROUP_M": 8},
        "num_warps": 4,
    }
}


def launch_arguments(a, b, c):
    """The grid and the arguments for c = a @ b on torch tensors."""
    import torch

    (m, k), n = a.shape, b.shape[1]
    tile = TLX_COMPILE["matmul"]["constexprs"]
    block_m, block_n, block_k = tile["BLOCK_M"], tile["BLOCK_N"], tile["BLOCK_K"]
    descriptors = (
        tlx_xdsl.TensorDescriptor.from_tensor(a, [block_m, block_k]),
        tlx_xdsl.TensorDescriptor.from_tensor(b, [block_k, block_n]),
        tlx_xdsl.TensorDescriptor.from_tensor(c, [block_m, block_n]),
    )
    tiles = -(-m // block_m) * -(-n // block_n)
    grid = min(tiles, torch.cuda.get_device_properties(a.device).multi_processor_count)
    return (grid,), (*descriptors, m, n, k)


def main():
    from check_on_gpu import check_matmul

    shapes = (512, 512, 512), (1000, 1304, 712), (4096, 4096, 4096)
    check_matmul(matmul, launch_arguments, TLX_COMPILE["matmul"]["constexprs"], shapes)


if __name__ == "__main__":
    main()
