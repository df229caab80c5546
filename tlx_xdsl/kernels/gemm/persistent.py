"""The persistent GEMM kernel for Hopper: C = A @ B with f32 sums, warp-specialised.

Program p of P takes tiles p, p + P, p + 2 P, ... of C. A producer (the default task) loads by TMA into a ring of
NUM_STAGES stages and does not wait for epilogues: it fills the ring for the next tile meanwhile. Schedules differ in
what a consumer, one warp group, has:

- cooperative: one to three consumers share each tile, every one has 64 of its rows. The largest tiles, so the fewest
  bytes from memory per product; all consumers stop for the epilogue.
- pingpong: each of two consumers has every second tile of the program, and they take turns at the tensor cores: one
  stores its tile while the other multiplies. Pays where K is short and epilogues are frequent.

Without clusters, the first step of a program is loaded before the tasks begin, and the producer goes on after it: the
load is under way while the warps of the tasks get their registers.

Barriers. `full[stage]` completes when the bytes of the stage's copies have arrived; `empty[stage]` when the consumers
that read it have arrived, which they do one step late, when `async_dot_wait` says that the product before is done.
Waiting for parity p means "phase p has completed": the producer waits for the phase before the current one, and a fresh
barrier lets the first turn pass.

Strips. The columns of a tile are one power of two, BLOCK_N, or two of them (192 = 128 + 64): then TAIL_N is the width
of the second strip, which has its own descriptor, ring and accumulator; products of both read the same tile of A. With
PAIRED the second strip lies N columns after the first one, and the epilogue makes one tile of C of both (SwiGLU).

Clusters (CLUSTER of 2 or 4). CTAs have tiles above each other and load the tile of B once for all: CTA s % CLUSTER to
stage s. It waits for the other CTAs' consumers as well, which arrive at its `far[stage]`. With one barrier for all
consumers, one that is a turn ahead could be counted for one that is late; and a barrier that all CTAs wait for could
complete twice before the last of them looks (the interpreter found both). At the end each producer waits until all
stages that it has loaded are given back, so that no arrival comes to a CTA that has ended. Pays where lines of the L2
cache limit the loads: rows of A or B that begin at odd multiples of 16 bytes take twice as many of them.

Stream-K (STREAM). Tiles that do not fill a round of all programs would leave most of them idle. FULL_ROUNDS rounds are
dealt out as above; the steps along K of all other tiles are one sequence, of which each program takes SHARE steps in a
row. Where the programs suffice for parts that end with their tiles (split-K), STEPS, a tile's steps in the sequence,
is the next multiple of SHARE, and those past K are left out. A piece that is a whole tile is stored; of another one
the f32 sums go to `stream.sums`, slot 2 p + 1 for the piece that begins its tile, 2 p for one that continues it (a
program has at most one of each), and `reduce` adds up the slots of each tile in the order of K: the same bits every
time, without atomics and without waiting for other programs.

Epilogue. A tile goes through shared memory, in parts of PART_N columns: the store of one part begins while the next one
is converted. Each consumer has BUFFERS buffers of its own in turn, and waits for the store that used a buffer before it
writes it again, not after the store, so that the store overlaps what follows. EPILOGUE is a function of the f32 sums of
a part, and of what `epilogue.vectors_at` finds of vectors and the matrix there. With C_COLUMNS parts are transposed on
their way: C lies by columns. With REDUCE ("add") TMA adds each part to what C holds, which the kernel does not read.

Edges. TMA reads zeros outside of A and B, so that M, N and K may be any, and leaves out rows of C that are not
there; but it writes a row in units of 16 bytes, past its end where that is none. Without a descriptor of C its threads
write it (`epilogue.Target`).
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportOptionalSubscript=false

from typing import Any, NamedTuple

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ..rings import next_place
from .device import divided, load_step, load_steps, multiply_item, tile_offsets, wait_for_stage
from .epilogue import ring_and_result, store_partial, store_tile


class Stream(NamedTuple):
    """Division of the steps of tiles that do not fill a round, of which a tile has `steps`; `sums` describes memory."""

    by_steps: Any
    full_rounds: Any
    share: Any
    steps: Any
    sums: Any


@tlx_xdsl.jit
def pieces_of(pid, programs, num_tiles, stream):
    """The first tile of the sequence of steps, this program's first step, the one after its last, and its pieces.

    Steps are counted from the first one of that tile.
    """
    first_tile = stream.full_rounds * programs
    steps = (num_tiles - first_tile) * stream.steps
    begin = min(pid * stream.share, steps)
    end = min(begin + stream.share, steps)
    tile = divided(begin, stream.by_steps)
    count = tl.where(end > begin, divided(max(end - 1, 0), stream.by_steps) - tile + 1, 0)
    return first_tile + tile, begin - tile * stream.steps, end - tile * stream.steps, count


@tlx_xdsl.jit
def work_of(item, pid, programs, num_k, pieces, stream):
    """The tile of a program's item, its first step along K and the one after its last."""
    tile = pid + item * programs
    first, last = 0, num_k
    if len(pieces):
        first_tile, begin, end, _ = pieces
        piece = item - stream.full_rounds
        streamed = piece >= 0
        tile = tl.where(streamed, first_tile + piece, tile)
        first = tl.where(piece == 0, begin, 0)
        last = tl.where(streamed, min(num_k, end - piece * stream.steps), num_k)
    return tile, first, last


