"""Places of the buffers of an overlap tree: worked examples, and laws that hold for every tree."""

from dataclasses import replace
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings, strategies as st

from tlx_xdsl.analysis.overlap_tree import (
    Group,
    IndexMap,
    Leaf,
    Node,
    OverlapError,
    Placement,
    Slot,
    index_map,
    place,
    place_without_tree,
)

pytestmark = pytest.mark.quick


def shared(*children: Node, group_size: int = 1) -> Group:
    return Group("shared", children, group_size)


def distinct(*children: Node, group_size: int = 1) -> Group:
    return Group("distinct", children, group_size)


def leaf(index: int, count: int, unit: int, alignment: int = 128) -> Leaf:
    return Leaf(index, "abcdefgh"[index], count, unit, alignment)


# --- examples -------------------------------------------------------------------------------------------------------


def test_shared_members_start_together():
    placement = place(shared(leaf(0, 2, 16384), leaf(1, 2, 8192)))
    # The second group of buffers ends with the larger member.
    assert placement.total == 32768
    assert placement.slots == {0: Slot(0, 16384, 1), 1: Slot(0, 16384, 1)}


def test_nothing_lies_after_the_last_group():
    # Groups start on whole buffers of the larger member (16384), each takes 24576 bytes.
    placement = place(distinct(leaf(0, 2, 16384), leaf(1, 2, 8192)))
    assert placement.slots == {0: Slot(0, 32768, 1), 1: Slot(16384, 32768, 1)}
    assert placement.total == 32768 + 24576


def test_ring_and_epilogue_of_a_gemm():
    a, b, c = leaf(0, 6, 8192, 1024), leaf(1, 3, 32768, 1024), leaf(2, 2, 32768, 1024)
    ring = distinct(shared(b, group_size=3), shared(a, group_size=6))
    placement = place(shared(ring, shared(c, group_size=2)))
    assert placement.total == 147456
    assert placement.alignment == 1024
    assert index_map(a, placement.slots[0]) == IndexMap(1, 1, 12)
    assert index_map(b, placement.slots[1]).is_identity
    assert index_map(c, placement.slots[2]).is_identity


def test_flash_attention_with_four_subtiles():
    """QK over P in four slices with alpha, l and m after it, for two groups of rows; bytes of f32 and bf16 tiles."""
    qk, p = leaf(0, 2, 128 * 128 * 4), leaf(1, 8, 128 * 32 * 2)
    alpha, l_i, m_i = (leaf(index, 2, 128 * 4) for index in (2, 3, 4))
    placement = place(shared(qk, distinct(shared(p, group_size=4), alpha, l_i, m_i)))
    assert placement.total == 2 * 65536
    assert index_map(p, placement.slots[1]) == IndexMap(4, 8, 0)
    # A slice counted as one per group would put p[3] beside qk[1], and p[7] past the end.
    assert [index_map(p, placement.slots[1])(i) for i in range(8)] == [0, 1, 2, 3, 8, 9, 10, 11]
    after_p = [placement.slots[index].offset for index in (2, 3, 4)]
    assert after_p == [32768, 32768 + 512, 32768 + 1024]
    assert index_map(alpha, placement.slots[2]) == IndexMap(1, 128, 64)


def test_subtiles_stay_clear_of_a_distinct_neighbour():
    placement = place(distinct(shared(leaf(0, 4, 4096), group_size=2), leaf(1, 2, 8192)))
    assert placement.slots == {0: Slot(0, 16384, 2), 1: Slot(8192, 16384, 1)}


def test_group_sizes_multiply_down_the_tree():
    placement = place(distinct(leaf(0, 2, 1024), shared(leaf(1, 4, 1024), group_size=2), group_size=2))
    assert [placement.slots[index].group_size for index in (0, 1)] == [2, 4]
    assert placement.total == 2 * 1024 + 4 * 1024


