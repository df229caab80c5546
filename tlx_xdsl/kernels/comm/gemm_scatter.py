"""GEMM + reduce-scatter in one kernel for Hopper: `gemm_reduce_scatter`.

Rank r has A (M, K / world) and B (K / world, N), and gets rows r of the sum over ranks of A @ B: M / world of them. The
kernel is `gemm.persistent`, without clusters, with another order of tiles and another epilogue.

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

In turn. Where a tile is one consumer's (`pingpong`), each has every second tile, as in `gemm.persistent`: one sends its
tile, or adds what the others have sent, while the other multiplies. Pays where K, of which each rank has a part, is
short.

Edges. An owner's last tile may have rows of the next owner; they are multiplied and not stored. N may be any that TMA
can read and write. Signals: one for each tile of another rank, and world - 1 for the beginning. Memory on each rank:
world * tiles of an owner * BLOCK_M * BLOCK_N * 2 bytes, so M * N * 2 but for edges, and SLOTS tiles for each program. A
tile has a multiple of what a copier has in flight.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportOptionalSubscript=false

from typing import Any, NamedTuple

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ..gemm.device import by_parts, divided, load_steps, multiply_item, ring_of, tile_offsets, tile_rings
from .signals import FIRST, announce_launch, count_program, counters, launch_number

COPIED = tl.constexpr(1024)
"""Elements that a warp of a copier has in flight."""

SLOTS = tl.constexpr(4)
"""Tiles for other ranks that a program keeps until they have been sent."""


class Exchange(NamedTuple):
    """Counters, memory, buffers and barriers by which parts of tiles go to their owners, of launch `number`.

    `wire` are buffers of each consumer for what it sends and receives; loads to one complete on its barrier `came`.
    `ready` and `free` are of the slots: a tile may be taken (or loaded), and has been. The owner of a tile follows from
    the number of tiles of one rank, `owned`, of which `by_owner` is the divisor. Waits have a limit of `limit` ns, or
    None.
    """

    pads: Any
    rank: Any
    number: Any
    staging: Any
    outgoing: Any
    wire: Any
    came: Any
    ready: Any
    free: Any
    owned: Any
    by_owner: Any
    form: Any
    limit: Any


@tlx_xdsl.jit
def arrivals(pads, tile):
    """The counter of a tile, which others signal to its owner; it follows those of `began`."""
    return FIRST + tlx.world_size(pads) + tile


@tlx_xdsl.jit
def owner_and_tile(item, exchange):
    """The rank that owns the tile of a program's item, and the tile's number among those of its owner."""
    world: tl.constexpr = tlx.world_size(exchange.pads)
    at = tl.program_id(0) + item * tl.num_programs(0)
    owners = divided(at, exchange.by_owner)
    owner = exchange.rank + 1 + owners
    return tl.where(owner >= world, owner - world, owner), at - owners * exchange.owned


@tlx_xdsl.jit
def send_part(sums, _, state, consumer: tl.constexpr, NUMBER: tl.constexpr):
    """Store part NUMBER of a tile's sums to `target`, through the consumer's buffers."""
    target, exchange = state
    BUFFERS: tl.constexpr = exchange.form.tile.buffers
    dtype: tl.constexpr = tlx.dtype_of(exchange.wire)
    ELEMENTS: tl.constexpr = sums[0].shape[0] * sums[0].shape[1]
    if NUMBER >= BUFFERS:
        tlx.async_descriptor_store_wait(BUFFERS - 1)
    buffer = exchange.wire[consumer * BUFFERS + NUMBER % BUFFERS]
    tlx.local_store(buffer, sums[0].to(dtype))
    tlx.fence_async_shared()
    tlx.async_store(target + NUMBER * ELEMENTS, buffer, ELEMENTS * tlx.size_of(dtype))


@tlx_xdsl.jit
def place_of(exchange, tile, part: tl.constexpr):
    """The place in `staging` of a consumer's part of an own tile, and the distance of what each rank sends."""
    config: tl.constexpr = exchange.form.tile
    stride = exchange.owned.to(tl.int64) * (config.block_m * config.block_n)
    at = (tile * config.parts + part).to(tl.int64) * (config.rows * config.block_n)
    return tlx.peer(exchange.staging, exchange.rank) + at, stride


