"""The parts that the GEMM kernels for Hopper share: where a tile lies, loads by TMA, the epilogue's stores.

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

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

from ..rings import next_place


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
def operand(buffer, COLUMNS: tl.constexpr):
    """The tile in a buffer as the product reads it."""
    return tlx.local_trans(buffer) if COLUMNS else buffer


@tlx_xdsl.jit
def multiply_steps(
    tiles, barriers, stage, phase, num_k, NUM_STAGES: tl.constexpr, A_COLUMNS: tl.constexpr, B_COLUMNS: tl.constexpr,
    A_PARTS: tl.constexpr = 1, A_PART: tl.constexpr = 0, B_PARTS: tl.constexpr = 1, B_PART: tl.constexpr = 0,
):  # fmt: skip
    """Multiply num_k steps from a stage on: part A_PART of the A_PARTS that a stage has of A, and the same of B.

    Returns the sums, whose last product is in flight; the stage that it reads, to be given back; the next stage and its
    phase.
    """
    a, b = tiles
    full, empty = barriers
    tlx.barrier_wait(full[stage], phase)
    # The first product overwrites the sums: no zeros, and no condition in the loop.
    a_tile, b_tile = operand(a[stage * A_PARTS + A_PART], A_COLUMNS), operand(b[stage * B_PARTS + B_PART], B_COLUMNS)
    sums = tlx.async_dot(a_tile, b_tile)
    last = stage
    stage, phase = next_place(stage, phase, NUM_STAGES)
    for _ in range(1, num_k):
        tlx.barrier_wait(full[stage], phase)
        b_tile = operand(b[stage * B_PARTS + B_PART], B_COLUMNS)
        sums = tlx.async_dot(operand(a[stage * A_PARTS + A_PART], A_COLUMNS), b_tile, sums)
        # One product stays in flight; the one before it is done, so its stage can be refilled.
        sums = tlx.async_dot_wait(1, sums)
        tlx.barrier_arrive(empty[last])
        last = stage
        stage, phase = next_place(stage, phase, NUM_STAGES)
    return sums, last, stage, phase


@tlx_xdsl.jit
def store_part(part, c_desc, buffer, row, column, IS_FREE: tl.constexpr):
    """Store columns of C from registers, through a buffer that only this task uses."""
    if not IS_FREE:
        tlx.async_descriptor_store_wait(0)
    tlx.local_store(buffer, part)
    tlx.fence_async_shared()  # TMA reads through the async proxy what the threads wrote
    tlx.async_descriptor_store(c_desc, buffer, [row, column])


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


def order_of_tiles(tiles_m: int, tiles_n: int, group_m: int) -> dict[str, int]:
    """The arguments with which a kernel finds its tiles, `group_m` of them along M (`gemm_device.tile_offsets`)."""
    group, rest = divisor(group_m * tiles_n), divisor(tiles_m % group_m or 1)
    return {"GROUP_FACTOR": group[0], "GROUP_SHIFT": group[1], "REST_FACTOR": rest[0], "REST_SHIFT": rest[1]}


@tlx_xdsl.jit
def divided(n, by):
    """Return n // d for 0 <= n < 2^31, where `by` is what `divisor` found for d."""
    factor, shift = by
    quotient = tl.umulhi(n.to(tl.uint32, bitcast=True), factor.to(tl.uint32, bitcast=True)) >> shift
    # No factor of 32 bits divides by 1.
    return tl.where(factor == 0, n, quotient.to(tl.int32, bitcast=True))
