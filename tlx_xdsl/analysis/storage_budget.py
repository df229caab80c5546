"""The check that the memory of a kernel fits its target, and a report of the uses where it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from xdsl.ir import Operation

from tlx_xdsl.errors import OverBudgetError
from tlx_xdsl.targets import target_of
from tlx_xdsl.text.diagnostics import error_at, report_warning

from .storage_map import NAMES, UNITS, Memory, Region, StorageMap

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


@dataclass(frozen=True, slots=True)
class Excess:
    """A memory that a kernel wants more of than its target has."""

    op: Operation
    """The largest region's."""
    is_certain: bool
    """True if it can't fit. Otherwise it fits where stock Triton finds regions that never live at the same time."""
    message: str
    notes: tuple[str, ...]
    """The top contributors, largest first."""
    resource: str
    """The resource that is exceeded, in words."""
    required: int
    """Bytes or columns that must exist at the same time."""
    limit: int
    """Bytes or columns that the target has."""


def excesses(map_: StorageMap) -> list[Excess]:
    """The resources that a kernel requires more of than its target has."""
    return [_excess(map_, memory) for memory in get_args(Memory) if map_.used(memory) > map_.limit(memory)]


def _excess(map_: StorageMap, memory: Memory) -> Excess:
    limit, needed, unit = map_.limit(memory), certain(map_, memory), UNITS[memory]
    regions = sorted(map_.of(memory), key=lambda region: -region.size)
    notes = [_contribution(region) for region in regions[:TOP]]
    if rest := regions[TOP:]:
        notes.append(f"{sum(region.size for region in rest):,} {unit} in {len(rest)} more allocations")
    has = f"{target_of(map_.capability).name} has {limit:,}"
    message = f"'{map_.kernel}' needs {needed:,} {unit} of {NAMES[memory]}, {has}"
    if needed <= limit:
        message = (
            f"'{map_.kernel}' allocates {map_.used(memory):,} {unit} of {NAMES[memory]}, {has}: "
            "it fits only where stock Triton lays allocations over each other"
        )
    return Excess(regions[0].op, needed > limit, message, tuple(notes), NAMES[memory], needed, limit)


def check_budget(map_: StorageMap) -> None:
    """Say so when the regions of a kernel are larger than its target's memory.

    Raises OverBudgetError, located at the largest region, when they can't fit; reports a warning there when they may.
    """
    for excess in excesses(map_):
        if excess.is_certain:
            located = error_at(excess.op, excess.message, excess.notes)
            raise OverBudgetError.of(located, excess.resource, excess.required, excess.limit)
        report_warning(excess.op, excess.message, excess.notes)


def _contribution(region: Region) -> str:
    parts = f" for {', '.join(array.name for array in region.arrays)}" if region.is_shared else ""
    if not region.is_shared and len(region.arrays[0].buffers) > 1:
        array = region.arrays[0]
        parts = f", {len(array.buffers)} buffers of {array.unit:,}"
    where = "" if region.place is None else f" at {region.place}"
    return f"{region.size:,} {UNITS[region.memory]}: {region.name}{parts}{where}"
