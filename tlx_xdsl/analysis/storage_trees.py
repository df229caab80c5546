"""Overlap trees as the IR has them: `tlx.reuse_group` operations over the allocations of a `tlx.storage_alias_spec`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from tlx_xdsl.dialects import ttg, ttng
from tlx_xdsl.dialects.base import layout_of
from tlx_xdsl.dialects.tlx import ReuseGroupOp, SetBufferOverlapOp, StorageAliasLocalAllocOp, StorageAliasSpecOp
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.layouts.encodings import SharedLayout
from tlx_xdsl.layouts.shared import padding_factor, required_alignment
from tlx_xdsl.text.diagnostics import error_at, source_location

from .overlap_tree import Group, Leaf, Node


@dataclass(frozen=True)
class Overlap:
    """A tree that relates allocations of a region."""

    root: ReuseGroupOp | None
    """Its root; None where the IR hides it."""
    set_by: SetBufferOverlapOp | None
    """The operation that ties it to the region; None when the group alone does."""

    @property
    def op(self) -> Operation:
        """The operation that errors point to."""
        op = self.set_by or self.root
        assert op is not None
        return op


def leaf_of(number: int, op: StorageAliasLocalAllocOp) -> Leaf:
    """Allocation `number` of a region as arithmetic sees it.

    Raises CompilationError for a buffer whose layout is none of its memory.
    """
    type_ = ttg.memdesc_type(op.result.type)
    unit, alignment = _size_and_alignment(op, type_)
    return Leaf(number, op.result.name_hint or f"allocation {number}", type_.shape[0], unit, alignment)


def _size_and_alignment(op: StorageAliasLocalAllocOp, type_: ttg.MemDescType) -> tuple[int, int]:
    """Bytes, or columns of tensor memory, of one buffer and what its address is a multiple of."""
    if isinstance(type_.memory_space, ttng.TensorMemorySpaceAttr):
        if len(type_.shape) < 3:
            raise error_at(op, f"TMEM allocations must be at least 2D, got rank {len(type_.shape) - 1}")
        try:
            # Every column is as good as another (PTX ISA, "Tensor Memory Addressing").
            return ttng.columns_of(type_.with_shape(type_.shape[1:])), 1
        except VerifyException as error:
            raise error_at(op, str(error)) from error
    layout = layout_of(type_.encoding)
    if not isinstance(layout, SharedLayout):
        raise error_at(op, f"a buffer in shared memory needs a shared layout, found {type_.encoding}")
    size = type_.bytes_of_trailing(len(type_.shape) - 1) * padding_factor(layout)
    return size, required_alignment(layout, type_.element_bits)


def members_of(root: ReuseGroupOp) -> Iterator[Operation | None]:
    """Operations that define the members of a tree that are no groups; None for block arguments."""
    for element in root.elements:
        owner = element.owner
        if isinstance(owner, ReuseGroupOp):
            yield from members_of(owner)
        else:
            yield owner if isinstance(owner, Operation) else None


def read_trees(
    spec: StorageAliasSpecOp,
    allocations: Sequence[StorageAliasLocalAllocOp],
    overlaps: Sequence[Overlap],
    leaves: Sequence[Leaf],
) -> list[Group]:
    """The trees of a region; every one of its allocations stands in them once.

    Raises CompilationError when one doesn't, or when a tree has members that are no allocations of the region.
    """
    unread = dict(zip(allocations, leaves, strict=True))
    trees = [_TreeReader(spec, overlap, unread).read() for overlap in overlaps]
    for op in unread:
        what = "the reuse_group is" if overlaps[0].set_by is None else "the tree is set"
        raise error_at(
            op,
            "this allocation is not in the reuse_group tree of its storage_alias_spec",
            [here(what, overlaps[0].op)],
        )
    return trees


@dataclass
class _TreeReader:
    """Builds an overlap tree from its operations."""

    spec: StorageAliasSpecOp
    overlap: Overlap
    unread: dict[StorageAliasLocalAllocOp, Leaf]
    """Allocations that have not been met in a tree."""

    def read(self) -> Group:
        """The tree; its allocations are no longer unread."""
        root = self.overlap.root
        if root is None:
            raise error_at(self.overlap.op, "overlap_def must be defined by a tlx.reuse_group op")
        self._known = set(self.unread)
        return self._group(root)

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
        if op.storage_alias is not self.spec.result:
            raise error_at(
                self.overlap.op,
                "all allocations in the reuse_group must reference the same storage_alias_spec, "
                "but found an allocation that uses a different spec",
                [here("the allocation is", op)],
            )
        if op not in self.unread:
            raise error_at(
                group,
                "reuse_group tree contains duplicate elements; each allocation can only appear once in the tree",
                [here("the duplicate is allocated", op)],
            )
        if op.is_placed:
            raise error_at(
                self.overlap.op,
                "buffer layout attributes already set; cannot process set_buffer_overlap",
                [here("they are set on the allocation", op)],
            )
        return self.unread.pop(op)


def duplicate_overlap(second: Overlap, first: Overlap, notes: Sequence[str] = ()) -> CompilationError:
    """The error for a spec with two trees."""
    what = "set_buffer_overlap defined" if first.set_by is not None else "reuse_group over its allocations"
    return error_at(
        second.op,
        f"storage_alias_spec already has a {what}; each spec can only have one overlap definition",
        [here("the first one is", first.op), *notes],
    )


def here(what: str, op: Operation) -> str:
    """A note that says where `op` stands."""
    place_ = source_location(op.location)
    return f"{what} at {'an unknown place' if place_ is None else place_}"
