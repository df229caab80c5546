"""Parts of the grouped GEMM kernels: the place of a tile, and its end.

Ragged descriptors. Rows of groups that follow each other are one tensor, and a group ends where only the kernel knows,
but TMA cuts at the end of a tensor alone. So the tensor (rows, columns) is described as one of (2^31, 2^31, 2^30,
columns) with the strides (2^34 - s, s, s, 1), s the distance of two rows in elements. Element (2^30, end, 2^30 - n + i,
column) lies

    2^30 (2^34 - s) + end s + (2^30 - n + i) s = 2^64 + (end - n + i) s

elements after the first one of its column, and addresses have 64 bits: that is row end - n + i, and from i = n on the
third coordinate is outside of its dimension, where TMA reads zeros and writes nothing. A block that begins n rows
before the end of its group is cut there, with one descriptor for all groups. (The idea is that of
triton.tools.ragged_tma.)
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ...rings import next_place
from ..device import store_part

FAR = tl.constexpr(1 << 30)
"""Rows that a ragged descriptor says that a group has."""


@tlx_xdsl.jit
def cut_at(end, row, BLOCK: tl.constexpr):
    """The first coordinates of the block of BLOCK rows at `row` in a ragged descriptor, cut at `end`.

    A block that begins at the end or later is outside of the tensor wholly.
    """
    inside = max(min(end - row, BLOCK), 0)
    return FAR, row + inside, FAR - inside


@tlx_xdsl.jit
def tile_in_group(tile, rows, tiles_n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    """First row and column of a tile of a group with so many rows; tiles go in columns of GROUP_M, for the L2 cache."""
    strip = tile // (GROUP_M * tiles_n)
    in_strip = tile - strip * (GROUP_M * tiles_n)
    strip_m = min(tl.cdiv(rows, BLOCK_M) - strip * GROUP_M, GROUP_M)
    tile_n = in_strip // strip_m
    return (strip * GROUP_M + in_strip - tile_n * strip_m) * BLOCK_M, tile_n * BLOCK_N


@tlx_xdsl.jit
def pass_on(ring, stage, phase, num_k):
    """Give num_k stages back unread, each when it has arrived: earlier, this would count for the turn before."""
    for _ in range(num_k):
        tlx.barrier_wait(ring.full[stage], phase)
        tlx.barrier_arrive(ring.empty[stage])
        stage, phase = next_place(stage, phase, ring.form.tile.stages)
    return stage, phase


@tlx_xdsl.jit
def store_columns(sums, column, state, consumer: tl.constexpr, PART: tl.constexpr):
    """Store a part of a consumer's tile, times the factors of its rows and columns where there are `scales`."""
    desc, c, where, scales, N, tile = state
    BUFFERS: tl.constexpr = tile.buffers
    part = sums[0]
    if scales is not None:
        by_rows, by_columns = scales
        columns = column + tl.arange(0, part.shape[1])
        part = part * by_rows[:, None] * tl.load(by_columns + columns, mask=columns < N, other=0.0)[None, :]
    # The wait before the first part was for all stores of this task.
    IS_FREE: tl.constexpr = PART > 0 and BUFFERS == 2
    buffer = c[consumer * BUFFERS + min(PART, BUFFERS - 1)]
    store_part(part.to(tlx.dtype_of(desc)), desc, buffer, (*where, column), IS_FREE)
