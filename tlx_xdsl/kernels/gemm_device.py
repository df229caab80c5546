"""The parts that the GEMM kernels for Hopper share: where a tile lies, loads by TMA, the epilogue's stores.

Layouts. A_COLUMNS says that A lies column by column, B_COLUMNS the same of B: the descriptor is then of the
transposed matrix, whose tile is transposed as it is read, which costs nothing (`wgmma` reads either).

Order of tiles. They go in columns of GROUP_M, so that neighbours share tiles in the L2 cache. Where a tile lies takes
two divisions by numbers that only the launch knows; they stand before a program's first load, so they are made as
products with what `division.divisor` finds for these numbers (200 ns of the 28 us of 2048 x 2048 x 2048 on an H200).

Edges. TMA reads zeros outside of A and B, and leaves out rows of C that are not there; but it writes a row in units of
16 bytes, past its end where that is none (seen on an H200, 2026-11-23).
"""

# What a kernel says is read by our frontend, not run by Python: its types are those of the language.
# pyright: basic, reportOperatorIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportAssignmentType=false, reportGeneralTypeIssues=false

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.kernels.division import divided


@tlx_xdsl.jit
def tile_offsets(tile, M, N, order, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr):
    """First row and column of a C tile; `order` are the divisors of a group's tiles and of the last group's rows."""
    by_group, by_rest = order
    group = divided(tile, by_group)
    in_group = tile - group * (GROUP_M * tl.cdiv(N, BLOCK_N))
    first_m = group * GROUP_M
    group_m = min(tl.cdiv(M, BLOCK_M) - first_m, GROUP_M)
    tile_n = tl.where(group_m == GROUP_M, in_group // GROUP_M, divided(in_group, by_rest))
    return (first_m + in_group - tile_n * group_m) * BLOCK_M, tile_n * BLOCK_N


@tlx_xdsl.jit
def load_tile(desc, buffer, row, column, full, COLUMNS: tl.constexpr):
    """Load the tile of a matrix at (row, column); the descriptor is of its transpose where it lies by columns."""
    if COLUMNS:
        tlx.async_descriptor_load(desc, buffer, [column, row], full)
    else:
        tlx.async_descriptor_load(desc, buffer, [row, column], full)


@tlx_xdsl.jit
def load_step(
    a_desc, b_desc, a, b, full, stage, off_m, off_n, off_k, A_COLUMNS: tl.constexpr, B_COLUMNS: tl.constexpr,
    PARTS: tl.constexpr, PART_M: tl.constexpr, BYTES: tl.constexpr,
):  # fmt: skip
    """Load what one product needs to a stage: the tile of A in PARTS parts of PART_M rows, and that of B."""
    tlx.barrier_expect_bytes(full[stage], BYTES)
    load_tile(a_desc, a[stage * PARTS], off_m, off_k, full[stage], A_COLUMNS)
    load_tile(b_desc, b[stage], off_k, off_n, full[stage], B_COLUMNS)
    for part in tl.static_range(1, PARTS):
        load_tile(a_desc, a[stage * PARTS + part], off_m + part * PART_M, off_k, full[stage], A_COLUMNS)


@tlx_xdsl.jit
def operand(buffer, COLUMNS: tl.constexpr):
    """The tile in a buffer as the product reads it."""
    return tlx.local_trans(buffer) if COLUMNS else buffer


@tlx_xdsl.jit
def store_part(part, c_desc, buffer, row, column, IS_FREE: tl.constexpr):
    """Store columns of C from registers, through a buffer that only this task uses."""
    if not IS_FREE:
        tlx.async_descriptor_store_wait(0)
    tlx.local_store(buffer, part)
    tlx.fence_async_shared()  # TMA reads through the async proxy what the threads wrote
    tlx.async_descriptor_store(c_desc, buffer, [row, column])
