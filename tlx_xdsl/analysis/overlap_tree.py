"""Offsets of the buffers of a shared region: plain arithmetic on an overlap tree.

Lengths are in one unit throughout: bytes in shared memory, columns of 32 bits in tensor memory, where a buffer has
all rows of its columns to itself. A leaf is an array of `count` buffers of length `unit`. Groups say how their members
share memory: the members of a `shared` group occupy the same place at the same buffer index, those of a `distinct`
group never overlap. The region consists of equal *groups of buffers*, one after the other; group number k holds buffer
k of every leaf, or its buffers k*g to k*g + g-1 when the `group_size` of the tree nodes above it multiply to g:

    shared(qk, distinct(shared(p, group_size=2), alpha)), 2 groups

    |<-------- group 0, length B --------->|<-------- group 1, length B --------->|
    | qk[0]                                | qk[1]                                |
    | p[0]     | p[1]     | alpha[0] |     | p[2]     | p[3]     | alpha[1] |     |

A leaf may have fewer buffers than others, and so no part in the last groups, where the region is no longer for it.

So buffer i of a leaf at offset o starts at `(i div g) * B + o + (i mod g) * unit`. Later passes address a leaf as
an array of unit-sized slots that starts with the region, which is why offsets and B are padded to whole units.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Literal, TypeAlias


class OverlapError(ValueError):
    """An overlap tree, or an array of buffers, that can't be laid out as asked."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """An array of buffers."""

    index: int
    """Identifies the leaf: no two leaves of a tree share it."""
    name: str
    """The name in error messages."""
    count: int
    """Buffers in the array."""
    unit: int
    """Length of one buffer."""
    alignment: int
    """The required alignment of the address for a view of the buffers."""


@dataclass(frozen=True, slots=True)
class Group:
    """Members that share memory (`shared`) or don't (`distinct`)."""

    kind: Literal["shared", "distinct"]
    children: tuple[Node, ...]
    group_size: int = 1
    """Consecutive buffers of each leaf below that count as one."""


Node: TypeAlias = Leaf | Group


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of a leaf: buffer i starts at `(i div group_size) * stride + offset + (i mod group_size) * unit`."""

    offset: int
    """From the start of a group of buffers to the leaf's first buffer in it."""
    stride: int
    """From one group of buffers to the next."""
    group_size: int
    """Buffers of the leaf in one group."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The layout of a region."""

    slots: Mapping[int, Slot]
    """The place of each leaf, by `Leaf.index`."""
    total: int
    """Length of the region."""
    alignment: int
    """The required alignment of the region's address."""


@dataclass(frozen=True, slots=True)
class IndexMap:
    """Slot `(i div group_size) * group_stride + offset + (i mod group_size)` holds buffer i; all in units of a leaf.

    In normal form: `group_size` is 1 wherever no division is needed.
    """

    group_size: int
    group_stride: int
    offset: int

    @property
    def is_identity(self) -> bool:
        """True if every buffer stays where its index says."""
        return self == IndexMap(1, 1, 0)

    def __call__(self, index: int) -> int:
        """The slot of buffer `index`."""
        group, member = divmod(index, self.group_size)
        return group * self.group_stride + self.offset + member


# --- sizes ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sized:
    """A node with the length that it takes in one group of buffers, and its members' offsets in it."""

    node: Node
    group_size: int
    """The product of the group sizes from the root to this node."""
    size: int
    alignment: int
    members: tuple[tuple[int, _Sized], ...] = ()

    @property
    def is_sum(self) -> bool:
        """True if several members add up to the size."""
        return isinstance(self.node, Group) and self.node.kind == "distinct" and len(self.members) > 1

    def walk(self) -> Iterator[_Sized]:
        """Every node of the tree, a group before its members."""
        yield self
        for _, member in self.members:
            yield from member.walk()


