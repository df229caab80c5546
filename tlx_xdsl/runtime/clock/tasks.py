"""Warps of a kernel by task, as stock Triton numbers them."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.dialects import ttg

KERNEL = "kernel"
"""The name of the warps of a kernel without tasks."""


def warp_ranges(module: ModuleOp, num_warps: int) -> list[tuple[int, int, str]]:
    """Return the first warp, the number of warps and the name of each task; `num_warps` are those outside of tasks.

    The default task has the first warps. Then come the partitions, those with more warps first, as Triton's pass
    `tritongpu-allocate-warp-groups` has it. Of several places with tasks the one with most partitions counts.
    """
    places = [op for op in module.walk() if isinstance(op, ttg.WarpSpecializeOp)]
    if not places:
        return [(0, num_warps, KERNEL)]
    warps = max((op.num_warps for op in places), key=len)
    found = [(0, num_warps, "default")]
    first = num_warps
    # `sorted` keeps the order of those with equal numbers.
    for number in sorted(range(len(warps)), key=lambda each: -warps[each]):
        found.append((first, warps[number], f"partition {number}"))
        first += warps[number]
    return found
