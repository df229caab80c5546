"""Scales and sums of scaled products, in kernels: what the consumers of `device` do with their sums.

Scales are in memory, in f32, in any order. Neighbours are what has a scale each: elements or blocks.

Loads are of what lies inside of the matrices: a row or a column outside takes the scale of the last one, is computed,
and is not stored.
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

from typing import Any, NamedTuple

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ..device import halves, store_part
from . import config as scaled_gemm_config

STEP = tl.constexpr(scaled_gemm_config.STEP)
LINE = tl.constexpr(scaled_gemm_config.LINE)

START = tl.constexpr(4)
"""Copies of scales begin at multiples of so many of them: 16 bytes."""


class Strides(NamedTuple):
    """Elements between the scales of neighbours: along the rows and steps of A, the steps and columns of B."""

    a_rows: Any
    a_steps: Any
    b_steps: Any
    b_columns: Any


class Scales(NamedTuple):
    """Scales in memory of a product of these sizes, and the buffers to which the producer loads them, or None."""

    a: Any
    b: Any
    strides: Any
    sizes: Any
    staged: Any


@tlx_xdsl.jit
def step_scales(scales, row, column, k, form: tl.constexpr):
    """The factors of the sums of step k: of the rows, and of the one or two strips of columns from `column` on."""
    if form.scaling == "blocks":
        strides = scales.strides
        rows = tl.minimum(row + tl.arange(0, form.tile.rows), scales.sizes.m - 1)
        by_rows = tl.load(scales.a + rows * strides.a_rows + k * strides.a_steps)
        scale_b = scales.b + k * strides.b_steps
        first = tl.load(scale_b + tl.minimum(column, scales.sizes.n - 1) // STEP * strides.b_columns)
        second = first
        if form.tile.subtiles == 2:
            column += form.tile.part_n
            second = tl.load(scale_b + tl.minimum(column, scales.sizes.n - 1) // STEP * strides.b_columns)
        return by_rows, first, second
    return 0.0, 0.0, 0.0


@tlx_xdsl.jit
def load_scales(scales, barrier, stage, row, column, k, BLOCKS: tl.constexpr):
    """Load the scales of step k of a tile to a stage: those of its rows, and for each of its BLOCKS of 128 columns a
    line with its scale among the first four: TMA writes to multiples of 128 bytes, and reads from multiples of 16.
    """
    by_rows, by_blocks = scales.staged
    strides = scales.strides
    tlx.async_descriptor_load(scales.a, by_rows[stage], [row + k * strides.a_steps], barrier)
    for block in tl.static_range(BLOCKS):
        at = (column // STEP + block) * strides.b_columns + k * strides.b_steps // START * START
        tlx.async_descriptor_load(scales.b, by_blocks[stage * BLOCKS + block], [at], barrier)


@tlx_xdsl.jit
def scale_at(line, at):
    """Read one of the first four numbers of a line."""
    some = tlx.local_load(tlx.local_slice(line, [0], [START]))
    return tl.sum(tl.where(tl.arange(0, START) == at, some, 0.0), 0)


@tlx_xdsl.jit
def staged_scales(scales, stage, k, CONSUMER: tl.constexpr, form: tl.constexpr):
    """`step_scales` of what `load_scales` brought for a consumer's rows and strips."""
    tile: tl.constexpr = form.tile
    FIRST_ROW: tl.constexpr = CONSUMER * tile.rows if tile.parts == 2 else 0
    COLUMN: tl.constexpr = CONSUMER * tile.columns if tile.b_parts == 2 else 0
    BLOCK: tl.constexpr = COLUMN // STEP
    SECOND_BLOCK: tl.constexpr = (COLUMN + tile.part_n) // STEP
    by_rows, by_blocks = scales.staged
    at = k * scales.strides.b_steps % START
    rows = tlx.local_load(tlx.local_slice(by_rows[stage], [FIRST_ROW], [tile.rows]))
    first = scale_at(by_blocks[stage * form.blocks + BLOCK], at)
    second = first
    if tile.subtiles == 2 and SECOND_BLOCK != BLOCK:
        second = scale_at(by_blocks[stage * form.blocks + SECOND_BLOCK], at)
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
def tile_scales(scales, row, column, form: tl.constexpr):
    """The scales of a tile, to be loaded before its sums are complete: of its rows, and of the columns of each strip.

    Where the operands have one scale each, their product instead of the first, and nothing else; with scales of blocks
    zeros that are not used.
    """
    if form.scaling == "blocks":
        return 0.0, 0.0, 0.0
    if form.scaling == "rows":
        strides, last = scales.strides, scales.sizes.n - 1
        COLUMNS: tl.constexpr = form.tile.part_n
        rows = tl.minimum(row + tl.arange(0, form.tile.rows), scales.sizes.m - 1)
        columns = column + tl.arange(0, COLUMNS)
        by_rows = tl.load(scales.a + rows * strides.a_rows)
        left = tl.load(scales.b + tl.minimum(columns, last) * strides.b_columns)
        right = left
        if form.tile.subtiles == 2:
            right = tl.load(scales.b + tl.minimum(columns + COLUMNS, last) * strides.b_columns)
        return by_rows, left, right
    return tl.load(scales.a) * tl.load(scales.b), 0.0, 0.0


@tlx_xdsl.jit
def store_strip(
    total, by_rows, by_columns, c_desc, buffer, row, column, SCALING: tl.constexpr, IS_FREE: tl.constexpr
):  # fmt: skip
    """Multiply a strip by the scales of the tile, if they are no blocks', and store it."""
    if SCALING == "rows":
        total = total * by_rows[:, None] * by_columns[None, :]
    if SCALING == "tensors":
        total = total * by_rows
    store_part(total.to(tlx.dtype_of(c_desc)), c_desc, buffer, (row, column), IS_FREE)


@tlx_xdsl.jit
def store_scaled(sums, scales, c_desc, c, row, column, consumer: tl.constexpr, form: tl.constexpr):
    """Scale a tile and store it in strips, in the type of `c_desc`, through the buffers of a consumer."""
    BUFFERS: tl.constexpr = form.tile.buffers
    FIRST: tl.constexpr = consumer * BUFFERS
    by_rows, by_left, by_right = scales
    if form.tile.subtiles == 1:
        store_strip(sums, by_rows, by_left, c_desc, c[FIRST], row, column, form.scaling, False)
    else:
        (left,), (right,) = halves((sums,))
        store_strip(left, by_rows, by_left, c_desc, c[FIRST], row, column, form.scaling, False)
        # The wait before the first part was for all stores of this task.
        second = c[FIRST + BUFFERS - 1]
        store_strip(right, by_rows, by_right, c_desc, second, row, column + left.shape[1], form.scaling, BUFFERS == 2)
