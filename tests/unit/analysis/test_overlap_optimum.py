"""Size of a region against the smallest possible: the layout against a search over all placements.

The optimum is that of every placement on whole buffers which keeps the distinct members apart, also of those that do
not keep the members of a group together: for each order of the leaves, each of them goes to the first place after the
earlier ones that it must not overlap. Any placement can be pushed down into one of these, so the best is the optimum.
`pytest -s` prints the distribution.
"""

import random
from itertools import permutations
from math import lcm
from statistics import mean, median

from tests.unit import volume
from tlx_xdsl.analysis.overlap_tree import Group, Leaf, Node, place

COUNT = 1000 if volume.is_full() else 150
MAX_LEAVES = 6
TILES = [(16384, 1024), (8192, 1024), (4096, 1024), (2048, 1024), (512, 512), (256, 128), (256, 16), (128, 16)]
"""Bytes and alignment of the buffers that kernels allocate: swizzled tiles, and rows of numbers."""
ODD_TILES = [*TILES, (8, 16), (96, 16), (192, 16), (24, 16), (1000, 128)]
"""And some whose sizes are no powers of two: padding to whole buffers costs the most here."""

COLUMNS = [(128, 1), (64, 1), (32, 1), (16, 1), (8, 1), (1, 1)]
"""Columns of buffers in tensor memory."""


def random_tree(rng: random.Random, tiles: list[tuple[int, int]], groups: int) -> Group:
    """A tree of two to six leaves in one to three groups of buffers, up to four reuse_groups deep."""
    leaves = 0

    def node(depth: int, above: int) -> Node:
        nonlocal leaves
        if depth and (depth == 4 or rng.random() < 0.5):
            unit, alignment = rng.choice(tiles)
            leaves += 1
            return Leaf(leaves - 1, f"leaf {leaves - 1}", groups * above, unit, alignment)
        size = rng.choice([1, 1, 2, 3, 4])
        members = tuple(node(depth + 1, above * size) for _ in range(rng.randint(1, 4)) if leaves < MAX_LEAVES)
        # A group that found no leaf left has none: give it the smallest.
        if not members:
            leaves += 1
            members = (Leaf(leaves - 1, "last", groups * above * size, *tiles[-1]),)
        return Group(rng.choice(["shared", "distinct"]), members, size)

    while True:
        leaves = 0
        root = node(0, 1)
        assert isinstance(root, Group)
        if 2 <= leaves <= MAX_LEAVES:
            return root


def leaves_of(node: Node) -> list[Leaf]:
    if isinstance(node, Leaf):
        return [node]
    return [leaf for child in node.children for leaf in leaves_of(child)]


def apart(node: Node) -> set[tuple[int, int]]:
    """Pairs of leaves that must not overlap."""
    if isinstance(node, Leaf):
        return set()
    pairs = set().union(*(apart(child) for child in node.children))
    if node.kind == "distinct":
        for child in node.children:
            for other in node.children:
                if child is not other:
                    pairs |= {(a.index, b.index) for a in leaves_of(child) for b in leaves_of(other)}
    return pairs


def optimum(root: Group, groups: int) -> int:
    """The least bytes of the region: `groups` of the smallest groups of buffers, each on whole buffers."""
    size = smallest_group(root, groups)
    stride = lcm(*(lcm(leaf.unit, leaf.alignment) for leaf in leaves_of(root)))
    return (groups - 1) * (-(-size // stride) * stride) + size


def smallest_group(root: Group, groups: int) -> int:
    leaves, conflicts = leaves_of(root), apart(root)
    best = sum(leaf.count * leaf.unit + lcm(leaf.unit, leaf.alignment) for leaf in leaves)
    for order in permutations(leaves):
        ends: list[tuple[int, int]] = []
        for leaf in order:
            start = max((end for other, end in ends if (leaf.index, other) in conflicts), default=0)
            step = lcm(leaf.unit, leaf.alignment)
            ends.append((leaf.index, -(-start // step) * step + leaf.count // groups * leaf.unit))
            if ends[-1][1] >= best:
                break
        else:
            best = max(end for _, end in ends)
    return best


def over_allocations(tiles: list[tuple[int, int]]) -> list[float]:
    """Percent above the optimum, for every tree in rising order."""
    rng = random.Random(5)
    percents: list[float] = []
    for _ in range(COUNT):
        groups = rng.randint(1, 3)
        root = random_tree(rng, tiles, groups)
        least = optimum(root, groups)
        got = place(root).total
        assert got >= least
        percents.append(100 * (got - least) / least)
    return sorted(percents)


def report(name: str, percents: list[float]) -> None:
    exact = sum(percent == 0 for percent in percents)
    ranks = ", ".join(f"p{rank} {percents[len(percents) * rank // 100]:.1f} %" for rank in (50, 75, 90, 95, 99))
    print(
        f"\n{name}: {len(percents)} trees, {exact} at the optimum ({100 * exact / len(percents):.1f} %); {ranks}; "
        f"mean {mean(percents):.2f} %, worst {percents[-1]:.1f} %"
    )


def test_tiles_of_kernels():
    percents = over_allocations(TILES)
    report("powers of two", percents)
    assert median(percents) == 0


def test_tiles_of_odd_sizes():
    percents = over_allocations(ODD_TILES)
    report("odd sizes", percents)
    assert median(percents) == 0


def test_columns_of_tensor_memory():
    percents = over_allocations(COLUMNS)
    report("columns", percents)
    assert median(percents) == 0
