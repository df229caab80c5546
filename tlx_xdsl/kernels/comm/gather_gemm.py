"""All-gather + GEMM in one kernel for Hopper: `all_gather_gemm`.

Rank r has rows r of A, M of them, and its own B (K, N); it gets all of A times its B: (world * M, N). The kernel is
`gemm.persistent`, without clusters, with another order of tiles and one more task.

* Copiers, up to 3 warps of each program (a warp group with the producer's), store the rank's rows of A to all others,
  piece by piece: the rank before it gets them first, then the one before that. So at no time do two ranks store to one,
  each rank gets first what it multiplies first, and no multiprocessor is taken from the product. Where all tiles run at
  once, all ranks get a piece together. A signal follows each piece, PIECE rows by CHUNK columns; pieces of the first
  columns go first, for as many rows as are multiplied at once (BAND). A copier's threads load and store, since bulk
  copies to another GPU hold up the loads of the product, which the same unit does: with them the product took up to a
  quarter longer. While one copier waits until what it has stored is there, so that it may signal, others store.
* Order of tiles. A rank begins with its own rows, which it reads where they are, and goes on with those of the next
  rank. The producer waits for CHUNK columns of a tile's rows, and fences, before it loads them by TMA: a tile begins
  with its first columns, while the others are under way.
* Reuse. Nothing is stored to a rank before it has begun this launch: it then has read what came in the last.

Nothing is rounded on the way; sums are in f32 and rounded once: the bits of a product of the gathered A. Deterministic.
Limits: two consumers or more, M a multiple of BLOCK_M, rows of A side by side, K a multiple of CHUNK, and CHUNK a power
of two and a multiple of BLOCK_K, or 0: whole rows. Signals: one for each piece and rank that gets it, and world - 1 for
the beginning. Memory on each rank: world * M * K * 2 bytes, of which the own rows stay unused.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportOptionalSubscript=false

from typing import Any, NamedTuple

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ..gemm.device import divided, load_step, multiply_tile, tile_offsets, wait_for_stage
from ..gemm.epilogue import Target, ring_and_result, store_tile
from ..rings import next_place
from .signals import FIRST, after, announce_launch, count_program, counters, launch_number, publish

COPIED = tl.constexpr(1024)
"""Elements that a copier has in flight, at most."""


@tlx_xdsl.jit
def arrivals_of_rows(pads, source, block, chunk, blocks, chunks):
    """The counter of some columns of a block of rows of another rank; it follows those of launches that have begun."""
    return FIRST + tlx.world_size(pads) + (source * blocks + block) * chunks + chunk


@tlx_xdsl.jit
def chunks_of(K, CHUNK: tl.constexpr):
    """Pieces of a row: of CHUNK columns each, or the row itself where CHUNK is 0."""
    if CHUNK == 0:
        return 1
    return K // CHUNK


@tlx_xdsl.jit
def copy_piece(a, targets, K, ROWS: tl.constexpr, CHUNK: tl.constexpr, BLOCK: tl.constexpr, AT_ONCE: tl.constexpr):
    """Copy ROWS rows of CHUNK elements, or whole ones, of K, to the same place of each target.

    A block is of BLOCK elements; those of AT_ONCE rows are under way together.
    """
    RANKS: tl.constexpr = len(targets)
    lanes = tl.arange(0, BLOCK)
    at = 0
    for _ in range(1 if CHUNK == 0 else ROWS // AT_ONCE):
        for column in range(0, ROWS * K if CHUNK == 0 else CHUNK, BLOCK):
            values = ()
            for row in tl.static_range(AT_ONCE):
                values += (tl.load(a + (at + row * K + column) + lanes),)
            for row in tl.static_range(AT_ONCE):
                for i in tl.static_range(RANKS):
                    tl.store(targets[i] + (at + row * K + column) + lanes, values[row])
        at += AT_ONCE * K


class Sending(NamedTuple):
    """Rows that a rank sends in launch `number`: `m` rows of `k` elements, to the others' memory for all rows."""

    a: Any
    gathered: Any
    pads: Any
    rank: Any
    number: Any
    m: Any
    k: Any


