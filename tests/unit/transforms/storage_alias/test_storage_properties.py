"""Storage aliasing as a whole: random programs are lowered, then run for the addresses of their buffers.

What is checked is what the user was promised, on the IR that leaves the passes: buffers of a distinct group never
overlap, those of a shared group only at the same index, nothing lies outside of the allocation or off its alignment,
an explicit size is kept or refused, and every path to a buffer ends at the address that the storage map states.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

import pytest
from hypothesis import assume, event, example, given, settings, strategies as st

from tests.unit import volume
from tests.unit.transforms.storage_alias.storage_lowered import BYTES_PER_UNIT, SIZES, Lowered, lower, module_of
from tests.unit.transforms.storage_alias.storage_machine import Machine
from tests.unit.transforms.storage_alias.storage_paths import PATHS
from tests.unit.transforms.storage_alias.storage_trees import (
    SMEM,
    TMEM,
    Buffers,
    Node,
    Program,
    Storage,
    programs,
    relation,
    strict_layout,
)
from tlx_xdsl.analysis.storage_map_reader import storage_maps
from tlx_xdsl.dialects.ttg.types import MemDescType
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.text.diagnostics import collected_diagnostics


def examples(full: int, ci: int) -> settings:
    """The same examples in every run."""
    return settings(max_examples=full if volume.is_full() else ci, derandomize=True, database=None)


def total_of(program: Program) -> int:
    """The size that the passes compute; programs that tensor memory has no room for are left out."""
    try:
        lowered = lower(program, accesses=False)
    except CompilationError as error:
        assume("columns of tensor memory" not in str(error))
        raise
    sizes = [
        SIZES[program.storage.name](op.results[0].type)
        for op in lowered.module.walk()
        if op.name in ("ttg.local_alloc", "ttng.tmem_alloc") and isinstance(op.results[0].type, MemDescType)
    ]
    (size,) = sizes
    return size


# --- what is promised -----------------------------------------------------------------------------------------------


def check_promises(lowered: Lowered, size: int | None) -> None:
    """Check all that holds for every program, declared in order or padded."""
    program, addresses = lowered.program, lowered.addresses
    for leaf in program.leaves:
        assert len(addresses[leaf.number]) == leaf.count
        check_leaf(leaf, addresses[leaf.number], lowered)
    ends = [max(addresses[leaf.number]) + leaf.tile.unit for leaf in program.leaves]
    assert lowered.total == (max(ends) if size is None else size)
    if program.has_tree:
        for one, other in combinations(program.leaves, 2):
            check_pair(program.tree, one, other, addresses)
        for group in program.tree.groups():
            check_shared_start(group, addresses)


def check_leaf(leaf: Buffers, addresses: Sequence[int], lowered: Lowered) -> None:
    unit, alignment = leaf.tile.unit, leaf.tile.alignment
    for index, address in enumerate(addresses):
        assert 0 <= address <= lowered.total - unit
        # A group of buffers is aligned; in it, as in an array that stands in no tree, buffers are packed.
        starts_a_group = index == 0 or (lowered.program.has_tree and index % leaf.group_size == 0)
        if starts_a_group or unit % alignment == 0:
            assert address % alignment == 0
    assert all(after - before >= unit for before, after in pairwise(addresses))


def check_pair(tree: Node, one: Buffers, other: Buffers, addresses: dict[int, list[int]]) -> None:
    kind = relation(tree, one, other)
    for i, start in enumerate(addresses[one.number]):
        for j, second in enumerate(addresses[other.number]):
            if start < second + other.tile.unit and second < start + one.tile.unit:
                assert kind == "shared", f"leaves {one.number}[{i}] and {other.number}[{j}] overlap"
                assert i // one.group_size == j // other.group_size


def check_shared_start(group: Node, addresses: dict[int, list[int]]) -> None:
    """The members of a shared group begin together."""
    if group.kind == "shared":
        starts = {
            min(addresses[leaf.number][0] for leaf in (child.leaves() if isinstance(child, Node) else [child]))
            for child in group.children
        }
        assert len(starts) == 1


def check_map(lowered: Lowered, size: int | None) -> None:
    """Check the map that `tlx map` shows of the kernel before it is lowered."""
    program, addresses = lowered.program, lowered.addresses
    (map_,) = storage_maps(module_of(program, size), 100)
    (region,) = map_.regions
    assert region.size == lowered.total
    arrays = {array.name: array for array in region.arrays}
    for leaf in program.leaves:
        spans = arrays[f"b{leaf.number}"].buffers
        assert [span.start for span in spans] == addresses[leaf.number]
        assert all(span.size == leaf.tile.unit for span in spans)


STORAGES: Sequence[Storage] = (SMEM, TMEM)
any_program = st.sampled_from(STORAGES).flatmap(lambda storage: programs(storage, tuple(PATHS)))


@examples(5000, 150)
@given(any_program, st.sampled_from(["computed", "computed", "exact", "larger"]), st.integers(1, 70000))
def test_lowered_buffers_keep_the_promises_of_their_tree(program: Program, sizing: str, excess: int):
    least = total_of(program)
    if program.storage is TMEM:
        excess = min(excess % 100, 512 - least)
    size = None if sizing == "computed" else least + (excess if sizing == "larger" else 0)
    event(f"{program.storage.name}, {program.tree.depth} groups deep")
    event(f"size {sizing}")
    for path in set(program.paths):
        event(f"path {path}")
    lowered = lower(program, size)
    check_promises(lowered, size)
    check_map(lowered, size)


TOO_SMALL = ("is too small for computed shape", "not enough space for distinct allocations")


@examples(1000, 30)
@given(any_program)
def test_views_that_fill_their_allocation(program: Program):
    """Triton 3.8 gets the same addresses, or a refusal; what the allocation grows by is said."""
    least = total_of(program)
    error: CompilationError | None = None
    with collected_diagnostics() as found:
        try:
            lowered = lower(program, whole_views=True)
        except CompilationError as refusal:
            error = refusal
    if error is not None:
        event("refused")
        refused = "columns of tensor memory under Triton 3.8" in str(error)
        assert refused or "under Triton 3.8 the array" in str(error)
        assert refused or set(program.paths) - {"constant", "partition", "buffer of a branch"}
        return
    addresses = lowered.addresses
    assert all(len(addresses[leaf.number]) == leaf.count for leaf in program.leaves)
    grown = lowered.total - least
    assert grown >= 0
    event(f"grown: {grown > 0}")
    unit = BYTES_PER_UNIT[program.storage.name]
    assert [d.severity for d in found] == ["remark"] * (grown > 0)
    assert all(f"{grown} columns" in d.message or f"{grown * unit} bytes" in d.message for d in found)
    for op in lowered.module.walk():
        if op.name == "ttg.memdesc_reinterpret" and "alloc" in getattr(op.operands[0].owner, "name", ""):
            (type_,) = op.result_types
            assert isinstance(type_, MemDescType)
            assert SIZES[program.storage.name](type_) == lowered.total


@examples(1000, 30)
@given(any_program, st.integers(1, 3000))
def test_a_size_that_is_too_small_is_refused(program: Program, missing: int):
    size = total_of(program) - (missing if program.storage is SMEM else 1 + missing % 20)
    assume(size > 0)
    with pytest.raises(CompilationError) as caught:
        lower(program, size, accesses=False)
    assert any(message in str(caught.value) for message in TOO_SMALL)
    assert str(caught.value).startswith("kernel.py:")


def array(number: int, shape: str) -> Buffers:
    return Buffers(number, next(tile for tile in SMEM.tiles if (tile.shape, tile.element) == (shape, "f16")), 1, 1)


# The larger tile first would save the gap between the two.
GAP = Program(SMEM, Node("distinct", 1, (array(0, "8x16"), array(1, "8x32"))), 1, True, ("constant",) * 2)


@examples(2000, 60)
@given(any_program)
@example(GAP)
def test_strict_keeps_the_declared_layout_or_says_why_not(program: Program):
    assume(program.has_tree)
    expected = strict_refusal(program)
    total_of(program)
    event("refused" if expected else "kept")
    if expected is not None:
        with pytest.raises(CompilationError) as caught:
            lower(program, strict=True)
        assert expected in str(caught.value)
        return
    lowered = lower(program, strict=True)
    check_promises(lowered, None)
    offsets, size, alignment = strict_layout(program)
    stride = -(-size // alignment) * alignment
    assert lowered.places == [(offsets[leaf.number], stride, leaf.group_size) for leaf in program.leaves]


def strict_refusal(program: Program) -> str | None:
    """A part of the error that `strict` owes to `program`; None if its declared layout is expressible."""
    for group in program.tree.groups():
        if any(isinstance(child, Node) and child.kind == group.kind for child in group.children):
            return "nested reuse_groups must have a different group_kind than their parent"
    offsets, size, alignment = strict_layout(program)
    stride = -(-size // alignment) * alignment
    for leaf in program.leaves:
        if (program.groups > 1 and stride % leaf.tile.unit) or offsets[leaf.number] % leaf.tile.unit:
            return "must be a multiple of the original buffer size"
    return None


@st.composite
def two_of_a_kind(draw: st.DrawFn) -> Program:
    """Two arrays of one type, with something between them."""
    storage = draw(st.sampled_from(STORAGES))
    groups, size = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    tile, between = draw(st.sampled_from(storage.tiles)), draw(st.sampled_from(storage.tiles))
    wedge = Node("shared", 1, (Buffers(1, between, groups * size, size),))
    first, last = (Buffers(number, tile, groups * size, size) for number in (0, 2))
    tree = Node(draw(st.sampled_from(["shared", "distinct"])), size, (first, wedge, last))
    return Program(storage, tree, groups, True, ("constant",) * 3)


BETWEEN = [
    "%one = arith.select %c, %b0, %b2 : !t0",
    '%selected = ttg.memdesc_index %one[%i0] : !t0 -> !e0 loc("access selected":1:1)',
]


@examples(1000, 30)
@given(two_of_a_kind())
def test_either_of_two_arrays_is_right_or_refused(program: Program):
    total_of(program)
    error: CompilationError | None = None
    try:
        lowered = lower(program, more=BETWEEN)
    except CompilationError as refusal:
        error = refusal
    if error is not None:
        event("refused")
        assert program.tree.kind == "distinct"
        # It names both allocations.
        said = "\n".join([str(error), *error.notes])
        assert "kernel.py:2:1" in said
        assert "kernel.py:4:1" in said
        return
    event("taken")
    machine = Machine(lowered.module, SIZES[program.storage.name])
    for index in range(program.leaves[0].count):
        for taken in (0, 1):
            (access,) = [a for a in machine.main([index, 0, index, taken]) if a.path == "selected"]
            assert access.view.address == lowered.stated(0 if taken else 2, index)


def test_the_examples_cover_what_they_should():
    """Every path, group sizes on leaves of different size, and trees of three groups and more."""
    seen: list[Program] = []

    @settings(max_examples=300, derandomize=True, database=None)
    @given(any_program)
    def collect(program: Program) -> None:
        seen.append(program)

    collect()
    reached = {
        path
        for program in seen
        for leaf, path in zip(program.leaves, program.paths, strict=True)
        if PATHS[path](leaf, program.storage)
    }
    assert reached == set(PATHS)
    assert {program.storage.name for program in seen} == {storage.name for storage in STORAGES}
    assert sum(program.tree.depth >= 3 for program in seen) >= 25
    mixed = [program for program in seen if len({leaf.group_size for leaf in program.leaves}) > 1]
    assert len(mixed) >= 25
