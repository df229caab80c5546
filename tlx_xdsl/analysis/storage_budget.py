"""Whether the memory of a kernel fits its target, and who takes it when it does not."""

from __future__ import annotations

from typing import get_args

from tlx_xdsl.analysis.storage_map import NAMES, UNITS, Memory, Region, StorageMap
from tlx_xdsl.text.diagnostics import error_at, report_warning

TOP = 5
"""Regions that are named when a kernel is over budget."""


def certain(map_: StorageMap, memory: Memory) -> int:
    """Bytes or columns that must exist at the same time, wherever stock Triton puts the regions.

    Regions that the partitions of one `ttg.warp_specialize` are given live while it runs.
    """
    regions = map_.of(memory)
    together = {number for region in regions for number in region.captured_by}
    sums = [sum(region.size for region in regions if number in region.captured_by) for number in together]
    return max([*(region.size for region in regions), *sums], default=0)


def check_budget(map_: StorageMap) -> None:
    """Say so when the regions of a kernel are larger than its target's memory.

    Raises CompilationError, located at the largest region, when they can't fit; reports a warning there when they
    fit only if stock Triton finds regions that never live at the same time.
    """
    for memory in get_args(Memory):
        used, limit = map_.used(memory), map_.limit(memory)
        if used <= limit:
            continue
        regions = sorted(map_.of(memory), key=lambda region: -region.size)
        rest = regions[TOP:]
        notes = [_contribution(region) for region in regions[:TOP]]
        if rest:
            notes.append(f"{sum(region.size for region in rest):,} {UNITS[memory]} in {len(rest)} more allocations")
        message = f"{NAMES[memory]}: '{map_.kernel}' needs {{:,}} {UNITS[memory]}, sm_{map_.capability} has {limit:,}"
        needed = certain(map_, memory)
        if needed > limit:
            raise error_at(regions[0].op, message.format(needed), notes)
        warning = f"{message.format(used)}: it fits only where stock Triton lays allocations over each other"
        report_warning(regions[0].op, warning, notes)


def _contribution(region: Region) -> str:
    parts = f" for {', '.join(array.name for array in region.arrays)}" if region.is_shared else ""
    if not region.is_shared and len(region.arrays[0].buffers) > 1:
        array = region.arrays[0]
        parts = f", {len(array.buffers)} buffers of {array.unit:,}"
    where = "" if region.place is None else f" at {region.place}"
    return f"{region.size:,} {UNITS[region.memory]}: {region.name}{parts}{where}"