@tlx_xdsl.jit
def send_band(
    sending, copier, copiers, row, rows, FIRST_RANK: tl.constexpr, RANKS: tl.constexpr,
    BLOCK_M: tl.constexpr, PIECE: tl.constexpr, CHUNK: tl.constexpr, COPIED: tl.constexpr,
):  # fmt: skip
    """Store a copier's pieces of rows `row` to `row + rows` to RANKS ranks, and signal each.

    The first of these is FIRST_RANK places before this one.
    """
    rank, M, K = sending.rank, sending.m, sending.k
    world: tl.constexpr = tlx.world_size(sending.pads)
    chunks = chunks_of(K, CHUNK)
    BLOCK: tl.constexpr = COPIED if CHUNK == 0 else min(COPIED, CHUNK)
    AT_ONCE: tl.constexpr = COPIED // BLOCK
    for number in range(copier, rows // PIECE * chunks, copiers):
        chunk = number // (rows // PIECE)
        first = row + number % (rows // PIECE) * PIECE
        at = first.to(tl.int64) * K + chunk * CHUNK
        targets = ()
        for i in tl.static_range(RANKS):
            to = after(rank, world - FIRST_RANK - i, world)
            targets += (tlx.peer(sending.gathered, to) + (rank * M).to(tl.int64) * K + at,)
        copy_piece(sending.a + at, targets, K, PIECE, CHUNK, BLOCK, AT_ONCE)
        publish()
        counter = arrivals_of_rows(sending.pads, rank, first // BLOCK_M, chunk, M // BLOCK_M, chunks)
        for i in tl.static_range(RANKS):
            tlx.signal(counters(sending.pads, after(rank, world - FIRST_RANK - i, world)), counter, sem="relaxed")


@tlx_xdsl.jit
def send_rows(
    sending, copier, copiers, BAND, BLOCK_M: tl.constexpr, PIECE: tl.constexpr,
    CHUNK: tl.constexpr, COPIED: tl.constexpr, TOGETHER: tl.constexpr, LIMIT: tl.constexpr,
):  # fmt: skip
    """A copier: store the rank's rows to all others, to one after the other or to all TOGETHER."""
    world: tl.constexpr = tlx.world_size(sending.pads)
    for i in tl.static_range(1, world):
        to = after(sending.rank, world - i, world)
        tlx.wait_signal(counters(sending.pads, sending.rank), FIRST + to, sending.number, limit_ns=LIMIT)
        if not TOGETHER or i == world - 1:
            for row in range(0, sending.m, BAND):
                send_band(
                    sending, copier, copiers, row, tl.minimum(BAND, sending.m - row),
                    1 if TOGETHER else i, world - 1 if TOGETHER else 1, BLOCK_M, PIECE, CHUNK, COPIED,
                )  # fmt: skip


@tlx_xdsl.jit
def source_and_tile(item, rank, owned, by_owner, world: tl.constexpr):
    """The rank that has the rows of A of a program's item, and the tile's number among those of its rows."""
    at = tl.program_id(0) + item * tl.num_programs(0)
    owners = divided(at, by_owner)
    return after(rank, owners, world), at - owners * owned


@tlx_xdsl.jit
def multiply_tiles(ring, out, items, rank, owned, by_owner, num_k, part: tl.constexpr, world: tl.constexpr):
    """A consumer: multiply its part of each tile of the program, and store that."""
    TILE: tl.constexpr = ring.form.tile
    stage = 0
    phase = 0
    for item in range(items):
        source, tile = source_and_tile(item, rank, owned, by_owner, world)
        off_m, off_n = tile_offsets(tile, out.sizes, TILE.block_m, TILE.block_n, TILE.group_m)
        sums, stage, phase = multiply_tile(ring, stage, phase, 0, num_k, part)
        store_tile(sums, out, part, source * out.sizes.m + off_m + part * TILE.rows, off_n, 0)
    tlx.async_descriptor_store_wait(0)


@tlx_xdsl.jit
def all_gather_gemm(
    a, a_desc, gathered, gathered_desc, b_desc, c_desc, pads, sizes, by_owner, BAND,
    FORM: tl.constexpr, PIECE: tl.constexpr, CHUNK: tl.constexpr, COPIED: tl.constexpr,
    TOGETHER: tl.constexpr, COPIERS: tl.constexpr, LIMIT: tl.constexpr = None,
):  # fmt: skip
    """C = the rows of A of all ranks, M each, times B; see the file's top.

    `a` are this rank's rows, `gathered` has room for all, (world * M, K), and `gathered_desc` is of this rank's memory
    there. `by_owner` divides by the tiles of the rows of one rank. Copiers send
    BAND rows after each other, a multiple of the tile's, and have COPIED elements in flight each, which divide a piece.
    """
    world: tl.constexpr = tlx.world_size(pads)
    TILE: tl.constexpr = FORM.tile
    BLOCK_M: tl.constexpr = TILE.block_m
    CONSUMERS: tl.constexpr = TILE.consumers
    tl.static_assert(CONSUMERS >= 2, "the first consumer is the default task, and others have a task of their own")

    rank = tlx.rank(pads)
    launch = launch_number(pads)
    announce_launch(pads, rank, launch)

    M, K = sizes.m, sizes.k
    owned = M // BLOCK_M * tl.cdiv(sizes.n, TILE.block_n)
    items = tl.cdiv(owned * world - tl.program_id(0), tl.num_programs(0))
    num_k = tl.cdiv(K, TILE.block_k)
    chunks = chunks_of(K, CHUNK)
    steps = num_k // chunks

    ring, out = ring_and_result(a_desc, Target(c_desc), sizes, FORM)
    # Two consumers have the registers of a thread block of three warp groups, of which the last is for the other tasks.
    with tlx.async_tasks(no_ending_cluster_sync=True):
        with tlx.async_task("default"):  # the first consumer
            multiply_tiles(ring, out, items, rank, owned, by_owner, num_k, 0, world)

        with tlx.async_task(num_warps=4, replicate=CONSUMERS - 1, registers=232):  # the others
            part: tl.constexpr = tlx.async_task_replica_id() + 1
            multiply_tiles(ring, out, items, rank, owned, by_owner, num_k, part, world)

        with tlx.async_task(num_warps=1, registers=40):  # producer
            stage = 0
            phase = 0
            for item in range(items):
                source, tile = source_and_tile(item, rank, owned, by_owner, world)
                off_m, off_n = tile_offsets(tile, sizes, BLOCK_M, TILE.block_n, TILE.group_m)
                for chunk in range(chunks):
                    if source != rank:
                        counter = arrivals_of_rows(pads, source, off_m // BLOCK_M, chunk, M // BLOCK_M, chunks)
                        tlx.wait_signal(counters(pads, rank), counter, launch * (BLOCK_M // PIECE), limit_ns=LIMIT)
                        tlx.fence("async_global")
                    for k in range(chunk * steps, (chunk + 1) * steps):
                        wait_for_stage(ring, stage, phase)
                        off_k = k * TILE.block_k
                        if source == rank:
                            load_step(ring, a_desc, (b_desc,), stage, off_m, (off_n,), off_k)
                        else:
                            load_step(ring, gathered_desc, (b_desc,), stage, source * M + off_m, (off_n,), off_k)
                        stage, phase = next_place(stage, phase, TILE.stages)

            count_program(pads, launch)

        with tlx.async_task(num_warps=1, replicate=COPIERS, registers=40):  # copiers
            copier = tl.program_id(0) * COPIERS + tlx.async_task_replica_id()
            copiers = tl.num_programs(0) * COPIERS
            # Not a variable, whose numbers would be those of the run: `world` unrolls loops.
            send_rows(
                Sending(a, gathered, pads, rank, launch, M, K), copier, copiers, BAND,
                BLOCK_M, PIECE, CHUNK, COPIED, TOGETHER, LIMIT,
            )  # fmt: skip
