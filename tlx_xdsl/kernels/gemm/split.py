"""A GEMM kernel for Hopper whose tiles each have a cluster of CTAs: they share K, and add their sums up themselves.

For a small C with a long K: whole tiles would leave most multiprocessors idle, and a second kernel that adds up parts
(`reduce`) costs its launch and the way through memory.

CTA r of the SPLIT in a cluster takes the steps from r * SHARE on, with a producer and consumers as `cooperative`
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

from ..rings import next_place
from .cooperative import load_strips, multiplied, tile_rings, waited
from .device import operand, tile_offsets
from .epilogue import halves, store_columns, type_of_result


@tlx_xdsl.jit
def hand_on(sums, received, first, rank, PART: tl.constexpr, PART_N: tl.constexpr, SPLIT: tl.constexpr):
    """Write columns of sums, from part PART of the tile on, to the CTAs that they belong to.

    `received` has a place for each part of a CTA and each CTA of the cluster, a consumer's from `first` on.
    """
    COLUMNS: tl.constexpr = sums.shape[1]
    if COLUMNS > PART_N:
        lefts, rights = halves((sums,))
        hand_on(lefts[0], received, first, rank, PART, PART_N, SPLIT)
        hand_on(rights[0], received, first, rank, PART + COLUMNS // 2 // PART_N, PART_N, SPLIT)
    else:
        tlx.remote_shmem_store(received[first + PART // SPLIT * SPLIT + rank], sums, PART % SPLIT)


@tlx_xdsl.jit
def added_up(received, first, SPLIT: tl.constexpr):
    """The sums of a part, in the order of K."""
    total = tlx.local_load(received[first])
    for each in tl.static_range(1, SPLIT):
        total += tlx.local_load(received[first + each])
    return total


@tlx_xdsl.jit
def gemm_split(
    a_desc, b_desc, tail_desc, c_desc, c_ptr, c_row, c_column, row0, row1, column0, column1, matrix_desc, M, N, K,
    GROUP_FACTOR, GROUP_SHIFT, REST_FACTOR, REST_SHIFT, SHARE,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, TAIL_N: tl.constexpr, BLOCK_K: tl.constexpr,
    NUM_STAGES: tl.constexpr, PART_N: tl.constexpr, BUFFERS: tl.constexpr, GROUP_M: tl.constexpr,
    A_COLUMNS: tl.constexpr, B_COLUMNS: tl.constexpr, C_COLUMNS: tl.constexpr, TURNED: tl.constexpr,
    EPILOGUE: tl.constexpr, CONSUMERS: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """C = EPILOGUE(A @ B), a cluster of SPLIT CTAs for each tile. See the top of the file."""
    PART_M: tl.constexpr = BLOCK_M // CONSUMERS
    PARTS: tl.constexpr = (BLOCK_N + TAIL_N) // PART_N
    # Parts of a CTA, at most.
    OWN: tl.constexpr = (PARTS + SPLIT - 1) // SPLIT
    REGISTERS: tl.constexpr = 160 if CONSUMERS == 3 else 232
    dtype: tl.constexpr = tlx.dtype_of(a_desc)
    STAGE_BYTES: tl.constexpr = (BLOCK_M + BLOCK_N + TAIL_N) * BLOCK_K * tlx.size_of(dtype)

    order = ((GROUP_FACTOR, GROUP_SHIFT), (REST_FACTOR, REST_SHIFT))
    rank = tlx.cluster_cta_rank()
    off_m, off_n = tile_offsets(tl.program_id(0) // SPLIT, M, N, order, BLOCK_M, BLOCK_N + TAIL_N, GROUP_M)
    columns = (off_n, off_n + BLOCK_N)
    begin = rank * SHARE
    end = min(begin + SHARE, tl.cdiv(K, BLOCK_K))

    a, b = tile_rings(dtype, CONSUMERS, PART_M, (BLOCK_N, TAIL_N), BLOCK_K, NUM_STAGES, A_COLUMNS, B_COLUMNS)
    b_descs = (b_desc, tail_desc) if TAIL_N > 0 else (b_desc,)
    out = (c_desc, c_ptr, c_row, c_column)
    c_shape: tl.constexpr = (PART_N, PART_M) if C_COLUMNS else (PART_M, PART_N)
    c = tlx.local_alloc(c_shape, type_of_result(out), CONSUMERS * BUFFERS)
    received = tlx.local_alloc((PART_M, PART_N), tl.float32, CONSUMERS * OWN * SPLIT)
    full = tlx.alloc_barriers(NUM_STAGES)
    empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=CONSUMERS)
    complete = tlx.alloc_barriers(CONSUMERS, arrive_count=SPLIT)
    arrived = tlx.alloc_barriers(CONSUMERS) if matrix_desc is not None else None

    # The other CTAs run, and their barriers are ready. The compiler has the tasks wait before they hand on sums.
    tlx.cluster_barrier()
    load_strips(
        a_desc, b_descs, a, b, full, 0, off_m, columns, begin, 0,
        A_COLUMNS, B_COLUMNS, CONSUMERS, 1, PART_M, BLOCK_K, STAGE_BYTES,
    )  # fmt: skip

    with tlx.async_tasks(no_ending_cluster_sync=True):
        with tlx.async_task("default"):  # producer
            stage = 1
            phase = 0
            for k in range(begin + 1, end):
                tlx.barrier_wait(empty[stage], phase ^ 1)
                load_strips(
                    a_desc, b_descs, a, b, full, stage, off_m, columns, k, 0,
                    A_COLUMNS, B_COLUMNS, CONSUMERS, 1, PART_M, BLOCK_K, STAGE_BYTES,
                )  # fmt: skip
                stage, phase = next_place(stage, phase, NUM_STAGES)

        with tlx.async_task(num_warps=4, replicate=CONSUMERS, registers=REGISTERS):  # consumers
            part: tl.constexpr = tlx.async_task_replica_id()
            tlx.barrier_wait(full[0], 0)
            sums = multiplied(operand(a[part], A_COLUMNS), b, 0, (), B_COLUMNS)
            before = 0
            stage = 1
            phase = 0
            for _ in range(begin + 1, end):
                tlx.barrier_wait(full[stage], phase)
                sums = multiplied(operand(a[stage * CONSUMERS + part], A_COLUMNS), b, stage, sums, B_COLUMNS)
                sums = waited(sums, 1)
                tlx.barrier_arrive(empty[before])
                before = stage
                stage, phase = next_place(stage, phase, NUM_STAGES)
            sums = waited(sums, 0)

            FIRST: tl.constexpr = part * OWN * SPLIT
            hand_on(sums[0], received, FIRST, rank, 0, PART_N, SPLIT)
            if TAIL_N > 0:
                hand_on(sums[1], received, FIRST, rank, BLOCK_N // PART_N, PART_N, SPLIT)
            for other in tl.static_range(SPLIT):
                tlx.barrier_arrive(complete[part], 1, other)
            tlx.barrier_wait(complete[part], 0)
            bar = arrived[part] if matrix_desc is not None else None
            for own in tl.static_range(OWN):
                if own * SPLIT + rank < PARTS:
                    store_columns(
                        (added_up(received, FIRST + own * SPLIT, SPLIT),), out, c, part * BUFFERS,
                        off_m + part * PART_M, off_n + (own * SPLIT + rank) * PART_N, M, N,
                        (row0, row1), (column0, column1), matrix_desc, bar, 0,
                        own, PART_N, BUFFERS, C_COLUMNS, TURNED, EPILOGUE,
                    )  # fmt: skip
            tlx.async_descriptor_store_wait(0)
