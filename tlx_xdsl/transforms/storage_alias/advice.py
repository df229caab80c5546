"""`tlx-storage-advice`: remarks on what a kernel could do with its shared and tensor memory. Changes nothing.

Runs before `tlx-storage-alias-lowering`. It says, with bytes or columns:

- what no buffer takes, and what a member of a `shared` group leaves unused beside the largest one;
- which sharing is unnecessary: what has room on the target, in memory of its own;
- what one buffer more or less of each array costs, of arrays that belong together one of each, and how many fit;
- as a warning, what a kernel over its budget spends its memory on.

Example: `kernel.py:14:9: remark: in 'scores', p needs no memory of s: with its own it takes 128 columns more, in all
512 of 512`. Barriers of a stage are not part of what the stage is said to take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.analysis.overlap_tree import Group, Leaf, Node, place
from tlx_xdsl.analysis.storage_budget import excesses
from tlx_xdsl.analysis.storage_map import UNITS, Region, StorageMap, next_start
from tlx_xdsl.analysis.storage_map_reader import storage_maps
from tlx_xdsl.dialects.tlx import StorageAliasSpecOp
from tlx_xdsl.text.diagnostics import report_remark, report_warning

from ..rewriting import Pass

MOST_STAGES = 64
"""The end of the search for the largest number of stages."""


class StorageAdvicePass(Pass):
    """Report how the memory of a kernel could be used better."""

    name = "tlx-storage-advice"

    def run(self, op: ModuleOp) -> None:
        """Report on every function of the module."""
        for map_ in storage_maps(op):
            for excess in excesses(map_):
                report_warning(excess.op, excess.message, excess.notes)
            for region in map_.regions:
                if region.arrays[0].role == "buffers":
                    _Advisor(map_, region).report()


@dataclass(frozen=True)
class _Part:
    """Arrays of a region that are multiplied together."""

    leaves: tuple[Leaf, ...]
    stages: int
    """The number of copies of the smallest set of their buffers."""

    def counts(self, stages: int) -> dict[int, int]:
        """The number of buffers of each array, by its index, when there are so many stages."""
        return {leaf.index: leaf.count // self.stages * stages for leaf in self.leaves}

    def text(self, stages: int) -> str:
        """`4 of b and 8 of a`."""
        counts = self.counts(stages)
        return _and([f"{counts[leaf.index]} of {leaf.name}" for leaf in self.leaves])


@dataclass(frozen=True)
class _Advisor:
    map: StorageMap
    region: Region

    @property
    def unit(self) -> str:
        """The unit of this memory."""
        return UNITS[self.region.memory]

    def report(self) -> None:
        """Report everything about the region."""
        self._unused()
        if not self.region.is_shared:
            array = self.region.arrays[0]
            leaf = Leaf(0, array.name, len(array.buffers), array.unit, array.alignment)
            self._stages(_Part((leaf,), leaf.count), lambda counts: counts[0] * leaf.unit)
            return
        spec = self.region.op
        if not isinstance(spec, StorageAliasSpecOp) or spec.explicit_bytes is not None:
            # The user has decided how large the region is.
            return
        if (tree := self._tree()) is not None:
            self._capacity(tree)
            self._sharing(tree)
            for part in _parts(tree, self.region.groups):
                self._stages(part, lambda counts: self._size(_recounted(tree, counts)))

    def _tree(self) -> Group | None:
        """The region's one tree, with all group sizes at the leaves, if all arrays have buffers in each group."""
        counts = {len(each.buffers) // each.group_size for each in self.region.arrays}
        if len(self.region.trees) != 1 or len(counts) > 1:
            return None
        tree = _flat(self.region.trees[0], 1)
        assert isinstance(tree, Group)
        return tree

    # --- what is unused ------------------------------------------------------------------------------------------

    def _unused(self) -> None:
        gaps = self.region.padding
        if gaps:
            total = sum(gap.size for gap in gaps)
            where = ", ".join(f"{gap.start:,} to {gap.end:,}" for gap in gaps[:4]) + (", ..." if len(gaps) > 4 else "")
            self._say(f"no buffer takes {total:,} of its {self.region.size:,} {self.unit}: {where}")

    def _capacity(self, tree: Node) -> None:
        """Report the memory that only the largest member of a shared group uses."""
        for group in _groups(tree):
            if group.kind != "shared" or len(group.children) < 2:
                continue
            sizes = [self._size(_counted(child, 1)) for child in group.children]
            largest = group.children[sizes.index(max(sizes))]
            for child, size in zip(group.children, sizes, strict=True):
                if room := max(sizes) - size:
                    each = "each group of buffers" if self.region.groups > 1 else "the region"
                    self._say(
                        f"{_names(child)} could grow by {room:,} {self.unit} in {each} without any cost: "
                        f"{_names(largest)} {_verb(largest, 'takes', 'take')} {max(sizes):,}, "
                        f"{_names(child)} {_verb(child, 'takes', 'take')} {size:,}"
                    )

    # --- sharing that is not needed ------------------------------------------------------------------------------

    def _sharing(self, tree: Group) -> None:
        limit, now = self.map.limit(self.region.memory), self.map.used(self.region.memory)
        leaves = _leaves(tree)
        apart = self._used_with([self._size(_alone(tree, leaf)) for leaf in leaves])
        if apart <= limit:
            if apart > now:
                names = _and([leaf.name for leaf in leaves])
                self._say(f"{names} need not share memory: apart they take {self._more(apart)}")
            return
        for group in _groups(tree):
            if group.kind == "shared" and len(group.children) > 1:
                for child in group.children:
                    others = _and([_names(other) for other in group.children if other is not child])
                    self._taken_out(tree, child, others)

    def _taken_out(self, tree: Group, child: Node, others: str) -> None:
        """Say which of `child`, or else of its members, has room in memory of its own, away from `others`."""
        reported: set[str] = set()
        for nodes in _choices(child):
            rest: Node | None = tree
            for node in nodes:
                rest = None if rest is None else _without(rest, node)
            names = [leaf.name for node in nodes for leaf in _leaves(node)]
            if rest is None or reported.issuperset(names):
                continue
            used = self._used_with([self._size(rest), *map(self._size, nodes)])
            if self.map.used(self.region.memory) < used <= self.map.limit(self.region.memory):
                reported |= set(names)
                one = len(names) == 1
                self._say(
                    f"{_and(names)} {'needs' if one else 'need'} no memory of {others}: with "
                    f"{'its' if one else 'their'} own {'it takes' if one else 'they take'} {self._more(used)}"
                )

    # --- stages --------------------------------------------------------------------------------------------------

    def _stages(self, part: _Part, size: Callable[[dict[int, int]], int]) -> None:
        """Report the cost of one buffer more or less of each array; `size` is the region's, by buffer counts."""
        if part.stages < 2:
            return
        limit = self.map.limit(self.region.memory)
        more = size(part.counts(part.stages + 1)) - self.region.size
        less = self.region.size - size(part.counts(part.stages - 1))
        if not more and not less:
            return
        fewer = f"{part.text(part.stages - 1)} save {less:,}"
        if self.map.used(self.region.memory) > limit:
            self._say(f"{fewer} {self.unit}")
            return
        used = self._used_with([self.region.size + more])
        most = part.stages
        while most < MOST_STAGES and self._used_with([size(part.counts(most + 1))]) <= limit:
            most += 1
        verdict = "" if used <= limit else " and do not fit"
        fits = f"; {part.text(most)} still fit" if part.stages + 1 < most < MOST_STAGES else ""
        self._say(
            f"{part.text(part.stages + 1)} instead of {part.text(part.stages)} take {self._more(used)}{verdict}{fits}; "
            f"{fewer}"
        )

    # --- numbers -------------------------------------------------------------------------------------------------

    def _size(self, node: Node) -> int:
        """Bytes or columns of a region with the tree `node`."""
        return place(node if isinstance(node, Group) else Group("shared", (node,))).total

    def _used_with(self, sizes: Sequence[int]) -> int:
        """The memory that the kernel takes with regions of `sizes` instead of this one."""
        end = 0
        for other in self.map.of(self.region.memory):
            for size in sizes if other is self.region else [other.size]:
                end = next_start(other.memory, end, other.alignment) + size
        return end

    def _more(self, used: int) -> str:
        """The increase when the kernel takes `used`."""
        now, limit = self.map.used(self.region.memory), self.map.limit(self.region.memory)
        return f"{used - now:,} {self.unit} more, in all {used:,} of {limit:,}"

    def _say(self, message: str) -> None:
        report_remark(self.region.op, f"in '{self.region.name}', {message}" if self.region.is_shared else message)


# --- trees ----------------------------------------------------------------------------------------------------------


def _flat(node: Node, above: int) -> Node:
    """`node` with all group sizes in groups of one leaf each."""
    if isinstance(node, Leaf):
        return Group("shared", (node,), above)
    group_size = above * node.group_size
    return Group(node.kind, tuple(_flat(child, group_size) for child in node.children))


def _is_leaf(node: Node) -> bool:
    """True if a node of a flat tree is a leaf with its group."""
    return isinstance(node, Group) and isinstance(node.children[0], Leaf)


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children if isinstance(node, Group) else ():
        yield from _nodes(child)


def _groups(node: Node) -> Iterator[Group]:
    """The groups of a flat tree that have members other than a leaf."""
    return (each for each in _nodes(node) if isinstance(each, Group) and not _is_leaf(each))


def _leaves(node: Node) -> list[Leaf]:
    return [each for each in _nodes(node) if isinstance(each, Leaf)]


def _alone(node: Node, leaf: Leaf) -> Node:
    """The group of `leaf` in a flat tree."""
    return next(each for each in _nodes(node) if isinstance(each, Group) and each.children[0] is leaf)


def _choices(child: Node) -> Iterator[tuple[Node, ...]]:
    """The parts of a member of a shared group that could leave it: the member, or all but one of its own, or one."""
    yield (child,)
    if isinstance(child, Group) and not _is_leaf(child):
        members = child.children
        if len(members) > 2:
            yield from (tuple(other for other in members if other is not member) for member in members)
        yield from ((member,) for member in members)


def _without(node: Node, gone: Node) -> Node | None:
    """`node` without the member `gone`; None when nothing is left."""
    if node is gone:
        return None
    if isinstance(node, Leaf) or _is_leaf(node):
        return node
    children = tuple(left for child in node.children if (left := _without(child, gone)) is not None)
    return replace(node, children=children) if children else None


def _recounted(node: Node, counts: dict[int, int]) -> Node:
    """A flat tree with other numbers of buffers; an array that is one group stays one."""
    if isinstance(node, Leaf):
        return replace(node, count=counts.get(node.index, node.count))
    children = tuple(_recounted(child, counts) for child in node.children)
    leaf, old = children[0], node.children[0]
    if isinstance(leaf, Leaf) and isinstance(old, Leaf) and old.count == node.group_size:
        return Group(node.kind, children, leaf.count)
    return replace(node, children=children)


def _counted(node: Node, groups: int) -> Node:
    """A flat tree with so many groups of buffers."""
    if isinstance(node, Leaf):
        return node
    leaf = node.children[0]
    if isinstance(leaf, Leaf):
        return replace(node, children=(replace(leaf, count=groups * node.group_size),))
    return replace(node, children=tuple(_counted(child, groups) for child in node.children))


def _parts(tree: Group, groups: int) -> Iterator[_Part]:
    """The arrays that are multiplied together: all when the region has several groups, else the root's members."""
    members = [tree]
    if groups == 1 and tree.kind == "shared":
        members = [child for child in tree.children if isinstance(child, Group)]
    for member in members:
        leaves = tuple(_leaves(member))
        yield _Part(leaves, groups if groups > 1 else gcd(*(leaf.count for leaf in leaves)))


# --- words ----------------------------------------------------------------------------------------------------------


def _names(node: Node) -> str:
    return _and([leaf.name for leaf in _leaves(node)])


def _verb(node: Node, one: str, many: str) -> str:
    return one if len(_leaves(node)) == 1 else many


def _and(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
