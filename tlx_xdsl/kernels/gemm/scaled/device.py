"""The kernel of scaled products of 8-bit floats for Hopper: C = (A * scale_a) @ (B * scale_b).

Persistent and warp-specialised as `gemm/persistent`, whose top explains tasks, rings, barriers and schedules: a
producer (the default task) loads by TMA, two consumers of one warp group each multiply. Both operands lie along K, A
by rows and B by columns: `wgmma` reads 8-bit elements in no other order. What a consumer does with its part of a tile:

- `fast_tile`: sums stay in the tensor cores. Consumers share a tile, each has half of its rows, or of its columns
  (`split_columns`, where C has few rows). Or each has tiles of its own (pingpong): one scales and stores while the
  other multiplies, which pays where K is short.
- `exact_tile`: each step of 128 columns of A is a sum of its own. There are no turns by tiles: in its turn a consumer
  would leave the tensor cores idle while it adds.
- `mixed_tile`: A has 16 bits.

Sums. The tensor cores add products of 8-bit floats with 14 bits or so. Where that is too few (EXACT), the sum of a step
is added to sums in f32: it takes registers of its own, so a consumer computes its columns in strips, one after the
other, with the registers of one. While it adds a strip, the tensor cores compute the other consumer's. The last strip
of a tile is computed while the one before is stored.

Scales. Of blocks: scale_a has a number for each row and step, scale_b one for each step and 128 columns of C; each
step's sum is multiplied as it is added, in one instruction per element. Where the scales of A's rows lie next to each
other, the producer brings a step's scales with its tiles (`staged`): scale_a and scale_b are then descriptors of their
memory as lines. Otherwise the consumers load them while the step before is computed. Without blocks the sums are
multiplied before they are stored: by a number of each row and of each column, or by one of each operand. The scales'
strides are arguments, in elements: all lie in any order.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ...rings import begin_turns, end_turns, next_place
from ..device import Ring, multiply_in_turn, multiply_steps, tile_offsets, waited
from .exact import exact_tile
from .mixed import mixed_tile
from .scales import LINE, STEP, Scales, load_scales, store_scaled, tile_scales


@tlx_xdsl.jit
def load_step(ring, scales, a_desc, b_desc, stage, off_m, off_n, k):
    """Load what step k needs to a stage: blocks of rows of A and of columns of B, and with STAGED the scales.

    The first barrier of the stage is that of A, of the scales and of the consumers' first strips, the second that of
    their second.
    """
    form: tl.constexpr = ring.form
    tile: tl.constexpr = form.tile
    STRIPS: tl.constexpr = form.strips
    B_PARTS: tl.constexpr = tile.b_parts * STRIPS
    PART_N: tl.constexpr = tile.block_n // B_PARTS
    B_BYTES: tl.constexpr = tile.b_parts * PART_N * STEP
    SCALE_BYTES: tl.constexpr = (tile.block_m + form.blocks * LINE) * 4 if form.staged else 0
    A_BYTES: tl.constexpr = tile.block_m * STEP * tlx.size_of(tlx.dtype_of(a_desc))
    off_k = k * STEP
    for strip in tl.static_range(STRIPS):
        barrier = ring.full[stage * STRIPS + strip]
        tlx.barrier_expect_bytes(barrier, A_BYTES + B_BYTES + SCALE_BYTES if strip == 0 else B_BYTES)
        if strip == 0:
            for part in tl.static_range(tile.parts):
                where = [off_m + part * tile.rows, off_k]
                tlx.async_descriptor_load(a_desc, ring.a[stage * tile.parts + part], where, barrier)
        for part in tl.static_range(strip, B_PARTS, STRIPS):
            where = [off_n + part * PART_N, off_k]
            tlx.async_descriptor_load(b_desc, ring.b[0][stage * B_PARTS + part], where, barrier)
    if form.staged:
        load_scales(scales, ring.full[stage * STRIPS], stage, off_m, off_n, k, form.blocks)


@tlx_xdsl.jit
def fast_tile(ring, scales, c_desc, c, row, column, num_k, stage, phase, item, items, CONSUMER: tl.constexpr):
    """Compute and store a consumer's part of a program's item with sums that stay in the tensor cores, from a stage on.

    Returns the next stage and its phase.
    """
    form: tl.constexpr = ring.form
    if form.tile.schedule == "pingpong":
        sums, last = multiply_in_turn(ring, item, items, num_k, CONSUMER)
    else:
        A_PART: tl.constexpr = CONSUMER if form.tile.parts == 2 else 0
        B_PART: tl.constexpr = CONSUMER if form.tile.b_parts == 2 else 0
        sums, last, stage, phase = multiply_steps(ring, stage, phase, 0, num_k, A_PART, B_PART)
    of_tile = tile_scales(scales, row, column, form)
    (sums,) = waited(sums, 0)
    tlx.barrier_arrive(ring.empty[last])
    store_scaled(sums, of_tile, c_desc, c, row, column, CONSUMER, form)
    return stage, phase


@tlx_xdsl.jit
def scaled_ring(a_desc, b_desc, c_desc, form: tl.constexpr):
    """The ring of a form, the consumers' buffers of C, and those of staged scales."""
    tile: tl.constexpr = form.tile
    STAGES: tl.constexpr = tile.stages
    B_PARTS: tl.constexpr = tile.b_parts * form.strips
    tl.static_assert(STAGES >= 2, "a stage is given back when the next one is being multiplied")
    a = tlx.local_alloc((tile.rows, STEP), tlx.dtype_of(a_desc), tile.parts * STAGES)
    b = tlx.local_alloc((tile.block_n // B_PARTS, STEP), tlx.dtype_of(b_desc), B_PARTS * STAGES)
    c = tlx.local_alloc((tile.rows, tile.part_n), tlx.dtype_of(c_desc), 2 * tile.buffers)
    staged = None
    if form.staged:
        by_blocks = tlx.local_alloc((LINE,), tl.float32, form.blocks * STAGES)
        staged = (tlx.local_alloc((tile.block_m,), tl.float32, STAGES), by_blocks)
    full = tlx.alloc_barriers(STAGES * form.strips)
    empty = tlx.alloc_barriers(STAGES, arrive_count=tile.parts * tile.b_parts)
    return Ring(a, (b,), full, empty, form), c, staged


@tlx_xdsl.jit
def gemm_scaled(a_desc, b_desc, c_desc, scale_a, scale_b, sizes, strides, FORM: tl.constexpr):
    """C = (A * scale_a) @ (B * scale_b). See the top of the file."""
    TILE: tl.constexpr = FORM.tile
    MIXED: tl.constexpr = FORM.kind == "mixed"
    IN_TURN: tl.constexpr = TILE.schedule == "pingpong"
    TURNS: tl.constexpr = 2 if FORM.turns else 1
    # The first step of other products is loaded before the tasks begin.
    BEGUN: tl.constexpr = 0 if MIXED else 1

    pid = tl.program_id(0)
    programs = tl.num_programs(0)
    num_tiles = tl.cdiv(sizes.m, TILE.block_m) * tl.cdiv(sizes.n, TILE.block_n)
    items = tl.cdiv(num_tiles - pid, programs)
    num_k = tl.cdiv(sizes.k, STEP)

    ring, c, staged = scaled_ring(a_desc, b_desc, c_desc, FORM)
    scales = Scales(scale_a, scale_b, strides, sizes, staged)
    if BEGUN and pid < num_tiles:
        off_m, off_n = tile_offsets(pid, sizes, TILE.block_m, TILE.block_n, TILE.group_m)
        load_step(ring, scales, a_desc, b_desc, 0, off_m, off_n, 0)

    with tlx.async_tasks():
        with tlx.async_task("default"):  # producer
            stage = BEGUN
            phase = 0
            first_k = BEGUN
            for tile in range(pid, num_tiles, programs):
                off_m, off_n = tile_offsets(tile, sizes, TILE.block_m, TILE.block_n, TILE.group_m)
                for k in range(first_k, num_k):
                    tlx.barrier_wait(ring.empty[stage], phase ^ 1)
                    load_step(ring, scales, a_desc, b_desc, stage, off_m, off_n, k)
                    stage, phase = next_place(stage, phase, TILE.stages)
                first_k = 0

        with tlx.async_task(num_warps=4, replicate=2, registers=232 if MIXED else 240):  # consumers
            consumer: tl.constexpr = tlx.async_task_replica_id()
            begin_turns(consumer, TURNS)
            stage = 0
            phase = 0
            item = consumer if IN_TURN else 0
            for tile in range(pid + item * programs, num_tiles, 2 * programs if IN_TURN else programs):
                off_m, off_n = tile_offsets(tile, sizes, TILE.block_m, TILE.block_n, TILE.group_m)
                row = off_m + (consumer if TILE.parts == 2 else 0) * TILE.rows
                column = off_n + (consumer if TILE.b_parts == 2 else 0) * TILE.columns
                if FORM.kind == "exact":
                    stage, phase = exact_tile(ring, scales, c_desc, c, row, column, num_k, stage, phase, consumer)
                elif MIXED:
                    stage, phase = mixed_tile(ring, scales, c_desc, c, row, column, num_k, stage, phase, consumer)
                else:
                    stage, phase = fast_tile(
                        ring, scales, c_desc, c, row, column, num_k, stage, phase, item, items, consumer
                    )  # fmt: skip
                item += 2 if IN_TURN else 1
            tlx.async_descriptor_store_wait(0)
            end_turns(consumer, TURNS)
