"""The regions of a module that allocations share: who is in them and which tree relates them."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.dialects import ttg, ttng
from tlx_xdsl.dialects.tlx import (
    ReuseGroupOp,
    SetBufferOverlapOp,
    StorageAliasLocalAllocOp,
    StorageAliasSpecOp,
    StorageKind,
)
from tlx_xdsl.text.diagnostics import error_at

from .live_ranges import check_live_ranges
from .overlap_tree import (
    IndexMap,
    Leaf,
    OverlapError,
    Placement,
    Slot,
    common_alignment,
    index_map,
    place,
    place_without_tree,
)
from .storage_trees import Overlap, duplicate_overlap, here, leaf_of, members_of, read_trees

COLUMN_BYTES = 4
"""Bytes of one row of a column of tensor memory."""


@dataclass
class StorageRegion:
    """The region that one `tlx.storage_alias_spec` declares.

    Lengths are bytes in shared memory and columns in tensor memory.
    """

    spec: StorageAliasSpecOp
    allocations: list[StorageAliasLocalAllocOp] = field(default_factory=list[StorageAliasLocalAllocOp])
    """In program order."""
    overlaps: list[Overlap] = field(default_factory=list[Overlap])
    """In program order. Most regions have one; those of further ones are never live together with it."""

    @property
    def in_tensor_memory(self) -> bool:
        """True if lengths are columns of tensor memory, and not bytes of shared memory."""
        return self.spec.storage.data == StorageKind.TMEM

    @property
    def rows(self) -> int:
        """Rows that the region takes in tensor memory: 64 when all of its buffers have no more, else 128."""
        return max((ttng.rows_of(ttg.memdesc_type(op.result.type)) for op in self.allocations), default=ttng.ROWS)

    @property
    def bytes_per_unit(self) -> int:
        """Bytes of a length of 1."""
        return COLUMN_BYTES * self.rows if self.in_tensor_memory else 1

    @property
    def length(self) -> int | None:
        """The length that was settled; None before `tlx-storage-alias-size-definition`."""
        if self.spec.buffer_shape is None:
            return None
        return int(self.spec.buffer_shape.get_values()[-1])

    @property
    def alignment(self) -> int:
        """The required alignment of the region's address."""
        return common_alignment(self._leaves())

    def place(self, *, strict: bool) -> Placement:
        """Lay out the region; slots are numbered like `allocations`.

        Raises CompilationError when a tree is malformed or doesn't fit in the size that was settled or asked for.
        """
        leaves = self._leaves()
        unit = self.bytes_per_unit
        size = self.spec.explicit_bytes
        # Where there are several trees, the settled size may be that of another one, and is nothing to spread over.
        if self.length is not None and (size is not None or len(self.overlaps) < 2):
            size = self.length * unit
        at: Operation = self.spec
        parts: list[Placement] = []
        try:
            if not self.overlaps:
                return place_without_tree(leaves, size, bytes_per_unit=unit)
            trees = read_trees(self.spec, self.allocations, self.overlaps, leaves)
            for overlap, tree in zip(self.overlaps, trees, strict=True):
                at = overlap.op
                parts.append(place(tree, size, strict=strict, bytes_per_unit=unit))
        except OverlapError as error:
            notes = [] if size is None else [here("the storage_alias_spec is", self.spec)]
            raise error_at(at, str(error), notes) from error
        slots = {index: slot for part in parts for index, slot in part.slots.items()}
        return Placement(slots, max(part.total for part in parts), self.alignment)

    def index_map(self, number: int) -> IndexMap:
        """The map from the buffers of allocation `number` to slots of the region, by the operation's attributes.

        Raises CompilationError when they do not lie on whole buffers, or not in the region.
        """
        op, leaf = self.allocations[number], leaf_of(number, self.allocations[number])
        offset = 0 if op.buffer_offset is None else op.buffer_offset.value.data
        stride = leaf.unit if op.bytes_between_buffers is None else op.bytes_between_buffers.value.data
        group_size = 1 if op.group_size is None else op.group_size.value.data
        try:
            places = index_map(leaf, Slot(offset, stride, group_size))
        except OverlapError as error:
            raise error_at(op, str(error)) from error
        end = (places(leaf.count - 1) + 1) * leaf.unit
        if self.length is not None and end > self.length:
            kind = "columns" if self.in_tensor_memory else "bytes"
            raise error_at(
                op,
                f"the last buffer ends {end} {kind} after the start of its storage_alias_spec, which has {self.length}",
                [here("the storage_alias_spec is", self.spec)],
            )
        return places

    def _leaves(self) -> list[Leaf]:
        return [leaf_of(number, op) for number, op in enumerate(self.allocations)]


def storage_regions(module: ModuleOp, *, strict: bool = False) -> list[StorageRegion]:
    """The regions of `module`, in program order.

    A region without trees of its own has those of the largest reuse_groups over its allocations. `strict` takes a
    group for what it is, and one `set_buffer_overlap` per spec.
    Raises CompilationError when a spec is passed around, or has two trees that may be live together.
    """
    regions: dict[SSAValue, StorageRegion] = {}
    roots: list[ReuseGroupOp] = []
    for op in module.walk():
        if isinstance(op, StorageAliasSpecOp):
            _check_uses(op)
            regions[op.result] = StorageRegion(op)
        elif isinstance(op, StorageAliasLocalAllocOp):
            _region_of(op, op.storage_alias, regions).allocations.append(op)
        elif isinstance(op, ReuseGroupOp) and op.result.first_use is None:
            roots.append(op)
        elif isinstance(op, SetBufferOverlapOp):
            region = _region_of(op, op.storage_alias_spec, regions)
            owner = op.overlap_def.owner
            overlap = Overlap(owner if isinstance(owner, ReuseGroupOp) else None, op)
            if strict and region.overlaps:
                raise duplicate_overlap(overlap, region.overlaps[0])
            region.overlaps.append(overlap)
    if not strict:
        _adopt_groups(roots, regions)
        for region in regions.values():
            check_live_ranges(region.overlaps)
    return list(regions.values())


def _adopt_groups(roots: list[ReuseGroupOp], regions: dict[SSAValue, StorageRegion]) -> None:
    """Make the roots over allocations of regions without a `set_buffer_overlap` the trees of these regions."""
    set_by_user = {spec for spec, region in regions.items() if region.overlaps}
    for root in roots:
        specs = {op.storage_alias for op in members_of(root) if isinstance(op, StorageAliasLocalAllocOp)}
        for spec in sorted(specs - set_by_user, key=list(regions).index):
            regions[spec].overlaps.append(Overlap(root, None))


def _check_uses(spec: StorageAliasSpecOp) -> None:
    for use in spec.result.uses:
        if not isinstance(use.operation, StorageAliasLocalAllocOp | SetBufferOverlapOp):
            raise error_at(
                use.operation,
                "a storage_alias_spec can only be used by local_alloc and set_buffer_overlap, "
                f"not by '{use.operation.name}'",
                [here("the storage_alias_spec is", spec)],
            )


def _region_of(op: Operation, spec: SSAValue, regions: dict[SSAValue, StorageRegion]) -> StorageRegion:
    if spec not in regions:
        raise error_at(op, "requires a valid storage_alias_spec")
    return regions[spec]