def test_declared_order_stays_when_it_costs_nothing():
    placement = place(distinct(leaf(0, 1, 512), leaf(1, 1, 512), leaf(2, 1, 256)))
    assert [placement.slots[index].offset for index in range(3)] == [0, 512, 1024]


def test_large_alignments_go_first_when_that_saves_space():
    tree = distinct(leaf(0, 1, 128), leaf(1, 1, 4096), leaf(2, 1, 128))
    placement = place(tree)
    assert [placement.slots[index].offset for index in range(3)] == [4096, 0, 4096 + 128]
    assert placement.total == 4096 + 256


def test_explicit_size_spreads_between_groups():
    placement = place(shared(leaf(0, 2, 1024)), 5000)
    assert placement.slots[0].stride == 2048
    assert placement.total == 5000


def test_explicit_size_without_space_for_padding_after_the_last_group():
    # Two groups of 24576 bytes at a stride of 32768 need 57344, which is less than twice the stride.
    tree = distinct(leaf(0, 2, 16384), leaf(1, 2, 8192))
    assert place(tree, 57344).slots == place(tree).slots


def test_without_a_tree_every_leaf_begins_with_the_region():
    placement = place_without_tree([leaf(0, 2, 16384, 1024), leaf(1, 6, 8192)])
    assert placement == Placement({0: Slot(0, 16384, 1), 1: Slot(0, 8192, 1)}, 49152, 1024)
    assert place_without_tree([leaf(0, 2, 16384)], 40000).total == 40000


@pytest.mark.parametrize(
    ("slot", "count", "expected"),
    [
        (Slot(0, 64, 1), 4, IndexMap(1, 1, 0)),
        (Slot(128, 64, 1), 4, IndexMap(1, 1, 2)),
        (Slot(128, 192, 1), 4, IndexMap(1, 3, 2)),
        (Slot(64, 192, 2), 4, IndexMap(2, 3, 1)),
        # One group: the stride is never taken, and may be anything.
        (Slot(64, 100, 4), 4, IndexMap(1, 1, 1)),
        # Dense groups need no division.
        (Slot(64, 128, 2), 4, IndexMap(1, 1, 1)),
    ],
)
def test_index_map_is_simplified(slot: Slot, count: int, expected: IndexMap):
    assert index_map(leaf(0, count, 64), slot) == expected


# --- errors ---------------------------------------------------------------------------------------------------------


def test_distinct_allocations_that_do_not_fit():
    tree = distinct(leaf(0, 2, 16384), leaf(1, 2, 16384))
    with pytest.raises(OverlapError) as caught:
        place(tree, 1024)
    assert str(caught.value) == (
        "not enough space for distinct allocations: need 32768 bytes, have 512 bytes in each of 2 buffer groups; "
        "buffer_size_bytes 1024 must be at least 65536"
    )
    assert place(tree, 65536).total == 65536


def test_shared_allocations_that_do_not_fit():
    with pytest.raises(OverlapError) as caught:
        place(shared(leaf(0, 2, 16384), leaf(1, 2, 8192)), 20000)
    assert str(caught.value) == (
        "storage_alias_spec buffer_size_bytes 20000 is too small for computed shape, requires at least 32768 bytes"
    )


def test_untreed_allocations_that_do_not_fit():
    with pytest.raises(OverlapError, match="20000 is too small for computed shape, requires at least 32768 bytes"):
        place_without_tree([leaf(0, 2, 16384)], 20000)


def test_a_group_of_buffers_is_not_whole():
    with pytest.raises(OverlapError, match="a whole number of buffer groups") as caught:
        place(shared(leaf(0, 3, 64), group_size=2))
    assert str(caught.value).endswith("a has 3 / 2 = 3/2")


