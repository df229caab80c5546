"""Choosing register layouts: the default blocked layout and the wgmma accumulator layout."""

from __future__ import annotations

from tlx_xdsl.layouts.encodings import BlockedLayout, Ints, NvidiaMmaLayout

WARP_SIZE = 32
"""Threads of a warp, on every NVIDIA GPU."""

WARPS_PER_WARP_GROUP = 4
"""wgmma is issued by four consecutive warps (PTX ISA, "Asynchronous warpgroup level matrix instructions")."""


def _fill(budget: int, shape: Ints) -> Ints:
    """Deal `budget` (a power of two) to the dimensions of `shape`, fastest (last) first.

    What no dimension needs goes to the slowest one: the product is always `budget`.
    """
    dealt = [1] * len(shape)
    for dim in reversed(range(len(shape))):
        dealt[dim] = min(budget, shape[dim])
        budget //= dealt[dim]
    dealt[0] *= budget
    return tuple(dealt)


def default_blocked_layout(shape: Ints, num_warps: int) -> BlockedLayout:
    """The layout of a tensor that nobody has an opinion on: one element per thread, the last dimension fastest.

    `shape` is in elements (powers of two); `num_warps` is that of the region that holds the value.
    Stock Triton picks the same layout (`getDefaultBlockedEncoding`), so that its own passes find the form they expect.
    """
    threads = _fill(WARP_SIZE, shape)
    left = tuple(max(1, size // lanes) for size, lanes in zip(shape, threads, strict=True))
    warps = _fill(num_warps, left)
    order = tuple(reversed(range(len(shape))))
    return BlockedLayout((1,) * len(shape), threads, warps, order)


def wgmma_accumulator_layout(shape: Ints, operand_bits: int, num_warps: int) -> NvidiaMmaLayout:
    """The layout of a wgmma accumulator of `shape` = (M, N) elements.

    `operand_bits` is the width of an element of A and B; one instruction covers 256 bits of K. N of the instruction
    is the largest multiple of 8 up to 256 that divides N (PTX ISA, "wgmma.mma_async", the shapes m64nNkK).
    Every warp group owns whole 64-row slabs, so warps tile M only.

    Raises ValueError when no wgmma instruction fits.
    """
    m, n = shape
    if num_warps % WARPS_PER_WARP_GROUP:
        raise ValueError(f"wgmma needs a multiple of {WARPS_PER_WARP_GROUP} warps, found num_warps = {num_warps}")
    if m % 64:
        raise ValueError(f"wgmma needs M to be a multiple of 64, found an accumulator of {m}x{n}")
    instr_n = next((width for width in range(min(n, 256) // 8 * 8, 0, -8) if n % width == 0), 0)
    if not instr_n:
        raise ValueError(f"wgmma needs N to be a multiple of 8, found an accumulator of {m}x{n}")
    return NvidiaMmaLayout(3, 0, (num_warps, 1), (), (16, instr_n, 256 // operand_bits))
