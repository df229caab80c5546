"""GEMM + reduce-scatter with two consumers that take turns at the tensor cores: `gemm_reduce_scatter_pingpong`.

What it does, and the order of its tiles, are those of `gemm_scatter`; each consumer has tiles of its own, as in
`gemm.pingpong`. One sends its tile, or adds what the others have sent, while the other multiplies. Pays where K, of
which each rank has a part, is short.

Signals: one for each tile of another rank, and world - 1 for the beginning.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportOptionalSubscript=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ..gemm.device import multiply_steps, tile_offsets
from ..gemm.pingpong import load_step
from ..rings import TURN_THREADS, next_place
from .gemm_scatter import (
    COPIED,
    add_parts,
    ask_for_parts,
    expect_parts,
    hand_over,
    outgoing_tile,
    owner_and_tile,
    send_parts,
    serve_tiles,
)
from .signals import announce_launch, count_program, launch_number


@tlx_xdsl.jit
def scatter_in_turn(
    a, b, full, empty, c, wire, came, ready, free, out_desc, outgoing, staging, pads, items, rank, number, owned,
    by_owner, order, M, N, num_k, consumer: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, NUM_STAGES: tl.constexpr, PART_N: tl.constexpr,
    BUFFERS: tl.constexpr, GROUP_M: tl.constexpr, A_COLUMNS: tl.constexpr, B_COLUMNS: tl.constexpr,
    SLOTS: tl.constexpr, LIMIT: tl.constexpr,
):  # fmt: skip
    """A consumer: multiply every second tile of the program; hand over what is another rank's, and sum the rest."""
    world: tl.constexpr = tlx.world_size(pads)
    SOURCES: tl.constexpr = world - 1
    ITEMS: tl.constexpr = BLOCK_N // PART_N * SOURCES
    first: tl.constexpr = consumer * BUFFERS
    turn = 0
    # Where the tile lies that is still to be handed over.
    stored = -1
    for item in range(consumer, items, 2):
        owner, tile = owner_and_tile(item, rank, owned, by_owner, world)
        off_m, off_n = tile_offsets(tile, M, N, order, BLOCK_M, BLOCK_N, GROUP_M)
        # The other consumer's steps lie between this one's tiles.
        stage, phase = tlx.get_bufidx_phase(item * num_k, NUM_STAGES)
        stride = owned.to(tl.int64) * (BLOCK_M * BLOCK_N)
        place = (tlx.peer(staging, rank) + tile.to(tl.int64) * (BLOCK_M * BLOCK_N), rank, stride)
        if owner == rank:
            # What the others have sent comes while the other consumer multiplies.
            hand_over(ready, stored)
            stored = -1
            if LIMIT is None:
                expect_parts(pads, place, wire, came, first, tile, number, BUFFERS)
            else:
                ask_for_parts(ready, free, item, SLOTS)
        if item > 0:
            tlx.named_barrier_wait(consumer, TURN_THREADS)
        sums, last, _, _ = multiply_steps(
            (a, b), (full, empty), stage, phase, num_k, NUM_STAGES, A_COLUMNS, B_COLUMNS
        )  # fmt: skip
        if item + 1 < items:
            tlx.named_barrier_arrive(1 - consumer, TURN_THREADS)
        sums = tlx.async_dot_wait(0, sums)
        tlx.barrier_arrive(empty[last])
        if owner == rank:
            add_parts(
                (sums,), place, wire, came, first, turn, out_desc, c[consumer], off_m, off_n,
                0, ITEMS, PART_N, SOURCES, BUFFERS,
            )  # fmt: skip
            # All threads have read all buffers.
            tl.debug_barrier()
            turn += ITEMS // BUFFERS
        else:
            hand_over(ready, stored)
            stored, phase = tlx.get_bufidx_phase(item, SLOTS)
            tlx.barrier_wait(free[stored], phase ^ 1)
            target = outgoing_tile(outgoing, stored, BLOCK_M * BLOCK_N, SLOTS)
            send_parts((sums,), target, wire, first, 0, PART_N, BUFFERS)
    hand_over(ready, stored)
    tlx.async_descriptor_store_wait(0)