@pytest.mark.parametrize(
    ("tree", "total"),
    [
        (shared(leaf(0, 2, 8192), leaf(1, 3, 8192)), 3 * 8192),
        # The third buffer of the second lies after both of the first.
        (shared(leaf(0, 2, 256), leaf(1, 3, 128)), 2 * 256 + 128),
        (shared(leaf(0, 3, 128), leaf(1, 2, 256)), 2 * 256 + 128),
        (distinct(leaf(0, 2, 64), leaf(1, 3, 64)), 2 * 256 + 128 + 64),
        (shared(distinct(leaf(0, 2, 1024), leaf(2, 2, 512)), leaf(1, 5, 4096)), 5 * 4096),
        # Three phases of a kernel with rings of their own.
        (
            shared(
                distinct(leaf(0, 2, 32768), leaf(1, 2, 32768)),
                distinct(leaf(2, 2, 32768), leaf(3, 2, 32768)),
                distinct(leaf(4, 3, 16384), leaf(5, 3, 16384)),
            ),
            2 * 65536 + 2 * 16384,
        ),
    ],
)
def test_fewer_buffers_than_others(tree: Group, total: int):
    placement = place(tree)
    assert placement.total == total
    check_laws(tree, placement)
    with pytest.raises(OverlapError, match="the same whole number of buffer groups"):
        place(tree, strict=True)


def test_what_is_asked_for_spreads_over_the_groups_of_the_array_with_most():
    assert place(shared(leaf(0, 2, 8192), leaf(1, 3, 8192)), 6 * 8192).slots[0].stride == 16384


def test_strict_refuses_what_the_default_pads():
    with pytest.raises(OverlapError) as caught:
        place(distinct(leaf(0, 2, 16384), leaf(1, 2, 8192)), strict=True)
    assert str(caught.value) == (
        "units_between_buffer_groups (24576) must be a multiple of the original buffer size (16384)"
    )
    with pytest.raises(OverlapError) as caught:
        place(distinct(leaf(0, 1, 8192), leaf(1, 1, 16384)), strict=True)
    assert str(caught.value) == "buffer_offset (8192) must be a multiple of the original buffer size (16384)"


def test_strict_keeps_the_declared_order():
    tree = distinct(leaf(0, 1, 128), leaf(1, 1, 128, 4096), leaf(2, 1, 128))
    assert [place(tree, strict=True).slots[index].offset for index in range(3)] == [0, 4096, 4096 + 128]
    assert place(tree).total < place(tree, strict=True).total


def test_strict_wants_alternating_kinds():
    tree = shared(leaf(0, 2, 64), shared(leaf(1, 4, 64), group_size=2))
    assert place(tree).slots[1].group_size == 2
    with pytest.raises(OverlapError, match="must have a different group_kind than their parent, both are shared"):
        place(tree, strict=True)


# --- laws -----------------------------------------------------------------------------------------------------------


@st.composite
def trees(draw: st.DrawFn) -> Group:
    """A tree whose leaves have equally many groups of buffers."""
    groups = draw(st.integers(1, 4))
    leaves = 0

    def node(depth: int, group_size: int) -> Node:
        nonlocal leaves
        if depth and (depth == 4 or draw(st.booleans())):
            unit, alignment = draw(st.sampled_from([4, 12, 64, 100, 256, 1024])), draw(st.sampled_from([16, 128, 1024]))
            leaves += 1
            return Leaf(leaves - 1, f"leaf {leaves - 1}", groups * group_size, unit, alignment)
        factor = draw(st.sampled_from([1, 1, 2, 3]))
        children = tuple(node(depth + 1, group_size * factor) for _ in range(draw(st.integers(1, 3))))
        return Group(draw(st.sampled_from(["shared", "distinct"])), children, factor)

    root = node(0, 1)
    assert isinstance(root, Group)
    return root


def paths(node: Node, above: tuple[Group, ...] = ()) -> dict[Leaf, tuple[Group, ...]]:
    """The groups above every leaf, from the root on."""
    if isinstance(node, Leaf):
        return {node: above}
    return {key: path for child in node.children for key, path in paths(child, (*above, node)).items()}


