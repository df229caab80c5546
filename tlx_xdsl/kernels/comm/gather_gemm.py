"""All-gather + GEMM in one kernel for Hopper: `all_gather_gemm`.

Rank r has rows r of A, M of them, and its own B (K, N); it gets all of A times its B: (world * M, N). The kernel is
`gemm.cooperative`, without clusters, with another order of tiles and one more task.

* The copier, one warp of each program, stores the rank's rows of A to all others, piece by piece: the rank before it
  gets them first, then the one before that. So at no time do two ranks store to one, each rank gets first what it
  multiplies first, and no multiprocessor is taken from the product. A signal follows each piece of PIECE rows; what is
  waited for are the pieces of a tile's rows. The copier's threads load and store, since bulk copies to another GPU
  hold up the loads of the product, which the same unit does: with them the product took up to a quarter longer.
* Order of tiles. A rank begins with its own rows, which it reads where they are, and goes on with those of the next
  rank. The producer waits for a tile's rows, and fences, before it loads them by TMA.
* Reuse. Nothing is stored to a rank before it has begun this launch: it then has read what came in the last.

Nothing is rounded on the way; sums are in f32 and rounded once: the bits of a product of the gathered A. Deterministic.
Limits: two consumers or more, M a multiple of BLOCK_M, rows of A side by side. Signals: one for each piece and rank
that gets it, and world - 1 for the beginning. Memory on each rank: world * M * K * 2 bytes, of which the own rows stay
unused.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportOptionalSubscript=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ..gemm.cooperative import load_strips, tile_rings, wait_for_stage
from ..gemm.device import divided, tile_offsets
from ..gemm.epilogue import store_tile
from ..rings import next_place
from .gemm_scatter import copy_elements, multiplied_tile
from .signals import FIRST, after, announce_launch, count_program, counters, launch_number


@tlx_xdsl.jit
def arrivals_of_rows(pads, source, block, blocks):
    """The counter of a block of rows of another rank; it follows those of the launches that have begun."""
    return FIRST + tlx.world_size(pads) + source * blocks + block


@tlx_xdsl.jit
def send_rows(
    a, gathered, pads, rank, launch, M, K, BLOCK_M: tl.constexpr, PIECE: tl.constexpr, BLOCK: tl.constexpr,
    LIMIT: tl.constexpr,
):  # fmt: skip
    """Store this program's pieces of the rank's rows to all others, and signal each."""
    world: tl.constexpr = tlx.world_size(pads)
    for i in tl.static_range(1, world):
        to = after(rank, world - i, world)
        tlx.wait_signal(counters(pads, rank), FIRST + to, launch, limit_ns=LIMIT)
        target = tlx.peer(gathered, to) + (rank * M).to(tl.int64) * K
        for piece in range(tl.program_id(0), M // PIECE, tl.num_programs(0)):
            at = (piece * PIECE).to(tl.int64) * K
            copy_elements(a + at, target + at, PIECE * K, BLOCK)
            counter = arrivals_of_rows(pads, rank, piece // (BLOCK_M // PIECE), M // BLOCK_M)
            tlx.signal(counters(pads, to), counter)


@tlx_xdsl.jit
def source_and_tile(item, rank, owned, by_owner, world: tl.constexpr):
    """The rank that has the rows of A of a program's item, and the tile's number among those of its rows."""
    at = tl.program_id(0) + item * tl.num_programs(0)
    owners = divided(at, by_owner)
    return after(rank, owners, world), at - owners * owned


@tlx_xdsl.jit
def multiply_tiles(
    a, b, full, empty, out, c, items, rank, owned, by_owner, order, M, N, num_k, part: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, NUM_STAGES: tl.constexpr, PART_N: tl.constexpr,
    BUFFERS: tl.constexpr, GROUP_M: tl.constexpr, B_COLUMNS: tl.constexpr, CONSUMERS: tl.constexpr,
    world: tl.constexpr,
):  # fmt: skip
    """A consumer: multiply its part of each tile of the program, and store that."""
    stage = 0
    phase = 0
    for item in range(items):
        source, tile = source_and_tile(item, rank, owned, by_owner, world)
        off_m, off_n = tile_offsets(tile, M, N, order, BLOCK_M, BLOCK_N, GROUP_M)
        sums, stage, phase = multiplied_tile(
            a, b, full, empty, stage, phase, num_k, part, CONSUMERS, NUM_STAGES, False, B_COLUMNS
        )
        store_tile(
            sums, out, c, part, source * M + off_m + part * (BLOCK_M // CONSUMERS), off_n, M, N,
            (None, None), (None, None), None, None, 0, PART_N, BUFFERS, False, False, False, None,
        )  # fmt: skip
    tlx.async_descriptor_store_wait(0)


@tlx_xdsl.jit
def all_gather_gemm(
    a, a_desc, gathered, gathered_desc, b_desc, c_desc, pads, M, N, K,
    GROUP_FACTOR, GROUP_SHIFT, REST_FACTOR, REST_SHIFT, OWNER_FACTOR, OWNER_SHIFT,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, NUM_STAGES: tl.constexpr,
    PART_N: tl.constexpr, BUFFERS: tl.constexpr, GROUP_M: tl.constexpr, B_COLUMNS: tl.constexpr,
    CONSUMERS: tl.constexpr, PIECE: tl.constexpr, COPIED: tl.constexpr, LIMIT: tl.constexpr = None,
):  # fmt: skip
    """C = the rows of A of all ranks, M each, times B; see the file's top.

    `a` are this rank's rows, `gathered` has room for all, (world * M, K), and `gathered_desc` is of this rank's memory
    there. OWNER_FACTOR and OWNER_SHIFT divide by the tiles of the rows of one rank. The copier has
    COPIED elements in flight, which divide a piece.
    """
    world: tl.constexpr = tlx.world_size(pads)
    PART_M: tl.constexpr = BLOCK_M // CONSUMERS
    tl.static_assert(CONSUMERS >= 2, "the first consumer is the default task, and others have a task of their own")
    dtype: tl.constexpr = tlx.dtype_of(a_desc)
    STAGE_BYTES: tl.constexpr = (BLOCK_M + BLOCK_N) * BLOCK_K * tlx.size_of(dtype)

    rank = tlx.rank(pads)
    launch = launch_number(pads)
    announce_launch(pads, rank, launch)

    order = ((GROUP_FACTOR, GROUP_SHIFT), (REST_FACTOR, REST_SHIFT))
    by_owner = (OWNER_FACTOR, OWNER_SHIFT)
    owned = M // BLOCK_M * tl.cdiv(N, BLOCK_N)
    items = tl.cdiv(owned * world - tl.program_id(0), tl.num_programs(0))
    num_k = tl.cdiv(K, BLOCK_K)

    tiles_a, b = tile_rings(dtype, CONSUMERS, PART_M, (BLOCK_N, 0), BLOCK_K, NUM_STAGES, False, B_COLUMNS)
    c = tlx.local_alloc((PART_M, PART_N), tlx.dtype_of(c_desc), CONSUMERS * BUFFERS)
    full = tlx.alloc_barriers(NUM_STAGES)
    empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=CONSUMERS)

    out = (c_desc, None, 0, 0)
    # Two consumers have the registers of a thread block of three warp groups, of which the last is for the other tasks.
    with tlx.async_tasks(no_ending_cluster_sync=True):
        with tlx.async_task("default"):  # the first consumer
            multiply_tiles(
                tiles_a, b, full, empty, out, c, items, rank, owned, by_owner, order, M, N, num_k, 0,
                BLOCK_M, BLOCK_N, NUM_STAGES, PART_N, BUFFERS, GROUP_M, B_COLUMNS, CONSUMERS, world,
            )  # fmt: skip

        with tlx.async_task(num_warps=4, replicate=CONSUMERS - 1, registers=232):  # the others
            part: tl.constexpr = tlx.async_task_replica_id() + 1
            multiply_tiles(
                tiles_a, b, full, empty, out, c, items, rank, owned, by_owner, order, M, N, num_k, part,
                BLOCK_M, BLOCK_N, NUM_STAGES, PART_N, BUFFERS, GROUP_M, B_COLUMNS, CONSUMERS, world,
            )  # fmt: skip

        with tlx.async_task(num_warps=1, registers=40):  # producer
            stage = 0
            phase = 0
            for item in range(items):
                source, tile = source_and_tile(item, rank, owned, by_owner, world)
                off_m, off_n = tile_offsets(tile, M, N, order, BLOCK_M, BLOCK_N, GROUP_M)
                if source != rank:
                    counter = arrivals_of_rows(pads, source, off_m // BLOCK_M, M // BLOCK_M)
                    tlx.wait_signal(counters(pads, rank), counter, launch * (BLOCK_M // PIECE), limit_ns=LIMIT)
                    tlx.fence("async_global")
                for k in range(num_k):
                    wait_for_stage(empty, None, stage, phase, 0, 1)
                    if source == rank:
                        load_strips(
                            a_desc, (b_desc,), tiles_a, b, full, stage, off_m, (off_n,), k, 0,
                            False, B_COLUMNS, CONSUMERS, 1, PART_M, BLOCK_K, STAGE_BYTES,
                        )  # fmt: skip
                    else:
                        load_strips(
                            gathered_desc, (b_desc,), tiles_a, b, full, stage, source * M + off_m, (off_n,), k, 0,
                            False, B_COLUMNS, CONSUMERS, 1, PART_M, BLOCK_K, STAGE_BYTES,
                        )  # fmt: skip
                    stage, phase = next_place(stage, phase, NUM_STAGES)

        with tlx.async_task(num_warps=1, registers=40):  # copier
            send_rows(a, gathered, pads, rank, launch, M, K, BLOCK_M, PIECE, COPIED, LIMIT)
            count_program(pads, launch)
