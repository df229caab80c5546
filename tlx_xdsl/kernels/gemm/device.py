"""The parts that the GEMM kernels for Hopper share: where a tile lies, loads by TMA to a ring, the loop over K.

Layouts. A_COLUMNS says that A lies column by column, B_COLUMNS the same of B: the descriptor is then of the
transposed matrix, whose tile is transposed as it is read, which costs nothing (`wgmma` reads either).

Order of tiles. They go in columns of GROUP_M, so that neighbours share tiles in the L2 cache. Where a tile lies takes
two divisions by numbers that only the launch knows; they stand before a program's first load, so they are made as
products with what `divisor` finds for these numbers (200 ns of the 28 us of 2048 x 2048 x 2048 on an H200).

Edges. TMA reads zeros outside of A and B, and leaves out rows of C that are not there; but it writes a row in units of
16 bytes, past its end where that is none (seen on an H200, 2026-11-23).
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

from typing import Any, NamedTuple

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ..rings import TURN_THREADS, next_place


class Sizes(NamedTuple):
    """Extents of a product, and the divisors that find its tiles: of a group's tiles, of the last group's rows."""

    m: Any
    n: Any
    k: Any
    by_group: Any
    by_rest: Any


class Ring(NamedTuple):
    """Stages in shared memory: `parts` blocks of A, and `b_parts` blocks of each strip of B, of a form and its tile.

    `full[stage]` completes when the bytes of the stage's copies have arrived, `empty[stage]` when the consumers that
    read it have arrived. In a cluster, CTA s % `cluster` loads the blocks of B of stage s for all, and waits at its
    `far` for the other CTAs' consumers.
    """

    a: Any
    b: Any
    full: Any
    empty: Any
    form: Any
    far: Any = None
    rank: Any = 0


@tlx_xdsl.jit
def tile_offsets(tile, sizes, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    """First row and column of a C tile."""
    group = divided(tile, sizes.by_group)
    in_group = tile - group * (GROUP_M * tl.cdiv(sizes.n, BLOCK_N))
    first_m = group * GROUP_M
    group_m = min(tl.cdiv(sizes.m, BLOCK_M) - first_m, GROUP_M)
    tile_n = tl.where(group_m == GROUP_M, in_group // GROUP_M, divided(in_group, sizes.by_rest))
    return (first_m + in_group - tile_n * group_m) * BLOCK_M, tile_n * BLOCK_N


@tlx_xdsl.jit
def load_tile(desc, buffer, row, column, full, COLUMNS: tl.constexpr):
    """Load the tile of a matrix at (row, column); the descriptor is of its transpose where it lies by columns."""
    if COLUMNS:
        tlx.async_descriptor_load(desc, buffer, [column, row], full)
    else:
        tlx.async_descriptor_load(desc, buffer, [row, column], full)


@tlx_xdsl.jit
def operand(buffer, COLUMNS: tl.constexpr):
    """The tile in a buffer as the product reads it; extents before its last two are 1."""
    matrix = buffer if len(buffer.shape) == 2 else tlx.local_reshape(buffer, buffer.shape[-2:])
    return tlx.local_trans(matrix) if COLUMNS else matrix


@tlx_xdsl.jit
def tile_rings(dtype: tl.constexpr, form: tl.constexpr):
    """Buffers for the stages: the consumers' parts of the tile of A, and each strip of that of B."""
    tile: tl.constexpr = form.tile
    a_shape: tl.constexpr = (tile.block_k, tile.rows) if form.a_columns else (tile.rows, tile.block_k)
    a = tlx.local_alloc(a_shape, dtype, tile.parts * tile.stages)
    shapes: tl.constexpr = [
        (columns, tile.block_k) if form.b_columns else (tile.block_k, columns) for columns in tile.strips
    ]
    return a, [tlx.local_alloc(shape, dtype, tile.stages) for shape in shapes]


@tlx_xdsl.jit
def ring_of(tiles, form: tl.constexpr, rank=0):
    """The ring of `tile_rings`, with barriers. A stage is given back when the next one is being multiplied."""
    tile: tl.constexpr = form.tile
    tl.static_assert(tile.stages >= 2, "a stage is given back when the next one is being multiplied")
    full = tlx.alloc_barriers(tile.stages)
    empty = tlx.alloc_barriers(tile.stages, arrive_count=tile.parts)
    others: tl.constexpr = tile.parts * (tile.cluster - 1)
    far = tlx.alloc_barriers(tile.stages, arrive_count=others) if tile.cluster > 1 else None
    return Ring(tiles[0], tiles[1], full, empty, form, far, rank)


