"""The storage map: which bytes of shared memory and which columns of tensor memory every buffer of a kernel has.

The regions follow each other in program order. Stock Triton picks the addresses, may lay regions over each
other whose lifetimes do not overlap, and adds what it needs itself (captures of tasks, scratch memory of conversions
and reductions): none of that is counted here. `storage_map_reader` makes the map from the IR.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from xdsl.ir import Operation

from tlx_xdsl.dialects.tlx import StorageAliasSpecOp
from tlx_xdsl.errors import SourceLocation
from tlx_xdsl.targets import target_of

from .buffer_users import Uses, task_order
from .lives import Life, Moments
from .overlap_tree import Group, Leaf, Slot

Memory: TypeAlias = Literal["smem", "tmem"]
UNITS: Mapping[Memory, str] = {"smem": "B", "tmem": "columns"}
"""Units of sizes and offsets."""
NAMES: Mapping[Memory, str] = {"smem": "shared memory", "tmem": "tensor memory"}
STOCK_ALIGNMENT = 16
"""Bytes that stock Triton aligns every allocation in shared memory to, at least (measured with 3.6 to 3.9)."""


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes or columns `start` to `end - 1`, from the start of a region."""

    start: int
    end: int

    @property
    def size(self) -> int:
        """Bytes or columns in it."""
        return self.end - self.start


def spans(leaf: Leaf, slot: Slot) -> list[Span]:
    """The spans of the buffers of an array in their region."""
    starts = (
        i // slot.group_size * slot.stride + slot.offset + i % slot.group_size * leaf.unit for i in range(leaf.count)
    )
    return [Span(start, start + leaf.unit) for start in starts]


@dataclass(frozen=True, slots=True)
class Array:
    """An array of equal buffers in a region."""

    name: str
    role: Literal["buffers", "barriers", "view"]
    """A view has no memory of its own: it is what lowering has left of an array of buffers."""
    type: str
    """Shape and element type of one buffer, such as `64x256xf16`."""
    place: SourceLocation | None
    unit: int
    """Size of one buffer."""
    alignment: int
    """The required alignment of its address."""
    group_size: int
    """Buffers that stand in one group of the region."""
    buffers: tuple[Span, ...]
    uses: tuple[Uses, ...]
    lives: tuple[Life, ...] = ()
    """When it is alive, in each task; barriers always are, and have none."""


@dataclass(frozen=True, slots=True)
class Region:
    """Memory that is allocated as a whole: a storage_alias_spec or a plain allocation."""

    name: str
    memory: Memory
    place: SourceLocation | None
    op: Operation
    start: int
    """The offset at which it begins when all regions of its memory are laid out in program order."""
    size: int
    alignment: int
    groups: int
    """Equal groups of buffers in it, `stride` apart; 1 where nothing groups them."""
    stride: int
    arrays: tuple[Array, ...]
    trees: tuple[Group, ...]
    """Trees of arrays that overlap, by number; several when the arrays they relate are never live at the same time."""
    captured_by: frozenset[int]
    """Numbers of the `ttg.warp_specialize` of the function whose partitions are given the region."""

    @property
    def is_shared(self) -> bool:
        """True if several arrays were put into it."""
        return isinstance(self.op, StorageAliasSpecOp)

    @property
    def padding(self) -> tuple[Span, ...]:
        """Bytes or columns that no buffer takes."""
        gaps: list[Span] = []
        end = 0
        for span in (*sorted(self._spans(), key=lambda span: span.start), Span(self.size, self.size)):
            if span.start > end:
                gaps.append(Span(end, span.start))
            end = max(end, span.end)
        return tuple(gaps)

    def sharers(self, array: Array, span: Span) -> list[tuple[Array, list[int]]]:
        """The buffers of other arrays that have a byte or column of `span` too."""
        found = [
            (other, [i for i, at in enumerate(other.buffers) if at.start < span.end and span.start < at.end])
            for other in self.arrays
            if other is not array
        ]
        return [(other, indices) for other, indices in found if indices]

    def _spans(self) -> Iterator[Span]:
        return (span for array in self.arrays for span in array.buffers)


@dataclass(frozen=True, slots=True)
class StorageMap:
    """The regions of memory in one kernel."""

    kernel: str
    place: SourceLocation | None
    op: Operation
    capability: int
    regions: tuple[Region, ...]
    """In program order."""
    moments: Moments = field(default_factory=dict[str, tuple[SourceLocation, ...]])
    """The lines at which each task uses buffers: its time axis."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that work with some buffer."""
        names = {use.task for region in self.regions for array in region.arrays for use in array.uses}
        return tuple(sorted(names, key=task_order))

    def of(self, memory: Memory) -> list[Region]:
        """The regions of one memory."""
        return [region for region in self.regions if region.memory == memory]

    def used(self, memory: Memory) -> int:
        """Bytes or columns that the regions of `memory` take together."""
        return max((region.start + region.size for region in self.of(memory)), default=0)

    def limit(self, memory: Memory) -> int:
        """Bytes or columns that a thread block can have on the target."""
        return limit_of(memory, self.capability)


def next_start(memory: Memory, end: int, alignment: int) -> int:
    """The start of a region that lies after byte or column `end`."""
    step = max(STOCK_ALIGNMENT, alignment) if memory == "smem" else alignment
    return -(-end // step) * step


def limit_of(memory: Memory, capability: int) -> int:
    """Bytes of shared memory, or columns of tensor memory, that a thread block can have.

    Raises ValueError for a capability that is no target's.
    """
    target = target_of(capability)
    return target.tmem_columns if memory == "tmem" else target.shared_bytes
