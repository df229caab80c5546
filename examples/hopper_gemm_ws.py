"""C = A @ B on Hopper: TMA, wgmma and warp specialisation, written in TLX.

One producer warp group streams tiles of A and B into a ring of shared-memory stages; two consumer warp groups each
multiply half of the rows of the C tile. When the products are done the ring is dead, and C is staged in its memory.

    tlx compile examples/hopper_gemm_ws.py:matmul --target sm_90a -o build/     (needs no GPU)
    python examples/hopper_gemm_ws.py                                           (needs a Hopper GPU and torch)
"""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def matmul(
    a_desc, b_desc, c_desc, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    NUM_STAGES: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    HALF_M: tl.constexpr = BLOCK_M // 2
    dtype: tl.constexpr = tlx.dtype_of(a_desc)

    # Programs walk the C tiles in columns of GROUP_M tiles, so that neighbours share tiles of A and B in the L2.
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    first_m = pid // (GROUP_M * tiles_n) * GROUP_M
    group_m = min(tiles_m - first_m, GROUP_M)
    in_group = pid % (GROUP_M * tiles_n)
    off_m = (first_m + in_group % group_m) * BLOCK_M
    off_n = in_group // group_m * BLOCK_N
    num_k = tl.cdiv(K, BLOCK_K)

    # The ring (B and both halves of A) and the staging buffers of C (one per consumer) live in the same memory.
    storage = tlx.storage_alias_spec(storage=tlx.storage_kind.smem)
    a = tlx.local_alloc((HALF_M, BLOCK_K), dtype, 2 * NUM_STAGES, reuse=storage)
    b = tlx.local_alloc((BLOCK_K, BLOCK_N), dtype, NUM_STAGES, reuse=storage)
    c = tlx.local_alloc((HALF_M, BLOCK_N), dtype, 2, reuse=storage)
    ring = tlx.reuse_group(
        tlx.reuse_group(b, group_size=NUM_STAGES),
        tlx.reuse_group(a, group_size=2 * NUM_STAGES),
        group_type=tlx.reuse_group_type.distinct,
    )
    storage.set_buffer_overlap(
        tlx.reuse_group(ring, tlx.reuse_group(c, group_size=2), group_type=tlx.reuse_group_type.shared)
    )

    full = tlx.alloc_barriers(NUM_STAGES)  # a stage has been loaded
    empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=2)  # both consumers are done with a stage
    ring_is_dead = tlx.alloc_barriers(1, arrive_count=2)  # both consumers are done with all stages

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            for k in range(num_k):
                stage = k % NUM_STAGES
                # A barrier that has never completed a phase lets a wait for the odd parity pass: the ring is free.
                tlx.barrier_wait(empty[stage], ((k // NUM_STAGES) & 1) ^ 1)
                tlx.barrier_expect_bytes(full[stage], (BLOCK_M + BLOCK_N) * BLOCK_K * tlx.size_of(dtype))
                off_k = k * BLOCK_K
                tlx.async_descriptor_load(a_desc, a[stage * 2], [off_m, off_k], full[stage])
                tlx.async_descriptor_load(b_desc, b[stage], [off_k, off_n], full[stage])
                tlx.async_descriptor_load(a_desc, a[stage * 2 + 1], [off_m + HALF_M, off_k], full[stage])

        with tlx.async_task(num_warps=4, replicate=2, registers=232):  # consumers
            half = tlx.async_task_replica_id()
            acc = tl.zeros((HALF_M, BLOCK_N), tl.float32)
            for k in range(num_k):
                stage = k % NUM_STAGES
                tlx.barrier_wait(full[stage], (k // NUM_STAGES) & 1)
                acc = tlx.async_dot(a[stage * 2 + half], b[stage], acc, use_acc=k > 0)
                # One product stays in flight; the one before it is done, so its stage can be refilled.
                acc = tlx.async_dot_wait(1, acc)
                tlx.barrier_arrive(empty[(k + NUM_STAGES - 1) % NUM_STAGES], pred=k > 0)
            acc = tlx.async_dot_wait(0, acc)

            # C overlays the ring. Each consumer arrives here after its last product; it has by then waited for
            # `full` of every stage that was loaded. So once both have arrived no TMA load is in flight and no
            # wgmma reads the ring: its memory can be written.
            tlx.barrier_arrive(ring_is_dead[0])
            tlx.barrier_wait(ring_is_dead[0], 0)
            tlx.local_store(c[half], acc.to(dtype))
            tlx.fence_async_shared()  # TMA reads through the async proxy what was written through the generic one
            tlx.async_descriptor_store(c_desc, c[half], [off_m + half * HALF_M, off_n])
            tlx.async_descriptor_store_wait(0)


TLX_COMPILE = {
    "matmul": {
        "signature": {
            "a_desc": "tensordesc<fp16[64, 64]>",
            "b_desc": "tensordesc<fp16[64, 256]>",
            "c_desc": "tensordesc<fp16[64, 256]>",
            "M": "i32",
            "N": "i32",
            "K": "i32",
        },
        "constexprs": {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "NUM_STAGES": 3, "GROUP_M": 8},
        "num_warps": 4,
    }
}


def launch_arguments(a, b, c):
    """The grid and the arguments for c = a @ b on torch tensors."""
    (m, k), n = a.shape, b.shape[1]
    tile = TLX_COMPILE["matmul"]["constexprs"]
    half_m, block_n, block_k = tile["BLOCK_M"] // 2, tile["BLOCK_N"], tile["BLOCK_K"]
    descriptors = (
        tlx_xdsl.TensorDescriptor.from_tensor(a, [half_m, block_k]),
        tlx_xdsl.TensorDescriptor.from_tensor(b, [block_k, block_n]),
        tlx_xdsl.TensorDescriptor.from_tensor(c, [half_m, block_n]),
    )
    grid = -(-m // tile["BLOCK_M"]) * -(-n // block_n)
    return (grid,), (*descriptors, m, n, k)


def main():
    from check_on_gpu import check_matmul

    shapes = (512, 512, 512), (1000, 1304, 712), (4096, 4096, 4096)
    check_matmul(matmul, launch_arguments, TLX_COMPILE["matmul"]["constexprs"], shapes)


if __name__ == "__main__":
    main()
