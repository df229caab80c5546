"""Scales and sums of scaled products, in kernels: what the consumers of `device` do with their sums.

Scales are in memory, in f32, in any order: `strides` are the elements between the scales of neighbours along the rows
and the columns of A, the rows and the columns of B, where "neighbours" are what has a scale each: elements or blocks.

Loads are of what lies inside of the matrices: a row or a column outside takes the scale of the last one, is computed,
and is not stored.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ..device import store_part
from . import config as scaled_gemm_config

STEP = tl.constexpr(scaled_gemm_config.STEP)
LINE = tl.constexpr(scaled_gemm_config.LINE)

START = tl.constexpr(4)
"""Copies of scales begin at multiples of so many of them: 16 bytes."""


@tlx_xdsl.jit
def step_scales(
    scales, row, column, M, N, k,
    ROWS: tl.constexpr, STRIPS: tl.constexpr, STRIP_N: tl.constexpr, PER_BLOCK: tl.constexpr,
):  # fmt: skip
    """The factors of the sums of step k: of the rows, and of the one or two strips of columns from `column` on."""
    if PER_BLOCK:
        scale_a, scale_b, strides = scales
        rows = tl.minimum(row + tl.arange(0, ROWS), M - 1)
        by_rows = tl.load(scale_a + rows * strides[0] + k * strides[1])
        scale_b += k * strides[2]
        first = tl.load(scale_b + tl.minimum(column, N - 1) // STEP * strides[3])
        second = first
        if STRIPS == 2:
            second = tl.load(scale_b + tl.minimum(column + STRIP_N, N - 1) // STEP * strides[3])
        return by_rows, first, second
    return 0.0, 0.0, 0.0


@tlx_xdsl.jit
def load_scales(scale_a, scale_b, strides, staged, barrier, stage, row, column, k, BLOCKS: tl.constexpr):
    """Load the scales of step k of a tile to a stage: those of its rows, and for each of its BLOCKS of 128 columns a
    line with its scale among the first four: TMA writes to multiples of 128 bytes, and reads from multiples of 16.
    """
    by_rows, by_blocks = staged
    tlx.async_descriptor_load(scale_a, by_rows[stage], [row + k * strides[1]], barrier)
    for block in tl.static_range(BLOCKS):
        at = (column // STEP + block) * strides[3] + k * strides[2] // START * START
        tlx.async_descriptor_load(scale_b, by_blocks[stage * BLOCKS + block], [at], barrier)


@tlx_xdsl.jit
def scale_at(line, at):
    """Read one of the first four numbers of a line."""
    some = tlx.local_load(tlx.local_slice(line, [0], [START]))
    return tl.sum(tl.where(tl.arange(0, START) == at, some, 0.0), 0)


@tlx_xdsl.jit
def staged_scales(
    staged, stage, k, strides, A_PART: tl.constexpr, B_PART: tl.constexpr, ROWS: tl.constexpr, STRIPS: tl.constexpr,
    STRIP_N: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """`step_scales` of what `load_scales` brought for a consumer's rows and its strips from B_PART on."""
    by_rows, by_blocks = staged
    at = k * strides[2] % START
    rows = tlx.local_load(tlx.local_slice(by_rows[stage], [A_PART * ROWS], [ROWS]))
    BLOCK: tl.constexpr = B_PART * STRIP_N // STEP
    first = scale_at(by_blocks[stage * BLOCKS + BLOCK], at)
    second = first
    SECOND_BLOCK: tl.constexpr = (B_PART + 1) * STRIP_N // STEP
    if STRIPS == 2 and SECOND_BLOCK != BLOCK:
        second = scale_at(by_blocks[stage * BLOCKS + SECOND_BLOCK], at)
    return rows, first, second


@tlx_xdsl.jit
def added(total, step, by_rows, by_strip, PER_BLOCK: tl.constexpr):
    """The sums with those of a step, in one instruction per element that stays where it is.

    Written as PTX with effects: LLVM would put additions off until their sums are needed, which is after the products
    of the next strip, whose registers are those of this one (a kernel with 256 columns then spills 24 of them).
    """
    if PER_BLOCK:
        factors = tl.broadcast_to((by_rows * by_strip)[:, None], step.shape)
        return tl.inline_asm_elementwise(
            "fma.rn.f32 $0, $1, $2, $3;", "=r,r,r,r", [step, factors, total], tl.float32, False, 1
        )  # fmt: skip
    return tl.inline_asm_elementwise("add.rn.f32 $0, $1, $2;", "=r,r,r", [step, total], tl.float32, False, 1)


@tlx_xdsl.jit
def tile_scales(
    scales, row, column, M, N,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, STRIPS: tl.constexpr, PER_ROW: tl.constexpr,
):  # fmt: skip
    """The scales of a tile, to be loaded before its sums are complete: of its rows, and of the columns of each strip.

    Where the operands have one scale each, their product instead of the first, and nothing else.
    """
    scale_a, scale_b, strides = scales
    if PER_ROW:
        rows = tl.minimum(row + tl.arange(0, ROWS), M - 1)
        columns = column + tl.arange(0, COLUMNS)
        by_rows = tl.load(scale_a + rows * strides[0])
        left = tl.load(scale_b + tl.minimum(columns, N - 1) * strides[3])
        right = left
        if STRIPS == 2:
            right = tl.load(scale_b + tl.minimum(columns + COLUMNS, N - 1) * strides[3])
        return by_rows, left, right
    return tl.load(scale_a) * tl.load(scale_b), 0.0, 0.0


@tlx_xdsl.jit
def scaled(sums, by_rows, by_columns, PER_ROW: tl.constexpr):
    """Sums times `tile_scales`."""
    return sums * by_rows[:, None] * by_columns[None, :] if PER_ROW else sums * by_rows


@tlx_xdsl.jit
def store_scaled(
    sums, scales, c_desc, c, first, row, column, STRIPS: tl.constexpr, BUFFERS: tl.constexpr, PER_ROW: tl.constexpr
):
    """Scale a tile and store it in STRIPS parts, in the type of `c_desc`, through the buffers from `first` on."""
    dtype: tl.constexpr = tlx.dtype_of(c_desc)
    by_rows, by_left, by_right = scales
    if STRIPS == 1:
        store_part(scaled(sums, by_rows, by_left, PER_ROW).to(dtype), c_desc, c[first], row, column, False)
    else:
        STRIP_N: tl.constexpr = sums.shape[1] // 2
        left, right = tl.split(tl.permute(tl.reshape(sums, (sums.shape[0], 2, STRIP_N)), (0, 2, 1)))
        store_part(scaled(left, by_rows, by_left, PER_ROW).to(dtype), c_desc, c[first], row, column, False)
        # The wait before the first part was for all stores of this task.
        right = scaled(right, by_rows, by_right, PER_ROW).to(dtype)
        store_part(right, c_desc, c[first + BUFFERS - 1], row, column + STRIP_N, BUFFERS == 2)