@tlx_xdsl.jit
def wait_for_cluster(ring, stage, phase):
    """Wait until all stages are given back: no arrival comes to a CTA that has ended."""
    if ring.form.tile.cluster > 1:
        for _ in range(ring.form.tile.stages):
            wait_for_stage(ring, stage, phase)
            stage, phase = next_place(stage, phase, ring.form.tile.stages)


@tlx_xdsl.jit
def gemm_persistent(a_desc, b_descs, target, sizes, stream, FORM: tl.constexpr):
    """C = EPILOGUE(A @ B), with a descriptor of B for each strip. See the file's top.

    `stream` is None where tiles are dealt out whole.
    """
    TILE: tl.constexpr = FORM.tile
    CLUSTER: tl.constexpr = TILE.cluster
    IN_TURN: tl.constexpr = TILE.schedule == "pingpong"
    TILE_N: tl.constexpr = TILE.block_n if FORM.paired else TILE.tile_n
    # All that the multiprocessor has, but for what the producer's warp group keeps.
    REGISTERS: tl.constexpr = 160 if TILE.consumers == 3 else 232

    pid = tl.program_id(0) // CLUSTER
    programs = tl.num_programs(0) // CLUSTER
    rank = tlx.cluster_cta_rank() if CLUSTER > 1 else 0
    num_tiles = tl.cdiv(sizes.m, TILE.shared_m) * tl.cdiv(sizes.n, TILE_N)
    num_k = tl.cdiv(sizes.k, TILE.block_k)
    if stream is not None:
        pieces = pieces_of(pid, programs, num_tiles, stream)
        items = stream.full_rounds + pieces[3]
    else:
        pieces = ()
        items = tl.cdiv(num_tiles - pid, programs)
    to_second = sizes.n if FORM.paired else TILE.block_n

    ring, out = ring_and_result(a_desc, target, sizes, FORM, rank)
    # In a cluster the producer begins: it waits until the other CTAs' barriers are ready.
    BEGUN: tl.constexpr = 0 if CLUSTER > 1 else 1
    if CLUSTER > 1:
        tlx.cluster_barrier()
    elif items > 0:
        tile, first, _ = work_of(0, pid, programs, num_k, pieces, stream)
        off_m, off_n = tile_offsets(tile, sizes, TILE.shared_m, TILE_N, TILE.group_m)
        load_step(ring, a_desc, b_descs, 0, off_m, (off_n, off_n + to_second), first * TILE.block_k)

    with tlx.async_tasks(no_ending_cluster_sync=True):
        with tlx.async_task("default"):  # producer
            stage = BEGUN
            phase = 0
            loaded = BEGUN
            for item in range(items):
                tile, first, last = work_of(item, pid, programs, num_k, pieces, stream)
                off_m, off_n = tile_offsets(tile, sizes, TILE.shared_m, TILE_N, TILE.group_m)
                stage, phase = load_steps(
                    ring, a_desc, b_descs, stage, phase, off_m + rank * TILE.block_m, (off_n, off_n + to_second),
                    first + loaded, last,
                )  # fmt: skip
                loaded = 0
            wait_for_cluster(ring, stage, phase)

        with tlx.async_task(num_warps=4, replicate=TILE.consumers, registers=REGISTERS):  # consumers
            consumer: tl.constexpr = tlx.async_task_replica_id()
            part: tl.constexpr = 0 if IN_TURN else consumer
            stage = 0
            phase = 0
            turn = 0
            for item in range(consumer if IN_TURN else 0, items, 2 if IN_TURN else 1):
                tile, first, last = work_of(item, pid, programs, num_k, pieces, stream)
                off_m, off_n = tile_offsets(tile, sizes, TILE.shared_m, TILE_N, TILE.group_m)
                sums, stage, phase = multiply_item(ring, stage, phase, item, items, first, last, consumer)
                row = off_m + rank * TILE.block_m + part * TILE.rows
                if stream is not None and last - first < num_k:
                    slot = 2 * pid + (first == 0).to(tl.int32)
                    place = slot * TILE.shared_m + rank * TILE.block_m + part * TILE.rows
                    store_partial(sums, stream.sums, out, consumer, place)
                else:
                    store_tile(sums, out, consumer, row, off_n, item // 2 if IN_TURN else turn)
                    turn += 1
            tlx.async_descriptor_store_wait(0)