def _sized(node: Node, above: int, *, strict: bool) -> _Sized:
    """`node` below groups whose sizes multiply to `above`."""
    if isinstance(node, Leaf):
        # A multiple of the unit makes the place addressable as a slot; strict mode refuses to pad for that.
        alignment = node.alignment if strict else lcm(node.unit, node.alignment)
        return _Sized(node, above, above * node.unit, alignment)
    group_size = above * node.group_size
    children = [_sized(child, group_size, strict=strict) for child in node.children]
    alignment = lcm(*(child.alignment for child in children))
    if node.kind == "shared":
        members = tuple((0, child) for child in children)
        return _Sized(node, group_size, max(child.size for child in children), alignment, members)
    size, members = _in_a_row(children)
    if not strict:
        # Large alignments first leaves fewer gaps; the declared order stays where that saves nothing.
        sorted_size, sorted_members = _in_a_row(sorted(children, key=lambda child: -child.alignment))
        if sorted_size < size:
            size, members = sorted_size, sorted_members
    return _Sized(node, group_size, size, alignment, members)


def _in_a_row(nodes: Iterable[_Sized]) -> tuple[int, tuple[tuple[int, _Sized], ...]]:
    """The size of `nodes` laid one after the other, and the offset of each."""
    end = 0
    members: list[tuple[int, _Sized]] = []
    for node in nodes:
        start = _align_up(end, node.alignment)
        members.append((start, node))
        end = start + node.size
    return end, tuple(members)


def _align_up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


# --- places ---------------------------------------------------------------------------------------------------------


def place(
    root: Group, explicit_bytes: int | None = None, *, strict: bool = False, bytes_per_unit: int = 1
) -> Placement:
    """Lay out the leaves of `root`, in `explicit_bytes` when the user gave a size.

    `bytes_per_unit` are the bytes of a length of 1: in tensor memory those of a column of all rows.

    An explicit size spreads its excess between the groups of buffers. `strict` keeps the declared order of distinct
    members and refuses padding to whole units and groups nested in a group of their own kind.
    Raises OverlapError when the tree can't be laid out, or not in that size.
    """
    if strict:
        _reject_same_kind_nesting(root)
    tree = _sized(root, 1, strict=strict)
    leaves = [(node.node, node.group_size) for node in tree.walk() if isinstance(node.node, Leaf)]
    groups = _group_count(leaves, strict=strict)
    available = None if explicit_bytes is None else _Size(explicit_bytes, bytes_per_unit)
    stride = _group_stride(tree, groups, available)
    slots = dict(_slots(tree, 0, stride))
    for leaf, _ in leaves:
        index_map(leaf, slots[leaf.index])
    total = _end(tree, stride) if available is None else available.length
    return Placement(slots, total, common_alignment([leaf for leaf, _ in leaves]))


def place_without_tree(
    leaves: Sequence[Leaf], explicit_bytes: int | None = None, *, bytes_per_unit: int = 1
) -> Placement:
    """Lay out `leaves` that no overlap tree relates: each begins with the region and is dense.

    Raises OverlapError when `explicit_bytes` is given and too small.
    """
    needed = max(leaf.count * leaf.unit for leaf in leaves)
    available = None if explicit_bytes is None else _Size(explicit_bytes, bytes_per_unit)
    if available is not None and available.length < needed:
        raise available.too_small(needed)
    slots = {leaf.index: Slot(0, leaf.unit, 1) for leaf in leaves}
    total = needed if available is None else available.length
    return Placement(slots, total, common_alignment(leaves))


def common_alignment(leaves: Iterable[Leaf]) -> int:
    """The required alignment of the address of a region with `leaves`."""
    return lcm(*(leaf.alignment for leaf in leaves))


