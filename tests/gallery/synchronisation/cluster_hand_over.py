"""Pairs of CTAs that hand over memory to each other's threads, each in a way that requires another release.

`total` adds up tiles that TMA brings for both CTAs. `relayed` hands a buffer of a CTA from one of its tasks to another
one by way of the other CTA, and `stored` one by threads' stores to the other CTA.
"""

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def total(x_desc, y_desc, ROWS: tl.constexpr, COLUMNS: tl.constexpr, TURNS: tl.constexpr):
    """y = the sum of the tiles of x, in each CTA: each loads one half of a tile for both, and its threads read it."""
    rank = tlx.cluster_cta_rank()
    tile = tlx.local_alloc((ROWS, COLUMNS), tl.float32, 1)
    out = tlx.local_alloc((ROWS, COLUMNS), tl.float32, 1)
    full = tlx.alloc_barriers(1)
    empty = tlx.alloc_barriers(1, 2)
    tlx.fence_mbarrier_init_cluster()
    tlx.cluster_barrier()
    with tlx.async_tasks():
        with tlx.async_task("default"):
            result = tl.zeros((ROWS, COLUMNS), tl.float32)
            for turn in range(TURNS):
                tlx.barrier_wait(full[0], turn & 1)
                result += tlx.local_load(tile[0])
                tlx.barrier_arrive(empty[0], 1, remote_cta_rank=0)
                tlx.barrier_arrive(empty[0], 1, remote_cta_rank=1)
            tlx.local_store(out[0], result)
            tlx.fence_async_shared()
            tlx.async_descriptor_store(y_desc, out[0], [rank * ROWS, 0])
            tlx.async_descriptor_store_wait(0)

        with tlx.async_task(num_warps=1):
            HALF: tl.constexpr = ROWS // 2
            for turn in range(TURNS):
                tlx.barrier_wait(empty[0], (turn & 1) ^ 1)
                tlx.barrier_expect_bytes(full[0], ROWS * COLUMNS * 4)
                half = tlx.local_slice(tile[0], [rank * HALF, 0], [HALF, COLUMNS])
                tlx.async_descriptor_load(
                    x_desc, half, [turn * ROWS + rank * HALF, 0], full[0], multicast_targets=[0, 1]
                )


@tlx_xdsl.jit
def relayed(y_ptr):
    """y = 0, 1, 2, ... in each CTA, which the last task reads after an arrival of the other CTA."""
    other = tlx.cluster_cta_rank() ^ 1
    note = tlx.local_alloc((128,), tl.int32, 1)
    there = tlx.alloc_barriers(1)
    back = tlx.alloc_barriers(1)
    tlx.fence_mbarrier_init_cluster()
    tlx.cluster_barrier()
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.local_store(note[0], tl.arange(0, 128))
            tlx.barrier_arrive(there[0], 1, remote_cta_rank=other)
        with tlx.async_task(num_warps=1):
            tlx.barrier_wait(there[0], 0)
            tlx.barrier_arrive(back[0], 1, remote_cta_rank=other)
        with tlx.async_task(num_warps=4):
            tlx.barrier_wait(back[0], 0)
            tl.store(y_ptr + tl.program_id(0) * 128 + tl.arange(0, 128), tlx.local_load(note[0]))


@tlx_xdsl.jit
def stored(y_ptr):
    """y = 0, 1, 2, ... in each CTA, which the other one has stored to its memory."""
    other = tlx.cluster_cta_rank() ^ 1
    note = tlx.local_alloc((128,), tl.int32, 1)
    there = tlx.alloc_barriers(1)
    tlx.fence_mbarrier_init_cluster()
    tlx.cluster_barrier()
    tlx.remote_shmem_store(note[0], tl.arange(0, 128), other)
    tlx.barrier_arrive(there[0], 1, remote_cta_rank=other)
    tlx.barrier_wait(there[0], 0)
    tl.store(y_ptr + tl.program_id(0) * 128 + tl.arange(0, 128), tlx.local_load(note[0]))


@tlx_xdsl.jit
def to_itself(y_ptr):
    """y = 0, 1, 2, ... in each CTA, whose tasks use barriers as other CTAs do."""
    rank = tlx.cluster_cta_rank()
    note = tlx.local_alloc((128,), tl.int32, 1)
    there = tlx.alloc_barriers(1)
    tlx.fence_mbarrier_init_cluster()
    tlx.cluster_barrier()
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tlx.local_store(note[0], tl.arange(0, 128))
            tlx.barrier_arrive(there[0], 1, remote_cta_rank=rank)
        with tlx.async_task(num_warps=4):
            tlx.barrier_wait(there[0], 0)
            tl.store(y_ptr + tl.program_id(0) * 128 + tl.arange(0, 128), tlx.local_load(note[0]))
