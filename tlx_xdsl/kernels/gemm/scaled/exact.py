"""A consumer's part of a tile with sums per step: exact products of 8-bit floats, and those with scales of blocks.

Each step of 128 products along K is a sum in the tensor cores, and is then added to the f32 sums of the tile; with
scales of blocks it is multiplied in the same instruction. The sums of a step take registers of their own, so a consumer
computes its columns in one strip or two, one after the other, with the registers of one: 128 + 64 of a thread for 64 x
256. While it adds, the tensor cores compute the other consumer's strips: 128 columns take them 256 cycles, additions,
waits and the next issue some 170.

Scales of blocks come with the stage (STAGED), or are loaded from memory one step ahead where TMA can't read them.

With TURNS the consumers issue strips in turns: named barrier c is "consumer c may issue"; consumer 1 calls consumer 0
at the start, and consumer 0 takes the last call at the end. Else both may add at the same time, while the tensor cores
are idle. On an H200 that costs scales of blocks 5 to 7 % in tiles of 128 x 256, other sums less than 1 %.

Each strip has a barrier of its own in a stage. It also keeps ptxas from moving a strip's products to before the
additions of the last strip, whose sums would then take more registers than there are.

The first strip of the last step is stored while the tensor cores compute the second.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ...rings import call_next, next_place, wait_for_turn
from .scales import added, staged_scales, step_scales, store_strip, tile_scales


@tlx_xdsl.jit
def strip_sums(ring, stage, phase, CONSUMER: tl.constexpr, STRIP: tl.constexpr):
    """The sums of one step and one strip of a consumer, in flight; with turns each waits for its own."""
    form: tl.constexpr = ring.form
    STRIPS: tl.constexpr = form.strips
    A_PART: tl.constexpr = CONSUMER if form.tile.parts == 2 else 0
    B_PART: tl.constexpr = CONSUMER if form.tile.b_parts == 2 else 0
    TURNS: tl.constexpr = 2 if form.turns else 1
    tlx.barrier_wait(ring.full[stage * STRIPS + STRIP], phase)
    a = ring.a[stage * form.tile.parts + A_PART]
    b = ring.b[0][(stage * form.tile.b_parts + B_PART) * STRIPS + STRIP]
    wait_for_turn(CONSUMER, TURNS)
    sums = tlx.async_dot(a, tlx.local_trans(b))
    call_next(CONSUMER, TURNS)
    return sums


@tlx_xdsl.jit
def exact_tile(ring, scales, c_desc, c, row, column, num_k, stage, phase, CONSUMER: tl.constexpr):
    """Compute and store a consumer's part of a tile, from a stage on. Returns the next stage and its phase."""
    form: tl.constexpr = ring.form
    STRIPS: tl.constexpr = form.strips
    STAGED: tl.constexpr = form.staged
    PER_BLOCK: tl.constexpr = form.scaling == "blocks"
    BUFFERS: tl.constexpr = form.tile.buffers
    FIRST: tl.constexpr = CONSUMER * BUFFERS
    left = tl.zeros((form.tile.rows, form.tile.part_n), tl.float32)
    right = left
    if not STAGED:
        by_rows, by_left, by_right = step_scales(scales, row, column, 0, form)
    for k in range(1, num_k):
        if not STAGED:
            following = step_scales(scales, row, column, k, form)
        step = strip_sums(ring, stage, phase, CONSUMER, 0)
        if STAGED:
            by_rows, by_left, by_right = staged_scales(scales, stage, k - 1, CONSUMER, form)
        step = tlx.async_dot_wait(0, step)
        if STRIPS == 1:
            tlx.barrier_arrive(ring.empty[stage])
        left = added(left, step, by_rows, by_left, PER_BLOCK)
        if STRIPS == 2:
            step = tlx.async_dot_wait(0, strip_sums(ring, stage, phase, CONSUMER, 1))
            tlx.barrier_arrive(ring.empty[stage])
            right = added(right, step, by_rows, by_right, PER_BLOCK)
        if not STAGED:
            by_rows, by_left, by_right = following
        stage, phase = next_place(stage, phase, form.tile.stages)

    of_tile = tile_scales(scales, row, column, form)
    if not STAGED:
        # Loaded again (from the L1 cache), not carried: Triton would give what the loop carries the layout of a load,
        # and convert it here.
        by_rows, by_left, by_right = step_scales(scales, row, column, num_k - 1, form)
    step = strip_sums(ring, stage, phase, CONSUMER, 0)
    if STAGED:
        by_rows, by_left, by_right = staged_scales(scales, stage, num_k - 1, CONSUMER, form)
    step = tlx.async_dot_wait(0, step)
    left = added(left, step, by_rows, by_left, PER_BLOCK)
    if STRIPS == 2:
        step = strip_sums(ring, stage, phase, CONSUMER, 1)
    else:
        tlx.barrier_arrive(ring.empty[stage])
    store_strip(left, of_tile[0], of_tile[1], c_desc, c[FIRST], row, column, form.scaling, False)
    if STRIPS == 2:
        step = tlx.async_dot_wait(0, step)
        tlx.barrier_arrive(ring.empty[stage])
        right = added(right, step, by_rows, by_right, PER_BLOCK)
        buffer, at = c[FIRST + BUFFERS - 1], column + form.tile.part_n
        store_strip(right, of_tile[0], of_tile[2], c_desc, buffer, row, at, form.scaling, BUFFERS == 2)
    return next_place(stage, phase, form.tile.stages)
