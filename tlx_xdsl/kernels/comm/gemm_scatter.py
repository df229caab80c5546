"""GEMM + reduce-scatter in one kernel for Hopper: `gemm_reduce_scatter`.

Rank r has A (M, K / world) and B (K / world, N), and gets rows r of the sum over ranks of A @ B: M / world of them. The
kernel is `gemm.cooperative`, without clusters, with another order of tiles and another epilogue.

* Order. A rank begins with the tiles of the next rank and ends with its own. So what it sends is under way while it
  multiplies, no two ranks send to one at a time, and what it needs for its own tiles was sent a round of tiles ago.
* Tiles of others. The epilogue rounds the f32 sums to the type of A and stores them to memory of its own GPU, where
  each program has room for a few tiles (`outgoing`). The copier, one or two warps of each program, stores them to the
  owner, and signals. Nothing else waits for the way to the other GPU: all programs end a tile at about the same time,
  and what they send takes nearly as long as the next tile. TMA would have the product's loads wait for such stores.
* Tiles of its own. A consumer waits for the signals of this tile and begins to load the others' parts, then multiplies,
  and adds in f32 in the order of ranks; its own sums, which are still in registers, are not rounded. The result is
  rounded once, to its type. The same on each run: deterministic. With a LIMIT of waiting, for which consumers lack
  registers, the copier waits and begins to load, when it has sent what is before.
* `staging` and `outgoing` are no matrices, but parts of a tile, as they lie in shared memory: [source][tile][consumer].
* Reuse. Nothing is stored to a rank before it has begun this launch (`began`): it then has read what came in the last.

Edges. An owner's last tile may have rows of the next owner; they are multiplied and not stored. N may be any that TMA
can read and write. Signals: one for each tile of another rank, and world - 1 for the beginning. Memory on each rank:
world * tiles of an owner * BLOCK_M * BLOCK_N * 2 bytes, so M * N * 2 but for edges, and SLOTS tiles for each program. A
tile has a multiple of what a copier has in flight.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportOptionalSubscript=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ..gemm.cooperative import load_strips, multiplied, released, tile_rings, wait_for_stage, waited
from ..gemm.device import divided, operand, tile_offsets
from ..gemm.epilogue import halves
from ..rings import next_place
from .signals import FIRST, announce_launch, count_program, counters, launch_number

COPIED = tl.constexpr(1024)
"""Elements that a warp of a copier has in flight."""


@tlx_xdsl.jit
def arrivals(pads, tile):
    """The counter of a tile, which others signal to its owner; it follows those of `began`."""
    return FIRST + tlx.world_size(pads) + tile


@tlx_xdsl.jit
def owner_and_tile(item, rank, owned, by_owner, world: tl.constexpr):
    """The rank that owns the tile of a program's item, and the tile's number among those of its owner."""
    at = tl.program_id(0) + item * tl.num_programs(0)
    owners = divided(at, by_owner)
    owner = rank + 1 + owners
    return tl.where(owner >= world, owner - world, owner), at - owners * owned


@tlx_xdsl.jit
def send_parts(sums, target, wire, first, NUMBER: tl.constexpr, PART_N: tl.constexpr, BUFFERS: tl.constexpr):
    """Store sums to `target`, in parts of PART_N columns, NUMBER the first, through the BUFFERS from `first` on."""
    COLUMNS: tl.constexpr = sums[0].shape[1]
    if COLUMNS > PART_N:
        lefts, rights = halves(sums)
        send_parts(lefts, target, wire, first, NUMBER, PART_N, BUFFERS)
        send_parts(rights, target, wire, first, NUMBER + COLUMNS // 2 // PART_N, PART_N, BUFFERS)
    else:
        ELEMENTS: tl.constexpr = sums[0].shape[0] * PART_N
        if NUMBER >= BUFFERS:
            tlx.async_descriptor_store_wait(BUFFERS - 1)
        buffer = wire[first + NUMBER % BUFFERS]
        tlx.local_store(buffer, sums[0].to(tlx.dtype_of(wire)))
        tlx.fence_async_shared()
        tlx.async_store(target + NUMBER * ELEMENTS, buffer, ELEMENTS * tlx.size_of(tlx.dtype_of(wire)))


@tlx_xdsl.jit
def load_part(place, wire, came, first, item, SOURCES: tl.constexpr, BUFFERS: tl.constexpr):
    """Start load `item` of a tile: part item // SOURCES of other rank item % SOURCES, to its place in the ring."""
    base, rank, stride = place
    ELEMENTS: tl.constexpr = wire.shape[0] * wire.shape[1]
    BYTES: tl.constexpr = ELEMENTS * tlx.size_of(tlx.dtype_of(wire))
    other = item % SOURCES
    source = tl.where(rank <= other, other + 1, other)
    index = first + item % BUFFERS
    tlx.barrier_expect_bytes(came[index], BYTES)
    pointer = base + source.to(tl.int64) * stride + item // SOURCES * ELEMENTS
    tlx.async_load(pointer, wire[index], bulk=True, bulk_size=BYTES, barrier=came[index])