def index_map(leaf: Leaf, slot: Slot) -> IndexMap:
    """The map from buffer indices of `leaf` to indices of unit-sized slots from the start of the region.

    Raises OverlapError when `slot` is not on a multiple of the unit.
    """
    groups = -(-leaf.count // slot.group_size)
    # A single group has no successor, its stride is never used.
    if groups > 1 and slot.stride % leaf.unit:
        raise OverlapError(
            f"units_between_buffer_groups ({slot.stride}) must be a multiple of the original buffer size ({leaf.unit})"
        )
    if slot.offset % leaf.unit:
        raise OverlapError(
            f"buffer_offset ({slot.offset}) must be a multiple of the original buffer size ({leaf.unit})"
        )
    stride, offset = slot.stride // leaf.unit, slot.offset // leaf.unit
    if groups == 1 or stride == slot.group_size:
        return IndexMap(1, 1, offset)
    return IndexMap(slot.group_size, stride, offset)


def _slots(node: _Sized, offset: int, stride: int) -> Iterator[tuple[int, Slot]]:
    if isinstance(node.node, Leaf):
        yield node.node.index, Slot(offset, stride, node.group_size)
    for member_offset, member in node.members:
        yield from _slots(member, offset + member_offset, stride)


def _reject_same_kind_nesting(group: Group) -> None:
    for child in group.children:
        if isinstance(child, Group):
            if child.kind == group.kind:
                raise OverlapError(
                    f"nested reuse_groups must have a different group_kind than their parent, both are {group.kind}"
                )
            _reject_same_kind_nesting(child)


def _group_count(leaves: Sequence[tuple[Leaf, int]], *, strict: bool) -> int:
    """The number of groups of buffers: that of the leaf with most. `strict` wants as many for every leaf."""
    counts = {Fraction(leaf.count, group_size) for leaf, group_size in leaves}
    if all(count.denominator == 1 for count in counts) and not (strict and len(counts) > 1):
        return max(counts).numerator
    found = ", ".join(
        f"{leaf.name} has {leaf.count} / {group_size} = {Fraction(leaf.count, group_size)}"
        for leaf, group_size in leaves
    )
    same = "the same" if strict else "a"
    raise OverlapError(
        f"all allocations of a reuse_group tree must have {same} whole number of buffer groups "
        f"(buffers / group_size): {found}"
    )


def _end(tree: _Sized, stride: int) -> int:
    """The end of the last buffer: there is no padding after it."""
    leaves = {each.node.index: each.node for each in tree.walk() if isinstance(each.node, Leaf)}
    return max(
        (leaves[index].count // slot.group_size - 1) * stride + slot.offset + slot.group_size * leaves[index].unit
        for index, slot in _slots(tree, 0, stride)
    )


def _dense_stride(tree: _Sized) -> int:
    """The least length from one group of buffers to the next."""
    return _align_up(tree.size, tree.alignment)


@dataclass(frozen=True, slots=True)
class _Size:
    """A size that the user gave in bytes."""

    given: int
    bytes_per_unit: int

    @property
    def length(self) -> int:
        """The greatest length that fits, in whole units: a column of tensor memory is there or it isn't."""
        return self.given // self.bytes_per_unit

    def in_bytes(self, length: int) -> int:
        """The bytes of a length."""
        return length * self.bytes_per_unit

    def too_small(self, needed: int) -> OverlapError:
        """The error when a length of `needed` does not fit."""
        return OverlapError(
            f"storage_alias_spec buffer_size_bytes {self.given} is too small for computed shape, "
            f"requires at least {self.in_bytes(needed)} bytes"
        )


def _group_stride(tree: _Sized, groups: int, available: _Size | None) -> int:
    """The length from one group of buffers to the next."""
    dense = _dense_stride(tree)
    if available is None:
        return dense
    spread = available.length // groups // tree.alignment * tree.alignment
    if spread >= tree.size:
        return spread
    needed = _end(tree, dense)
    if needed <= available.length:
        return dense
    each = available.length // groups
    for node in tree.walk():
        if node.is_sum and node.size > each:
            raise OverlapError(
                f"not enough space for distinct allocations: need {available.in_bytes(node.size)} bytes, "
                f"have {available.in_bytes(each)} bytes in each of {groups} buffer groups; "
                f"buffer_size_bytes {available.given} must be at least {available.in_bytes(needed)}"
            )
    raise available.too_small(needed)