def spans(leaf_: Leaf, slot: Slot) -> list[tuple[int, int]]:
    """First byte and end of every buffer of a leaf, by the definition of a slot."""
    starts = [
        i // slot.group_size * slot.stride + slot.offset + i % slot.group_size * leaf_.unit for i in range(leaf_.count)
    ]
    return [(start, start + leaf_.unit) for start in starts]


def relation(path: tuple[Group, ...], other: tuple[Group, ...]) -> str:
    """Return the relation of two leaves: the innermost group that holds both decides."""
    common = [group for group, same in zip(path, other, strict=False) if group is same]
    return common[-1].kind


def check_laws(root: Group, placement: Placement) -> None:
    leaves = paths(root)
    buffers = {leaf_: spans(leaf_, placement.slots[leaf_.index]) for leaf_ in leaves}
    for leaf_, path in leaves.items():
        check_leaf(leaf_, path, placement)
    for one, other in combinations(leaves, 2):
        kind = relation(leaves[one], leaves[other])
        sizes = placement.slots[one.index].group_size, placement.slots[other.index].group_size
        for i, (start, end) in enumerate(buffers[one]):
            for j, (other_start, other_end) in enumerate(buffers[other]):
                if start < other_end and other_start < end:
                    assert kind == "shared"
                    assert i // sizes[0] == j // sizes[1]


def check_leaf(leaf_: Leaf, path: tuple[Group, ...], placement: Placement) -> None:
    slot = placement.slots[leaf_.index]
    places = index_map(leaf_, slot)
    group_size = 1
    for group in path:
        group_size *= group.group_size
    assert slot.group_size == group_size
    buffers = spans(leaf_, slot)
    for i, (start, end) in enumerate(buffers):
        assert 0 <= start < end <= placement.total
        assert places(i) * leaf_.unit == start
        # The first buffer of a group is aligned; the following are packed, as in any array of buffers.
        if i % group_size == 0 or leaf_.unit % leaf_.alignment == 0:
            assert start % leaf_.alignment == 0
    assert placement.alignment % leaf_.alignment == 0
    for (_, end), (start, _) in pairwise(buffers):
        assert end <= start


# More examples than elsewhere: trees vary in many ways at once, and an example takes under a millisecond.
many = settings(max_examples=max(300, settings().max_examples))


@many
@given(trees())
def test_laws(root: Group):
    check_laws(root, place(root))


@many
@given(trees(), st.integers(0, 20000))
def test_laws_with_an_explicit_size(root: Group, excess: int):
    needed = place(root).total
    placement = place(root, needed + excess)
    assert placement.total == needed + excess
    check_laws(root, placement)


def fewer(node: Node, less: st.DataObject, above: int = 1) -> Node:
    """A tree some of whose leaves have fewer groups of buffers."""
    if isinstance(node, Group):
        size = above * node.group_size
        return replace(node, children=tuple(fewer(child, less, size) for child in node.children))
    return replace(node, count=less.draw(st.integers(1, node.count // above)) * above)


@many
@given(trees(), st.data(), st.integers(0, 20000))
def test_laws_with_fewer_buffers_in_some_leaves(whole: Group, less: st.DataObject, excess: int):
    root = fewer(whole, less)
    assert isinstance(root, Group)
    placement = place(root)
    check_laws(root, placement)
    assert placement.total <= place(whole).total
    assert place(root, placement.total) == placement
    check_laws(root, place(root, placement.total + excess))


@given(trees())
def test_the_computed_size_is_the_smallest_that_works(root: Group):
    """The offset pass, which sees the settled size only, finds what the size pass found."""
    placement = place(root)
    assert place(root, placement.total) == placement
    with pytest.raises(OverlapError):
        place(root, placement.total - 1)


@given(trees())
def test_laws_under_strict(root: Group):
    try:
        placement = place(root, strict=True)
    except OverlapError:
        return
    check_laws(root, placement)
