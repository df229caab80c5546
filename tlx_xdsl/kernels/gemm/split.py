"""A GEMM kernel for Hopper whose tiles each have a cluster of CTAs: they share K, and add their sums up themselves.

For a small C with a long K: whole tiles would leave most multiprocessors idle, and a second kernel that adds up parts
(`reduce`) costs its launch and the way through memory.

CTA r of the SPLIT in a cluster takes the steps from r * SHARE on, with a producer and consumers as `persistent`
has them. Then part p of the tile's columns, PART_N of them, belongs to CTA p % SPLIT. Each consumer writes its f32 sums
of every part to shared memory of the CTA that the part belongs to, to a place of its own, and arrives at a barrier
there. The consumer of the same rows waits for all SPLIT of them, adds them up in the order of K, and stores the part,
with the epilogue. So the same bits come out every time, there are no atomics, and nothing is to be reset.

A CTA writes to another one at the end only. It has waited for the cluster before, so that the others run and their
barriers are ready; and as it waits for all writes to its own memory, none comes after it has ended.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportOptionalSubscript=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from .device import by_parts, load_step, load_steps, multiply_steps, tile_offsets, waited
from .epilogue import ring_and_result, store_columns


@tlx_xdsl.jit
def hand_on(sums, _, state, SPLIT: tl.constexpr, PART: tl.constexpr):
    """Write part PART of a tile's sums to the CTA that it belongs to.

    `received` has a place for each part of a CTA and each CTA of the cluster, a consumer's from `first` on.
    """
    received, first, rank = state
    tlx.remote_shmem_store(received[first + PART // SPLIT * SPLIT + rank], sums[0], PART % SPLIT)


@tlx_xdsl.jit
def added_up(received, first, SPLIT: tl.constexpr):
    """The sums of a part, in the order of K."""
    total = tlx.local_load(received[first])
    for each in tl.static_range(1, SPLIT):
        total += tlx.local_load(received[first + each])
    return total


@tlx_xdsl.jit
def gemm_split(a_desc, b_descs, target, sizes, SHARE, FORM: tl.constexpr, SPLIT: tl.constexpr):
    """C = EPILOGUE(A @ B), a cluster of SPLIT CTAs for each tile. See the top of the file."""
    TILE: tl.constexpr = FORM.tile
    CONSUMERS: tl.constexpr = TILE.consumers
    PART_N: tl.constexpr = TILE.part_n
    PARTS: tl.constexpr = TILE.tile_n // PART_N
    # Parts of a CTA, at most.
    OWN: tl.constexpr = (PARTS + SPLIT - 1) // SPLIT
    REGISTERS: tl.constexpr = 160 if CONSUMERS == 3 else 232

    rank = tlx.cluster_cta_rank()
    off_m, off_n = tile_offsets(tl.program_id(0) // SPLIT, sizes, TILE.block_m, TILE.tile_n, TILE.group_m)
    columns = (off_n, off_n + TILE.block_n)
    begin = rank * SHARE
    end = min(begin + SHARE, tl.cdiv(sizes.k, TILE.block_k))

    ring, out = ring_and_result(a_desc, target, sizes, FORM)
    received = tlx.local_alloc((TILE.rows, PART_N), tl.float32, CONSUMERS * OWN * SPLIT)
    complete = tlx.alloc_barriers(CONSUMERS, arrive_count=SPLIT)

    # The other CTAs run, and their barriers are ready. The compiler has the tasks wait before they hand on sums.
    tlx.cluster_barrier()
    load_step(ring, a_desc, b_descs, 0, off_m, columns, begin * TILE.block_k)

    with tlx.async_tasks(no_ending_cluster_sync=True):
        with tlx.async_task("default"):  # producer
            load_steps(ring, a_desc, b_descs, 1, 0, off_m, columns, begin + 1, end)

        with tlx.async_task(num_warps=4, replicate=CONSUMERS, registers=REGISTERS):  # consumers
            part: tl.constexpr = tlx.async_task_replica_id()
            # No stage is loaded to after the last one: it is not given back.
            sums, _, _, _ = multiply_steps(ring, 0, 0, begin, end, part)
            sums = waited(sums, 0)

            FIRST: tl.constexpr = part * OWN * SPLIT
            state = (received, FIRST, rank)
            by_parts((sums[0],), 0, hand_on, state, SPLIT, PART_N)
            if TILE.tail_n > 0:
                by_parts((sums[1],), 0, hand_on, state, SPLIT, PART_N, TILE.block_n // PART_N)
            for other in tl.static_range(SPLIT):
                tlx.barrier_arrive(complete[part], 1, other)
            tlx.barrier_wait(complete[part], 0)
            arrived = out.arrived[part] if target.matrix is not None else None
            for own in tl.static_range(OWN):
                if own * SPLIT + rank < PARTS:
                    total = added_up(received, FIRST + own * SPLIT, SPLIT)
                    column = off_n + (own * SPLIT + rank) * PART_N
                    store_columns((total,), column, (out, off_m + part * TILE.rows, arrived, 0), part, own)
            tlx.async_descriptor_store_wait(0)
