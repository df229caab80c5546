"""The regions of a module that allocations share: who is in them and which tree relates them."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tlx_xdsl.analysis.overlap_tree import (
    Group,
    IndexMap,
    Leaf,
    Node,
    OverlapError,
    Placement,
    Slot,
    common_alignment,
    index_map,
    place,
    place_without_tree,
)
from tlx_xdsl.dialects.tlx import (
    ReuseGroupOp,
    SetBufferOverlapOp,
    StorageAliasLocalAllocOp,
    StorageAliasSpecOp,
)
from tlx_xdsl.dialects.ttg.attrs import layout_of
from tlx_xdsl.dialects.ttg.ops import memdesc_type
from tlx_xdsl.layouts.encodings import SharedLayout
from tlx_xdsl.layouts.shared import required_alignment
from tlx_xdsl.text.diagnostics import error_at, source_location


@dataclass
class StorageRegion:
    """What one `tlx.storage_alias_spec` stands for."""

    spec: StorageAliasSpecOp
    allocations: list[StorageAliasLocalAllocOp] = field(default_factory=list[StorageAliasLocalAllocOp])
    """In program order."""
    overlap: SetBufferOverlapOp | None = None

    @property
    def size_bytes(self) -> int | None:
        """The size that was settled, or that the user asked for, in bytes; None when neither was."""
        if self.spec.buffer_shape is None:
            return self.spec.explicit_bytes
        (size,) = self.spec.buffer_shape.get_values()
        return int(size)

    @property
    def alignment(self) -> int:
        """Bytes that the region's address must be a multiple of."""
        return common_alignment(self._leaves())

    def place(self, *, strict: bool) -> Placement:
        """Lay out the region; slots are numbered like `allocations`.

        Raises CompilationError when the tree is malformed or doesn't fit in `size_bytes`.
        """
        leaves = self._leaves()
        try:
            if self.overlap is None:
                return place_without_tree(leaves, self.size_bytes)
            return place(_TreeReader(self, self.overlap, leaves).read(), self.size_bytes, strict=strict)
        except OverlapError as error:
            notes = [] if self.size_bytes is None else [_here("the storage_alias_spec is", self.spec)]
            raise error_at(self.overlap or self.spec, str(error), notes) from error

    def index_map(self, number: int) -> IndexMap:
        """Where the buffers of allocation `number` lie, by what stands on the operation.

        Raises CompilationError when they do not lie on whole buffers.
        """
        op, leaf = self.allocations[number], _leaf(number, self.allocations[number])
        offset = 0 if op.buffer_offset is None else op.buffer_offset.value.data
        stride = leaf.unit if op.bytes_between_buffers is None else op.bytes_between_buffers.value.data
        group_size = 1 if op.group_size is None else op.group_size.value.data
        try:
            return index_map(leaf, Slot(offset, stride, group_size))
        except OverlapError as error:
            raise error_at(op, str(error)) from error

    def _leaves(self) -> list[Leaf]:
        return [_leaf(number, op) for number, op in enumerate(self.allocations)]


def storage_regions(module: ModuleOp) -> list[StorageRegion]:
    """The regions of `module`, in program order.

    Raises CompilationError when a spec is passed around, or has two trees.
    """
    regions: dict[SSAValue, StorageRegion] = {}
    for op in module.walk():
        if isinstance(op, StorageAliasSpecOp):
            _check_uses(op)
            regions[op.result] = StorageRegion(op)
        elif isinstance(op, StorageAliasLocalAllocOp):
            _region_of(op, op.storage_alias, regions).allocations.append(op)
        elif isinstance(op, SetBufferOverlapOp):
            region = _region_of(op, op.storage_alias_spec, regions)
            if region.overlap is not None:
                raise error_at(
                    op,
                    "storage_alias_spec already has a set_buffer_overlap defined; "
                    "each spec can only have one overlap definition",
                    [_here("the first one is", region.overlap)],
                )
            region.overlap = op
    return list(regions.values())


def _check_uses(spec: StorageAliasSpecOp) -> None:
    for use in spec.result.uses:
        if not isinstance(use.operation, StorageAliasLocalAllocOp | SetBufferOverlapOp):
            raise error_at(
                use.operation,
                "a storage_alias_spec can only be used by local_alloc and set_buffer_overlap, "
                f"not by '{use.operation.name}'",
                [_here("the storage_alias_spec is", spec)],
            )


def _region_of(op: Operation, spec: SSAValue, regions: dict[SSAValue, StorageRegion]) -> StorageRegion:
    if spec not in regions:
        raise error_at(op, "requires a valid storage_alias_spec")
    return regions[spec]


def _leaf(number: int, op: StorageAliasLocalAllocOp) -> Leaf:
    """Allocation `number` of a region as arithmetic sees it."""
    type_ = memdesc_type(op.result.type)
    layout = layout_of(type_.encoding)
    if not isinstance(layout, SharedLayout):
        raise error_at(op, f"a buffer in shared memory needs a shared layout, found {type_.encoding}")
    return Leaf(
        number,
        op.result.name_hint or f"allocation {number}",
        type_.shape[0],
        type_.bytes_of_trailing(len(type_.shape) - 1),
        required_alignment(layout, type_.element_bits),
    )


@dataclass
class _TreeReader:
    """Builds the overlap tree of `region` from its operations."""

    region: StorageRegion
    overlap: SetBufferOverlapOp
    leaves: list[Leaf]
    """One per allocation of the region."""
    unread: dict[Operation, Leaf] = field(init=False)
    """Allocations that have not been met in the tree."""

    def read(self) -> Group:
        """The tree; every allocation of the region stands in it once."""
        self.unread = dict(zip(self.region.allocations, self.leaves, strict=True))
        root = self.overlap.overlap_def.owner
        if not isinstance(root, ReuseGroupOp):
            raise error_at(self.overlap, "overlap_def must be defined by a tlx.reuse_group op")
        tree = self._group(root)
        for op in self.unread:
            raise error_at(
                op,
                "this allocation is not in the reuse_group tree of its storage_alias_spec",
                [_here("the tree is set", self.overlap)],
            )
        return tree

    def _group(self, op: ReuseGroupOp) -> Group:
        children = tuple(self._element(op, element) for element in op.elements)
        return Group(op.group_kind.data.value, children, op.group_size.value.data)

    def _element(self, group: ReuseGroupOp, element: SSAValue) -> Node:
        op = element.owner
        if isinstance(op, ReuseGroupOp):
            return self._group(op)
        if not isinstance(op, StorageAliasLocalAllocOp):
            raise error_at(
                group,
                "all elements in the reuse_group tree must be allocated via tlx.storage_alias_local_alloc, "
                "but found an element that is not",
            )
        if op.storage_alias is not self.region.spec.result:
            raise error_at(
                self.overlap,
                "all allocations in the reuse_group must reference the same storage_alias_spec, "
                "but found an allocation that uses a different spec",
                [_here("the allocation is", op)],
            )
        if op not in self.unread:
            raise error_at(
                group,
                "reuse_group tree contains duplicate elements; each allocation can only appear once in the tree",
                [_here("the duplicate is allocated", op)],
            )
        if op.buffer_offset is not None:
            raise error_at(
                self.overlap,
                "buffer layout attributes already set; cannot process set_buffer_overlap",
                [_here("they are set on the allocation", op)],
            )
        return self.unread.pop(op)


def _here(what: str, op: Operation) -> str:
    """A note that says where `op` stands."""
    place_ = source_location(op.location)
    return f"{what} at {'an unknown place' if place_ is None else place_}"