@tlx_xdsl.jit
def add_parts(
    sums, place, wire, came, first, turn, out_desc, c, row, column,
    NUMBER: tl.constexpr, ITEMS: tl.constexpr, PART_N: tl.constexpr, SOURCES: tl.constexpr, BUFFERS: tl.constexpr,
):  # fmt: skip
    """Add to sums what others have sent, in the order of ranks, and store that: parts NUMBER and so on of a tile."""
    COLUMNS: tl.constexpr = sums[0].shape[1]
    if COLUMNS > PART_N:
        HALF: tl.constexpr = COLUMNS // 2
        lefts, rights = halves(sums)
        add_parts(
            lefts, place, wire, came, first, turn, out_desc, c, row, column,
            NUMBER, ITEMS, PART_N, SOURCES, BUFFERS,
        )  # fmt: skip
        add_parts(
            rights, place, wire, came, first, turn, out_desc, c, row, column + HALF,
            NUMBER + HALF // PART_N, ITEMS, PART_N, SOURCES, BUFFERS,
        )  # fmt: skip
    else:
        rank = place[1]
        own = sums[0]
        total = tl.where(rank == 0, own, 0.0)
        for other in range(SOURCES):
            item = NUMBER * SOURCES + other
            index = first + item % BUFFERS
            tlx.barrier_wait(came[index], (turn + item // BUFFERS) & 1)
            total += tlx.local_load(wire[index]).to(tl.float32)
            total = tl.where(rank == other + 1, total + own, total)
            if item + BUFFERS < ITEMS:
                # All threads have read the buffer, so it can be loaded again.
                tl.debug_barrier()
                load_part(place, wire, came, first, item + BUFFERS, SOURCES, BUFFERS)
        tlx.async_descriptor_store_wait(0)
        tlx.local_store(c, total.to(tlx.dtype_of(c)))
        tlx.fence_async_shared()
        tlx.async_descriptor_store(out_desc, c, [row, column])


@tlx_xdsl.jit
def expect_parts(
    pads, place, wire, came, first, tile, launch, BUFFERS: tl.constexpr
):  # fmt: skip
    """Wait until the others have sent one of the rank's own tiles, and start to load to all buffers of a consumer."""
    SOURCES: tl.constexpr = tlx.world_size(pads) - 1
    tlx.wait_signal(counters(pads, place[1]), arrivals(pads, tile), launch * SOURCES)
    tlx.fence("async_global")
    for load in tl.static_range(BUFFERS):
        load_part(place, wire, came, first, load, SOURCES, BUFFERS)


@tlx_xdsl.jit
def multiplied_tile(
    a, b, full, empty, stage, phase, num_k, part: tl.constexpr, CONSUMERS: tl.constexpr, NUM_STAGES: tl.constexpr,
    A_COLUMNS: tl.constexpr, B_COLUMNS: tl.constexpr,
):  # fmt: skip
    """A consumer's sums of a tile of num_k steps; the stages that it has read are given back."""
    # The first product overwrites the sums: no zeros, and no condition in the loop.
    tlx.barrier_wait(full[stage], phase)
    sums = multiplied(operand(a[stage * CONSUMERS + part], A_COLUMNS), b, stage, (), B_COLUMNS)
    before = stage
    stage, phase = next_place(stage, phase, NUM_STAGES)
    for _ in range(1, num_k):
        tlx.barrier_wait(full[stage], phase)
        sums = multiplied(operand(a[stage * CONSUMERS + part], A_COLUMNS), b, stage, sums, B_COLUMNS)
        # One step's products stay in flight; those before are done, so their stage can be refilled.
        sums = waited(sums, 1)
        released(empty, None, before, 0, 1)
        before = stage
        stage, phase = next_place(stage, phase, NUM_STAGES)
    sums = waited(sums, 0)
    released(empty, None, before, 0, 1)
    return sums, stage, phase


@tlx_xdsl.jit
def hand_over(ready, slot):
    """Give a tile to the copier, if one was stored: `slot` is where it lies, or -1."""
    if slot >= 0:
        tlx.async_descriptor_store_wait(0, read=False)
        tlx.barrier_arrive(ready[slot])


@tlx_xdsl.jit
def outgoing_tile(outgoing, slot, TILE: tl.constexpr, SLOTS: tl.constexpr):
    """The first of the TILE elements of a slot of this program."""
    return outgoing + (tl.program_id(0) * SLOTS + slot).to(tl.int64) * TILE


@tlx_xdsl.jit
def copy_elements(source, target, count, BLOCK: tl.constexpr):
    """Copy so many elements, side by side, which are blocks of BLOCK."""
    lanes = tl.arange(0, BLOCK)
    for _ in range(0, count, BLOCK):
        tl.store(target + lanes, tl.load(source + lanes))
        source += BLOCK
        target += BLOCK


@tlx_xdsl.jit
def ask_for_parts(ready, free, item, SLOTS: tl.constexpr):
    """Give a consumer's buffers, from which nothing leaves, to the copier, for what others have sent of an own tile."""
    slot, phase = tlx.get_bufidx_phase(item, SLOTS)
    tlx.barrier_wait(free[slot], phase ^ 1)
    tlx.barrier_arrive(ready[slot])


@tlx_xdsl.jit
def fetch_tile(
    staging, pads, rank, number, tile, owned, wire, came, first, TILE: tl.constexpr, PARTS: tl.constexpr,
    BUFFERS: tl.constexpr, LIMIT: tl.constexpr,
):  # fmt: skip
    """Wait until the others have sent an own tile, and start to load to all buffers of the PARTS consumers it has."""
    SOURCES: tl.constexpr = tlx.world_size(pads) - 1
    tlx.wait_signal(counters(pads, rank), arrivals(pads, tile), number * SOURCES, limit_ns=LIMIT)
    tlx.fence("async_global")
    stride = owned.to(tl.int64) * TILE
    for part in tl.static_range(PARTS):
        at = tile.to(tl.int64) * TILE + part * (TILE // PARTS)
        place = (tlx.peer(staging, rank) + at, rank, stride)
        for load in tl.static_range(BUFFERS):
            load_part(place, wire, came, first + part * BUFFERS, load, SOURCES, BUFFERS)


@tlx_xdsl.jit
def serve_tiles(
    outgoing, staging, pads, rank, number, items, owned, by_owner, wire, came, ready, free, TILE: tl.constexpr,
    SLOTS: tl.constexpr, BUFFERS: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr, LIMIT: tl.constexpr,
):  # fmt: skip
    """The copier: store each tile of others, of TILE elements, to its owner, and signal it; with LIMIT, load own ones.

    A tile has PARTS consumers, or two of them take turns. They say when a tile may be taken, or loaded to.
    """
    world: tl.constexpr = tlx.world_size(pads)
    tl.static_assert(TILE % BLOCK == 0, "a tile is copied in whole blocks")
    known = rank
    for item in range(items):
        owner, tile = owner_and_tile(item, rank, owned, by_owner, world)
        slot, phase = tlx.get_bufidx_phase(item, SLOTS)
        if owner == rank:
            if LIMIT is not None:
                tlx.barrier_wait(ready[slot], phase)
                first = 0 if PARTS > 1 else item % 2 * BUFFERS
                fetch_tile(
                    staging, pads, rank, number, tile, owned, wire, came, first, TILE, PARTS, BUFFERS, LIMIT
                )  # fmt: skip
                tlx.barrier_arrive(free[slot])
        else:
            if owner != known:
                tlx.wait_signal(counters(pads, rank), FIRST + owner, number, limit_ns=LIMIT)
            known = owner
            tlx.barrier_wait(ready[slot], phase)
            source = outgoing_tile(outgoing, slot, TILE, SLOTS)
            copy_elements(source, tlx.peer(staging, owner) + (rank * owned + tile).to(tl.int64) * TILE, TILE, BLOCK)
            tlx.barrier_arrive(free[slot])
            tlx.signal(counters(pads, owner), arrivals(pads, tile))


@tlx_xdsl.jit
def scatter_tiles(
    a, b, full, empty, c, wire, came, ready, free, out_desc, outgoing, staging, pads, items, rank, number, owned,
    by_owner, order, M, N, num_k, part: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, NUM_STAGES: tl.constexpr, PART_N: tl.constexpr,
    BUFFERS: tl.constexpr, GROUP_M: tl.constexpr, A_COLUMNS: tl.constexpr, B_COLUMNS: tl.constexpr,
    CONSUMERS: tl.constexpr, SLOTS: tl.constexpr, LIMIT: tl.constexpr,
):  # fmt: skip
    """A consumer: multiply its part of each tile of the program; hand over what is another rank's, and sum the rest."""
    world: tl.constexpr = tlx.world_size(pads)
    SOURCES: tl.constexpr = world - 1
    PART_M: tl.constexpr = BLOCK_M // CONSUMERS
    ITEMS: tl.constexpr = BLOCK_N // PART_N * SOURCES
    first: tl.constexpr = part * BUFFERS
    stage = 0
    phase = 0
    turn = 0
    # Where the tile lies that is still to be handed over.
    stored = -1
    for item in range(items):
        owner, tile = owner_and_tile(item, rank, owned, by_owner, world)
        off_m, off_n = tile_offsets(tile, M, N, order, BLOCK_M, BLOCK_N, GROUP_M)
        stride = owned.to(tl.int64) * (BLOCK_M * BLOCK_N)
        at = (tile * CONSUMERS + part).to(tl.int64) * (PART_M * BLOCK_N)
        place = (tlx.peer(staging, rank) + at, rank, stride)
        if owner == rank:
            # What the others have sent comes while this tile is multiplied.
            hand_over(ready, stored)
            stored = -1
            if LIMIT is None:
                expect_parts(pads, place, wire, came, first, tile, number, BUFFERS)
            else:
                ask_for_parts(ready, free, item, SLOTS)
        sums, stage, phase = multiplied_tile(
            a, b, full, empty, stage, phase, num_k, part, CONSUMERS, NUM_STAGES, A_COLUMNS, B_COLUMNS
        )
        if owner == rank:
            add_parts(
                sums, place, wire, came, first, turn, out_desc, c[part], off_m + part * PART_M, off_n,
                0, ITEMS, PART_N, SOURCES, BUFFERS,
            )  # fmt: skip
            # All threads have read all buffers.
            tl.debug_barrier()
            turn += ITEMS // BUFFERS
        else:
            hand_over(ready, stored)
            stored, slot_phase = tlx.get_bufidx_phase(item, SLOTS)
            tlx.barrier_wait(free[stored], slot_phase ^ 1)
            target = outgoing_tile(outgoing, stored, BLOCK_M * BLOCK_N, SLOTS)
            send_parts(sums, target + part * (PART_M * BLOCK_N), wire, first, 0, PART_N, BUFFERS)
    hand_over(ready, stored)
    tlx.async_descriptor_store_wait(0)


@tlx_xdsl.jit
def gemm_reduce_scatter(
    a_desc, b_desc, out_desc, outgoing, staging, pads, M, N, K,
    GROUP_FACTOR, GROUP_SHIFT, REST_FACTOR, REST_SHIFT, OWNER_FACTOR, OWNER_SHIFT,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, NUM_STAGES: tl.constexpr,
    PART_N: tl.constexpr, BUFFERS: tl.constexpr, GROUP_M: tl.constexpr, A_COLUMNS: tl.constexpr,
    B_COLUMNS: tl.constexpr, CONSUMERS: tl.constexpr, SLOTS: tl.constexpr, COPY_WARPS: tl.constexpr,
    LIMIT: tl.constexpr = None,
):  # fmt: skip
    """Store rows r, on rank r, of the sum over ranks of A @ B. M is the number of rows of one rank; see the file's top.

    OWNER_FACTOR and OWNER_SHIFT divide by the tiles of an owner.
    """
    world: tl.constexpr = tlx.world_size(pads)
    PART_M: tl.constexpr = BLOCK_M // CONSUMERS
    tl.static_assert(CONSUMERS >= 2, "the first consumer is the default task, and others have a task of their own")
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

    a, b = tile_rings(dtype, CONSUMERS, PART_M, (BLOCK_N, 0), BLOCK_K, NUM_STAGES, A_COLUMNS, B_COLUMNS)
    c = tlx.local_alloc((PART_M, PART_N), tlx.dtype_of(out_desc), CONSUMERS)
    # What is sent and what is received has one layout, for it is the same bytes.
    wire = tlx.local_alloc((PART_M, PART_N), dtype, CONSUMERS * BUFFERS)
    full = tlx.alloc_barriers(NUM_STAGES)
    empty = tlx.alloc_barriers(NUM_STAGES, arrive_count=CONSUMERS)
    came = tlx.alloc_barriers(CONSUMERS * BUFFERS)
    ready = tlx.alloc_barriers(SLOTS, arrive_count=CONSUMERS)
    free = tlx.alloc_barriers(SLOTS)

    with tlx.async_tasks(no_ending_cluster_sync=True):
        with tlx.async_task("default"):  # the first consumer
            scatter_tiles(
                a, b, full, empty, c, wire, came, ready, free, out_desc, outgoing, staging, pads, items, rank, number,
                owned, by_owner, order, M, N, num_k, 0,
                BLOCK_M, BLOCK_N, NUM_STAGES, PART_N, BUFFERS, GROUP_M, A_COLUMNS, B_COLUMNS, CONSUMERS, SLOTS, LIMIT,
            )  # fmt: skip

        with tlx.async_task(num_warps=4, replicate=CONSUMERS - 1, registers=232):  # the others
            part: tl.constexpr = tlx.async_task_replica_id() + 1
            scatter_tiles(
                a, b, full, empty, c, wire, came, ready, free, out_desc, outgoing, staging, pads, items, rank, number,
                owned, by_owner, order, M, N, num_k, part,
                BLOCK_M, BLOCK_N, NUM_STAGES, PART_N, BUFFERS, GROUP_M, A_COLUMNS, B_COLUMNS, CONSUMERS, SLOTS, LIMIT,
            )  # fmt: skip

        with tlx.async_task(num_warps=1, registers=40):  # producer
            stage = 0
            phase = 0
            for item in range(items):
                owner, tile = owner_and_tile(item, rank, owned, by_owner, world)
                off_m, off_n = tile_offsets(tile, M, N, order, BLOCK_M, BLOCK_N, GROUP_M)
                for k in range(num_k):
                    wait_for_stage(empty, None, stage, phase, 0, 1)
                    load_strips(
                        a_desc, (b_desc,), a, b, full, stage, owner * M + off_m, (off_n,), k, 0,
                        A_COLUMNS, B_COLUMNS, CONSUMERS, 1, PART_M, BLOCK_K, STAGE_BYTES,
                    )  # fmt: skip
                    stage, phase = next_place(stage, phase, NUM_STAGES)
            count_program(pads, number)

        with tlx.async_task(num_warps=COPY_WARPS, registers=40):  # copier
            serve_tiles(
                outgoing, staging, pads, rank, number, items, owned, by_owner, wire, came, ready, free,
                BLOCK_M * BLOCK_N, SLOTS, BUFFERS, CONSUMERS, COPY_WARPS * COPIED, LIMIT,
            )  # fmt: skip