@tlx_xdsl.jit
def load_step(ring, a_desc, b_descs, stage, row, columns, off_k):
    """Load what one step needs to a stage: the parts of the tile of A from `row` on, and each strip of that of B."""
    form: tl.constexpr = ring.form
    tile: tl.constexpr = form.tile
    tlx.barrier_expect_bytes(ring.full[stage], tile.elements * tlx.size_of(tlx.dtype_of(a_desc)))
    load_tile(a_desc, ring.a[stage * tile.parts], row, off_k, ring.full[stage], form.a_columns)
    if tile.cluster == 1:
        for strip in tl.static_range(len(b_descs)):
            load_tile(b_descs[strip], ring.b[strip][stage], off_k, columns[strip], ring.full[stage], form.b_columns)
    elif stage % tile.cluster == ring.rank:
        for strip in tl.static_range(len(b_descs)):
            where = [columns[strip], off_k] if form.b_columns else [off_k, columns[strip]]
            every: tl.constexpr = list(range(tile.cluster))
            tlx.async_descriptor_load(
                b_descs[strip], ring.b[strip][stage], where, ring.full[stage], multicast_targets=every
            )  # fmt: skip
    for part in tl.static_range(1, tile.parts):
        place = row + part * tile.rows
        load_tile(a_desc, ring.a[stage * tile.parts + part], place, off_k, ring.full[stage], form.a_columns)


@tlx_xdsl.jit
def wait_for_stage(ring, stage, phase):
    """Wait until a stage can be loaded to."""
    CLUSTER: tl.constexpr = ring.form.tile.cluster
    tlx.barrier_wait(ring.empty[stage], phase ^ 1)
    if CLUSTER > 1 and stage % CLUSTER == ring.rank:
        tlx.barrier_wait(ring.far[stage], phase ^ 1)


@tlx_xdsl.jit
def load_steps(ring, a_desc, b_descs, stage, phase, row, columns, first, last):
    """Producer: load the steps from `first` to `last` of a tile, from a stage on, and return the place after them."""
    for k in range(first, last):
        wait_for_stage(ring, stage, phase)
        load_step(ring, a_desc, b_descs, stage, row, columns, k * ring.form.tile.block_k)
        stage, phase = next_place(stage, phase, ring.form.tile.stages)
    return stage, phase


@tlx_xdsl.jit
def released(ring, stage):
    """Give a stage back to whoever loads to it."""
    CLUSTER: tl.constexpr = ring.form.tile.cluster
    if CLUSTER > 1 and stage % CLUSTER != ring.rank:
        tlx.barrier_arrive(ring.far[stage], 1, stage % CLUSTER)
    tlx.barrier_arrive(ring.empty[stage])


@tlx_xdsl.jit
def products(ring, stage, sums, A_PART: tl.constexpr, B_PART: tl.constexpr):
    """Issue the products of part A_PART of a stage with part B_PART of each strip; new sums where `sums` is empty."""
    form: tl.constexpr = ring.form
    a = operand(ring.a[stage * form.tile.parts + A_PART], form.a_columns)
    return [
        tlx.async_dot(
            a,
            operand(ring.b[strip][stage * form.tile.b_parts + B_PART], form.b_columns),
            sums[strip] if len(sums) else None,
        )
        for strip in range(len(ring.b))
    ]


@tlx_xdsl.jit
def waited(sums, STEPS: tl.constexpr):
    """Wait until the products of at most `STEPS` steps are in flight."""
    return [tlx.async_dot_wait(STEPS * len(sums), each) for each in sums]


@tlx_xdsl.jit
def multiply_steps(ring, stage, phase, first, last, A_PART: tl.constexpr = 0, B_PART: tl.constexpr = 0):
    """Multiply the steps from `first` to `last` of a tile, at least one, from a stage on.

    Returns the sums of each strip, whose last products are in flight; the stage that these read, to be given back; the
    next stage and its phase.
    """
    # The first product overwrites the sums: no zeros, and no condition in the loop.
    tlx.barrier_wait(ring.full[stage], phase)
    sums = products(ring, stage, (), A_PART, B_PART)
    before = stage
    stage, phase = next_place(stage, phase, ring.form.tile.stages)
    for _ in range(first + 1, last):
        tlx.barrier_wait(ring.full[stage], phase)
        sums = products(ring, stage, sums, A_PART, B_PART)
        # One step's products stay in flight; those before are done, so their stage can be refilled.
        sums = waited(sums, 1)
        released(ring, before)
        before = stage
        stage, phase = next_place(stage, phase, ring.form.tile.stages)
    return sums, before, stage, phase


@tlx_xdsl.jit
def multiply_tile(ring, stage, phase, first, last, A_PART: tl.constexpr = 0, B_PART: tl.constexpr = 0):
    """The sums of each strip over the steps from `first` to `last`, and the place after them: all is given back."""
    sums, before, stage, phase = multiply_steps(ring, stage, phase, first, last, A_PART, B_PART)
    sums = waited(sums, 0)
    released(ring, before)
    return sums, stage, phase