@tlx_xdsl.jit
def gemm_reduce_scatter_pingpong(
    a_desc, b_desc, out_desc, outgoing, staging, pads, M, N, K,
    GROUP_FACTOR, GROUP_SHIFT, REST_FACTOR, REST_SHIFT, OWNER_FACTOR, OWNER_SHIFT,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, NUM_STAGES: tl.constexpr,
    PART_N: tl.constexpr, BUFFERS: tl.constexpr, GROUP_M: tl.constexpr, A_COLUMNS: tl.constexpr,
    B_COLUMNS: tl.constexpr, SLOTS: tl.constexpr, COPY_WARPS: tl.constexpr, LIMIT: tl.constexpr = None,
):  # fmt: skip
    """Store rows r, on rank r, of the sum over ranks of A @ B. M is the number of rows of one rank.

    OWNER_FACTOR and OWNER_SHIFT divide by the tiles of an owner.
    """
    world: tl.constexpr = tlx.world_size(pads)
    tl.static_assert(BLOCK_N // PART_N % BUFFERS == 0, "each buffer is loaded to equally often for a tile")
    dtype: tl.constexpr = tlx.dtype_of(a_desc)
    STAGE_BYTES: tl.constexpr = (BLOCK_M + BLOCK_N) * BLOCK_K * tlx.size_of(dtype)

    rank = tlx.rank(pads)
    number = launch_number(pads)
    announce_launch(pads, rank, number)

    order = ((GROUP_FACTOR, GROUP_SHIFT), (REST_FACTOR, REST_SHIFT))
    by_owner = (OWNER_FACTOR, OWNER_SHIFT)
    owned = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    items = tl.cdiv(owned * world - tl.program_id(0), tl.num_programs(0))
    num_k = tl.cdiv(K, BLOCK_K)

    a = tlx.local_alloc((BLOCK_K, BLOCK_M) if A_COLUMNS else (BLOCK_M, BLOCK_K), dtype, NUM_STAGES)
    b = tlx.local_alloc((BLOCK_N, BLOCK_K) if B_COLUMNS else (BLOCK_K, BLOCK_N), dtype, NUM_STAGES)
    c = tlx.local_alloc((BLOCK_M, PART_N), tlx.dtype_of(out_desc), 2)
    wire = tlx.local_alloc((BLOCK_M, PART_N), dtype, 2 * BUFFERS)
    full = tlx.alloc_barriers(NUM_STAGES)
    empty = tlx.alloc_barriers(NUM_STAGES)
    came = tlx.alloc_barriers(2 * BUFFERS)
    ready = tlx.alloc_barriers(SLOTS)
    free = tlx.alloc_barriers(SLOTS)

    with tlx.async_tasks(no_ending_cluster_sync=True):
        with tlx.async_task("default"):  # the consumer that begins
            scatter_in_turn(
                a, b, full, empty, c, wire, came, ready, free, out_desc, outgoing, staging, pads, items, rank, number,
                owned, by_owner, order, M, N, num_k, 0,
                BLOCK_M, BLOCK_N, NUM_STAGES, PART_N, BUFFERS, GROUP_M, A_COLUMNS, B_COLUMNS, SLOTS, LIMIT,
            )  # fmt: skip

        with tlx.async_task(num_warps=4, registers=232):  # the other one
            scatter_in_turn(
                a, b, full, empty, c, wire, came, ready, free, out_desc, outgoing, staging, pads, items, rank, number,
                owned, by_owner, order, M, N, num_k, 1,
                BLOCK_M, BLOCK_N, NUM_STAGES, PART_N, BUFFERS, GROUP_M, A_COLUMNS, B_COLUMNS, SLOTS, LIMIT,
            )  # fmt: skip

        with tlx.async_task(num_warps=1, registers=40):  # producer
            stage = 0
            phase = 0
            for item in range(items):
                owner, tile = owner_and_tile(item, rank, owned, by_owner, world)
                off_m, off_n = tile_offsets(tile, M, N, order, BLOCK_M, BLOCK_N, GROUP_M)
                for k in range(num_k):
                    tlx.barrier_wait(empty[stage], phase ^ 1)
                    load_step(
                        a_desc, b_desc, a, b, full, stage, owner * M + off_m, off_n, k * BLOCK_K, A_COLUMNS,
                        B_COLUMNS, STAGE_BYTES,
                    )  # fmt: skip
                    stage, phase = next_place(stage, phase, NUM_STAGES)
            count_program(pads, number)

        with tlx.async_task(num_warps=COPY_WARPS, registers=40):  # copier
            serve_tiles(
                outgoing, staging, pads, rank, number, items, owned, by_owner, wire, came, ready, free,
                BLOCK_M * BLOCK_N, SLOTS, BUFFERS, 1, COPY_WARPS * COPIED, LIMIT,
            )  # fmt: skip
