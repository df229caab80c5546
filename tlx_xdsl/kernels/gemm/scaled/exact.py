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
from tlx_xdsl.kernels.rings import TURN_THREADS, next_place

from ..device import store_part
from .scales import added, scaled, staged_scales, step_scales, tile_scales


@tlx_xdsl.jit
def strip_sums(a_tile, b_tile, CONSUMER: tl.constexpr, TURNS: tl.constexpr):
    """The sums of one step and one strip, in flight."""
    if TURNS:
        tlx.named_barrier_wait(CONSUMER, TURN_THREADS)
    sums = tlx.async_dot(a_tile, tlx.local_trans(b_tile))
    if TURNS:
        tlx.named_barrier_arrive(1 - CONSUMER, TURN_THREADS)
    return sums


@tlx_xdsl.jit
def end_scales(
    scales, row, column, M, N, ROWS: tl.constexpr, STRIP_N: tl.constexpr, STRIPS: tl.constexpr,
    PER_ROW: tl.constexpr, PER_BLOCK: tl.constexpr,
):  # fmt: skip
    """`tile_scales`, or zeros that are not used."""
    if PER_BLOCK:
        return 0.0, 0.0, 0.0
    return tile_scales(scales, row, column, M, N, ROWS, STRIP_N, STRIPS, PER_ROW)


@tlx_xdsl.jit
def store_strip(
    total, by_rows, by_columns, c_desc, buffer, row, column,
    PER_ROW: tl.constexpr, PER_BLOCK: tl.constexpr, IS_FREE: tl.constexpr,
):  # fmt: skip
    """Multiply a strip by the scales of the tile, if they are no blocks', and store it."""
    if not PER_BLOCK:
        total = scaled(total, by_rows, by_columns, PER_ROW)
    store_part(total.to(tlx.dtype_of(c_desc)), c_desc, buffer, row, column, IS_FREE)


@tlx_xdsl.jit
def exact_tile(
    buffers, barriers, scales, staged, c_desc, row, column, M, N, num_k, stage, phase,
    A_PARTS: tl.constexpr, A_PART: tl.constexpr, B_PARTS: tl.constexpr, B_PART: tl.constexpr, BLOCKS: tl.constexpr,
    NUM_STAGES: tl.constexpr, STRIPS: tl.constexpr, BUFFERS: tl.constexpr, CONSUMER: tl.constexpr,
    PER_ROW: tl.constexpr, PER_BLOCK: tl.constexpr, STAGED: tl.constexpr, TURNS: tl.constexpr,
):  # fmt: skip
    """Compute and store a consumer's part of a tile, from a stage on.

    The consumer reads part A_PART of the A_PARTS that a stage has of A, and the strips from B_PART on of the B_PARTS of
    B. Returns the next stage and its phase.
    """
    a, b, c = buffers
    full, empty = barriers
    FIRST: tl.constexpr = CONSUMER * BUFFERS
    ROWS: tl.constexpr = a[0].shape[0]
    STRIP_N: tl.constexpr = b[0].shape[0]
    left = tl.zeros((ROWS, STRIP_N), tl.float32)
    right = left
    if not STAGED:
        by_rows, by_left, by_right = step_scales(scales, row, column, M, N, 0, ROWS, STRIPS, STRIP_N, PER_BLOCK)
    for k in range(1, num_k):
        if not STAGED:
            following = step_scales(scales, row, column, M, N, k, ROWS, STRIPS, STRIP_N, PER_BLOCK)
        tlx.barrier_wait(full[stage * STRIPS], phase)
        a_tile = a[stage * A_PARTS + A_PART]
        step = strip_sums(a_tile, b[stage * B_PARTS + B_PART], CONSUMER, TURNS)
        if STAGED:
            by_rows, by_left, by_right = staged_scales(
                staged, stage, k - 1, scales[2], A_PART, B_PART, ROWS, STRIPS, STRIP_N, BLOCKS
            )  # fmt: skip
        step = tlx.async_dot_wait(0, step)
        if STRIPS == 1:
            tlx.barrier_arrive(empty[stage])
        left = added(left, step, by_rows, by_left, PER_BLOCK)
        if STRIPS == 2:
            tlx.barrier_wait(full[stage * STRIPS + 1], phase)
            step = strip_sums(a_tile, b[stage * B_PARTS + B_PART + 1], CONSUMER, TURNS)
            step = tlx.async_dot_wait(0, step)
            tlx.barrier_arrive(empty[stage])
            right = added(right, step, by_rows, by_right, PER_BLOCK)
        if not STAGED:
            by_rows, by_left, by_right = following
        stage, phase = next_place(stage, phase, NUM_STAGES)

    of_tile = end_scales(scales, row, column, M, N, ROWS, STRIP_N, STRIPS, PER_ROW, PER_BLOCK)
    if not STAGED:
        # Loaded again (from the L1 cache), not carried: Triton would give what the loop carries the layout of a load,
        # and convert it here.
        by_rows, by_left, by_right = step_scales(scales, row, column, M, N, num_k - 1, ROWS, STRIPS, STRIP_N, PER_BLOCK)
    tlx.barrier_wait(full[stage * STRIPS], phase)
    a_tile = a[stage * A_PARTS + A_PART]
    step = strip_sums(a_tile, b[stage * B_PARTS + B_PART], CONSUMER, TURNS)
    if STAGED:
        by_rows, by_left, by_right = staged_scales(
            staged, stage, num_k - 1, scales[2], A_PART, B_PART, ROWS, STRIPS, STRIP_N, BLOCKS
        )  # fmt: skip
    step = tlx.async_dot_wait(0, step)
    left = added(left, step, by_rows, by_left, PER_BLOCK)
    if STRIPS == 2:
        tlx.barrier_wait(full[stage * STRIPS + 1], phase)
        step = strip_sums(a_tile, b[stage * B_PARTS + B_PART + 1], CONSUMER, TURNS)
    else:
        tlx.barrier_arrive(empty[stage])
    store_strip(left, of_tile[0], of_tile[1], c_desc, c[FIRST], row, column, PER_ROW, PER_BLOCK, False)
    if STRIPS == 2:
        step = tlx.async_dot_wait(0, step)
        tlx.barrier_arrive(empty[stage])
        right = added(right, step, by_rows, by_right, PER_BLOCK)
        store_strip(
            right, of_tile[0], of_tile[2], c_desc, c[FIRST + BUFFERS - 1], row, column + STRIP_N,
            PER_ROW, PER_BLOCK, BUFFERS == 2,
        )  # fmt: skip
    return next_place(stage, phase, NUM_STAGES)