@tlx_xdsl.jit
def multiply_in_turn(ring, tile, tiles, steps, CONSUMER: tl.constexpr):
    """The sums of a program's tile number `tile` by one of two consumers, which have every second one each.

    The consumers' stages follow each other in the one ring, in the order in which the consumers take turns. Named
    barrier c is "consumer c may multiply". A consumer waits for its turn before the first product of a tile and gives
    the turn to the other one when it has issued the last. Tile 0 needs no turn, and after the last tile of the
    program no consumer is called, so each barrier completes as often as it is waited for. Returns the sums, whose last
    product is in flight, and the stage that it reads, to be given back.
    """
    # The other consumer's steps lie between this one's tiles.
    stage, phase = tlx.get_bufidx_phase(tile * steps, ring.form.tile.stages)
    if tile > 0:
        tlx.named_barrier_wait(CONSUMER, TURN_THREADS)
    sums, last, _, _ = multiply_steps(ring, stage, phase, 0, steps)
    if tile + 1 < tiles:
        tlx.named_barrier_arrive(1 - CONSUMER, TURN_THREADS)
    return sums, last


@tlx_xdsl.jit
def multiply_item(ring, stage, phase, item, items, first, last, CONSUMER: tl.constexpr):
    """The sums of a consumer's part of a program's item by either schedule, and the next place in the ring.

    In turns there are whole tiles alone, and the place follows from their number.
    """
    if ring.form.tile.schedule == "pingpong":
        sums, before = multiply_in_turn(ring, item, items, last, CONSUMER)
        sums = waited(sums, 0)
        released(ring, before)
        return sums, stage, phase
    return multiply_tile(ring, stage, phase, first, last, CONSUMER)


@tlx_xdsl.jit
def halves(blocks):
    """The left halves and the right halves of blocks."""
    shape: tl.constexpr = (blocks[0].shape[0], 2, blocks[0].shape[1] // 2)
    both = [tl.split(tl.permute(tl.reshape(block, shape), (0, 2, 1))) for block in blocks]
    return [left for left, _ in both], [right for _, right in both]


@tlx_xdsl.jit
def by_parts(
    blocks, column, finish: tl.constexpr, state, FIXED: tl.constexpr, WIDTH: tl.constexpr, PART: tl.constexpr = 0
):  # fmt: skip
    """Call `finish(blocks, column, state, FIXED, PART)` for each part of WIDTH columns, from left to right.

    `column` is that of the first one, PART its number. FIXED is what `finish` has to know when it is compiled.
    """
    COLUMNS: tl.constexpr = blocks[0].shape[1]
    if COLUMNS > WIDTH:
        HALF: tl.constexpr = COLUMNS // 2
        lefts, rights = halves(blocks)
        by_parts(lefts, column, finish, state, FIXED, WIDTH, PART)
        by_parts(rights, column + HALF, finish, state, FIXED, WIDTH, PART + HALF // WIDTH)
    else:
        finish(blocks, column, state, FIXED, PART)


@tlx_xdsl.jit
def store_part(part, c_desc, buffer, where, IS_FREE: tl.constexpr, COLUMNS: tl.constexpr = False):
    """Store a part of C, or with COLUMNS its transpose, from registers, through a buffer that only this task uses."""
    if not IS_FREE:
        tlx.async_descriptor_store_wait(0)
    tlx.local_store(operand(buffer, COLUMNS), part)
    tlx.fence_async_shared()  # TMA reads through the async proxy what the threads wrote
    tlx.async_descriptor_store(c_desc, buffer, where)


# --- division ---------------------------------------------------------------------------------------------------------
#
# Division by a number that only the launch knows, in a kernel: a product and a shift instead of some 25 instructions.
#
#     by = divisor(tiles)                       # on the host, once for a launch
#     quotient = divided(tile, by)              # in the kernel
#
# Granlund and Montgomery, "Division by Invariant Integers using Multiplication" (PLDI 1994), section 4, for dividends
# of 31 bits: with l = ceil(log2 d) and m = ceil(2^(31 + l) / d), which has 32 bits, n // d = n * m // 2^(31 + l).


def divisor(number: int) -> tuple[int, int]:
    """The factor (its 32 bits as a signed number) and the shift (bits) with which `divided` divides by `number`.

    Raises ValueError for a number outside of 1 to 2^31 - 1.
    """
    if not 1 <= number < 1 << 31:
        raise ValueError(f"expected a divisor of 1 to 2^31 - 1, got {number}")
    if number == 1:
        return 0, 0
    bits = (number - 1).bit_length()
    return -(-(1 << (31 + bits)) // number) - (1 << 32), bits - 1


def sizes_of(shape: tuple[int, int, int], tiles: tuple[int, int], group_m: int) -> Sizes:
    """The sizes of C (m, n) with sums of k products, with so many tiles along M and N, `group_m` along M together."""
    return Sizes(*shape, divisor(group_m * tiles[1]), divisor(tiles[0] % group_m or 1))


@tlx_xdsl.jit
def divided(n, by):
    """Return n // d for 0 <= n < 2^31, where `by` is what `divisor` found for d."""
    factor, shift = by
    quotient = tl.umulhi(n.to(tl.uint32, bitcast=True), factor.to(tl.uint32, bitcast=True)) >> shift
    # No factor of 32 bits divides by 1.
    return tl.where(factor == 0, n, quotient.to(tl.int32, bitcast=True))