@tlx_xdsl.jit
def load_part(exchange, place, first, item):
    """Start load `item` of a tile: part item // SOURCES of other rank item % SOURCES, to its place in the ring.

    The ring's buffers begin with `first`.
    """
    base, stride = place
    wire, rank = exchange.wire, exchange.rank
    SOURCES: tl.constexpr = tlx.world_size(exchange.pads) - 1
    ELEMENTS: tl.constexpr = wire.shape[0] * wire.shape[1]
    BYTES: tl.constexpr = ELEMENTS * tlx.size_of(tlx.dtype_of(wire))
    other = item % SOURCES
    source = tl.where(rank <= other, other + 1, other)
    index = first + item % exchange.form.tile.buffers
    tlx.barrier_expect_bytes(exchange.came[index], BYTES)
    pointer = base + source.to(tl.int64) * stride + item // SOURCES * ELEMENTS
    tlx.async_load(pointer, wire[index], bulk=True, bulk_size=BYTES, barrier=exchange.came[index])


@tlx_xdsl.jit
def load_parts(exchange, place, first):
    """Start to load to all of a consumer's buffers, of which `first` is the first one."""
    for load in tl.static_range(exchange.form.tile.buffers):
        load_part(exchange, place, first, load)


@tlx_xdsl.jit
def add_part(sums, column, state, first: tl.constexpr, NUMBER: tl.constexpr):
    """Add to part NUMBER of a tile's sums what others have sent, in the order of ranks, and store that."""
    exchange, place, turn, out_desc, c, row = state
    config: tl.constexpr = exchange.form.tile
    BUFFERS: tl.constexpr = config.buffers
    SOURCES: tl.constexpr = tlx.world_size(exchange.pads) - 1
    ITEMS: tl.constexpr = config.block_n // config.part_n * SOURCES
    rank = exchange.rank
    own = sums[0]
    total = tl.where(rank == 0, own, 0.0)
    for other in range(SOURCES):
        item = NUMBER * SOURCES + other
        index = first + item % BUFFERS
        tlx.barrier_wait(exchange.came[index], (turn + item // BUFFERS) & 1)
        total += tlx.local_load(exchange.wire[index]).to(tl.float32)
        total = tl.where(rank == other + 1, total + own, total)
        if item + BUFFERS < ITEMS:
            # All threads have read the buffer, so it can be loaded again.
            tl.debug_barrier()
            load_part(exchange, place, first, item + BUFFERS)
    tlx.async_descriptor_store_wait(0)
    tlx.local_store(c, total.to(tlx.dtype_of(c)))
    tlx.fence_async_shared()
    tlx.async_descriptor_store(out_desc, c, [row, column])


@tlx_xdsl.jit
def wait_for_parts(exchange, tile, LIMIT: tl.constexpr):
    """Wait until the others have sent one of the rank's own tiles."""
    SOURCES: tl.constexpr = tlx.world_size(exchange.pads) - 1
    counter = counters(exchange.pads, exchange.rank)
    tlx.wait_signal(counter, arrivals(exchange.pads, tile), exchange.number * SOURCES, limit_ns=LIMIT)
    tlx.fence("async_global")


@tlx_xdsl.jit
def hand_over(ready, slot):
    """Give a tile to the copier, if one was stored: `slot` is where it lies, or -1."""
    if slot >= 0:
        tlx.async_descriptor_store_wait(0, read=False)
        tlx.barrier_arrive(ready[slot])


@tlx_xdsl.jit
def outgoing_tile(exchange, slot):
    """The first element of the tile in a slot of this program."""
    config: tl.constexpr = exchange.form.tile
    return exchange.outgoing + (tl.program_id(0) * SLOTS + slot).to(tl.int64) * (config.block_m * config.block_n)


@tlx_xdsl.jit
def copy_elements(source, target, count, BLOCK: tl.constexpr):
    """Copy so many elements, side by side, which are blocks of BLOCK."""
    lanes = tl.arange(0, BLOCK)
    for _ in range(0, count, BLOCK):
        tl.store(target + lanes, tl.load(source + lanes))
        source += BLOCK
        target += BLOCK


@tlx_xdsl.jit
def ask_for_parts(exchange, item):
    """Give a consumer's buffers, from which nothing leaves, to the copier, for what others have sent of an own tile."""
    slot, phase = tlx.get_bufidx_phase(item, SLOTS)
    tlx.barrier_wait(exchange.free[slot], phase ^ 1)
    tlx.barrier_arrive(exchange.ready[slot])


@tlx_xdsl.jit
def serve_tiles(exchange, items, BLOCK: tl.constexpr):
    """The copier: store each tile of others to its owner, BLOCK elements at a time, and signal it.

    With a limit it waits for own tiles, too, and begins to load them. Consumers say when a tile may be taken, or loaded
    to.
    """
    config: tl.constexpr = exchange.form.tile
    rank, ready, free = exchange.rank, exchange.ready, exchange.free
    TILE: tl.constexpr = config.block_m * config.block_n
    BUFFERS: tl.constexpr = config.buffers
    LIMIT: tl.constexpr = exchange.limit
    tl.static_assert(TILE % BLOCK == 0, "a tile is copied in whole blocks")
    known = rank
    for item in range(items):
        owner, tile = owner_and_tile(item, exchange)
        slot, phase = tlx.get_bufidx_phase(item, SLOTS)
        if owner == rank:
            if LIMIT is not None:
                tlx.barrier_wait(ready[slot], phase)
                first = 0 if config.parts > 1 else item % 2 * BUFFERS
                wait_for_parts(exchange, tile, LIMIT)
                for part in tl.static_range(config.parts):
                    load_parts(exchange, place_of(exchange, tile, part), first + part * BUFFERS)
                tlx.barrier_arrive(free[slot])
        else:
            if owner != known:
                tlx.wait_signal(counters(exchange.pads, rank), FIRST + owner, exchange.number, limit_ns=LIMIT)
            known = owner
            tlx.barrier_wait(ready[slot], phase)
            target = tlx.peer(exchange.staging, owner) + (rank * exchange.owned + tile).to(tl.int64) * TILE
            copy_elements(outgoing_tile(exchange, slot), target, TILE, BLOCK)
            tlx.barrier_arrive(free[slot])
            tlx.signal(counters(exchange.pads, owner), arrivals(exchange.pads, tile))


@tlx_xdsl.jit
def scatter_tiles(ring, exchange, out_desc, c, sizes, items, num_k, consumer: tl.constexpr):
    """A consumer: multiply its part of each tile of the program, or every second tile; hand over what is another
    rank's, and sum the rest.
    """
    config: tl.constexpr = exchange.form.tile
    IN_TURN: tl.constexpr = config.schedule == "pingpong"
    PART: tl.constexpr = 0 if IN_TURN else consumer
    SOURCES: tl.constexpr = tlx.world_size(exchange.pads) - 1
    BUFFERS: tl.constexpr = config.buffers
    FIRST_BUFFER: tl.constexpr = consumer * BUFFERS
    rank = exchange.rank
    stage = 0
    phase = 0
    turn = 0
    # Where the tile lies that is still to be handed over.
    stored = -1
    for item in range(consumer if IN_TURN else 0, items, 2 if IN_TURN else 1):
        owner, tile = owner_and_tile(item, exchange)
        off_m, off_n = tile_offsets(tile, sizes, config.block_m, config.block_n, config.group_m)
        place = place_of(exchange, tile, PART)
        if owner == rank:
            # What the others have sent comes while this tile, or that of the other consumer, is multiplied.
            hand_over(exchange.ready, stored)
            stored = -1
            if exchange.limit is None:
                wait_for_parts(exchange, tile, None)
                load_parts(exchange, place, FIRST_BUFFER)
            else:
                ask_for_parts(exchange, item)
        sums, stage, phase = multiply_item(ring, stage, phase, item, items, 0, num_k, consumer)
        if owner == rank:
            row = off_m + PART * config.rows
            state = (exchange, place, turn, out_desc, c[consumer], row)
            by_parts(sums, off_n, add_part, state, FIRST_BUFFER, config.part_n)
            # All threads have read all buffers.
            tl.debug_barrier()
            turn += config.block_n // config.part_n * SOURCES // BUFFERS
        else:
            hand_over(exchange.ready, stored)
            stored, slot_phase = tlx.get_bufidx_phase(item, SLOTS)
            tlx.barrier_wait(exchange.free[stored], slot_phase ^ 1)
            target = outgoing_tile(exchange, stored) + PART * (config.rows * config.block_n)
            by_parts(sums, 0, send_part, (target, exchange), consumer, config.part_n)
    hand_over(exchange.ready, stored)
    tlx.async_descriptor_store_wait(0)


@tlx_xdsl.jit
def gemm_reduce_scatter(
    a_desc, b_desc, out_desc, outgoing, staging, pads, sizes, by_owner, FORM: tl.constexpr, COPY_WARPS: tl.constexpr,
    LIMIT: tl.constexpr = None,
):  # fmt: skip
    """Store rows r, on rank r, of the sum over ranks of A @ B. `sizes` has the number of rows of one rank.

    `by_owner` divides by the tiles of an owner. See the file's top.
    """
    world: tl.constexpr = tlx.world_size(pads)
    TILE: tl.constexpr = FORM.tile
    CONSUMERS: tl.constexpr = TILE.consumers
    tl.static_assert(CONSUMERS >= 2, "the first consumer is the default task, and others have a task of their own")
    tl.static_assert(TILE.subtiles % TILE.buffers == 0, "each buffer is loaded to equally often for a tile")
    dtype: tl.constexpr = tlx.dtype_of(a_desc)

    rank = tlx.rank(pads)
    number = launch_number(pads)
    announce_launch(pads, rank, number)

    owned = tl.cdiv(sizes.m, TILE.block_m) * tl.cdiv(sizes.n, TILE.block_n)
    items = tl.cdiv(owned * world - tl.program_id(0), tl.num_programs(0))
    num_k = tl.cdiv(sizes.k, TILE.block_k)

    tiles = tile_rings(dtype, FORM)
    c = tlx.local_alloc((TILE.rows, TILE.part_n), tlx.dtype_of(out_desc), CONSUMERS)
    # What is sent and what is received has one layout, for it is the same bytes.
    wire = tlx.local_alloc((TILE.rows, TILE.part_n), dtype, CONSUMERS * TILE.buffers)
    ring = ring_of(tiles, FORM)
    came = tlx.alloc_barriers(CONSUMERS * TILE.buffers)
    ready = tlx.alloc_barriers(SLOTS, arrive_count=TILE.parts)
    free = tlx.alloc_barriers(SLOTS)
    exchange = Exchange(
        pads, rank, number, staging, outgoing, wire, came, ready, free, owned, by_owner, FORM, LIMIT
    )  # fmt: skip

    with tlx.async_tasks(no_ending_cluster_sync=True):
        with tlx.async_task("default"):  # the first consumer
            scatter_tiles(ring, exchange, out_desc, c, sizes, items, num_k, 0)

        with tlx.async_task(num_warps=4, replicate=CONSUMERS - 1, registers=232):  # the others
            consumer: tl.constexpr = tlx.async_task_replica_id() + 1
            scatter_tiles(ring, exchange, out_desc, c, sizes, items, num_k, consumer)

        with tlx.async_task(num_warps=1, registers=40):  # producer
            stage = 0
            phase = 0
            for item in range(items):
                owner, tile = owner_and_tile(item, exchange)
                off_m, off_n = tile_offsets(tile, sizes, TILE.block_m, TILE.block_n, TILE.group_m)
                row = owner * sizes.m + off_m
                stage, phase = load_steps(ring, a_desc, (b_desc,), stage, phase, row, (off_n,), 0, num_k)
            count_program(pads, number)

        with tlx.async_task(num_warps=COPY_WARPS, registers=40):  # copier
            serve_tiles(exchange, items, COPY_WARPS * COPIED)
