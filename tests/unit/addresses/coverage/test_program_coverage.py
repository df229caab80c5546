"""Collisions, bounds and holes, in kernels where they are planted and where they are not."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from tests.unit.volume import is_full
from tlx_xdsl.addresses import analyse_program_addresses
from tlx_xdsl.addresses.coverage.coverage import Coverage
from tlx_xdsl.addresses.coverage.disjointness import proofs
from tlx_xdsl.addresses.coverage.hints import coalescing_hint, prefetch_hint, regularity, vector_bytes
from tlx_xdsl.addresses.coverage.launch import Launch
from tlx_xdsl.addresses.coverage.map import coverage_map
from tlx_xdsl.addresses.coverage.runs import Runs, meeting
from tlx_xdsl.addresses.coverage.walk import TooLong
from tlx_xdsl.analysis.axis_info import axis_infos
from tlx_xdsl.interpreter.plan import kernel_of
from tlx_xdsl.runtime.driver.compilation import Specialization, frontend_module
from tlx_xdsl.text.diagnostics import source_location
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.tools.launch_line.loading import load_kernel

KERNELS = Path(__file__).parent / "coverage_kernels.py"


def module_of(name: str, **constexprs: int):
    kernel, defaults = load_kernel(f"{KERNELS}:{name}")
    module = frontend_module(kernel.source, Specialization(defaults.signature, {**defaults.constexprs, **constexprs}))
    return module, kernel_of(module, None)


def covered(name: str, grid: tuple[int, int, int], shapes=None, numbers=None, **constexprs: int) -> Coverage:
    return Coverage(*module_of(name, **constexprs), Launch(grid, numbers or {}, shapes or {}))


def proof_of(name: str):
    module, _ = module_of(name)
    (found,) = proofs(module, analyse_program_addresses(module).accesses)
    return found


def line(op) -> str:
    place = source_location(op.location)
    return KERNELS.read_text().splitlines()[place.line - 1].strip()


# Between programs -----------------------------------------------------------------------------------------------------


def test_a_masked_tail_is_fine():
    coverage = covered("masked_copy", (8, 1, 1), {"src": (500,), "dst": (500,)}, {"n": 500})
    (writing,) = coverage.writings()
    assert (writing.array, writing.verdict, writing.meeting) == ("dst", "disjoint", None)
    assert coverage.leaving() == []
    assert coverage.holes("dst") == []


def test_an_unmasked_tail_leaves_the_arrays():
    coverage = covered("unmasked_copy", (8, 1, 1), {"src": (500,), "dst": (440,)})
    source, target = coverage.leaving()
    assert (source.array, source.programs, source.program, source.index, source.certain) == ("src", 1, 7, 500, True)
    assert (target.array, target.programs, target.program, target.index) == ("dst", 2, 6, 440)
    assert coverage.writings()[0].verdict == "disjoint"


def test_an_access_before_the_array():
    (leaving,) = covered("before_the_start", (2, 1, 1), {"dst": (127,)}).leaving()
    assert (leaving.program, leaving.index) == (0, -1)


def test_a_planted_collision():
    (writing,) = covered("collision", (3, 1, 1)).writings()
    assert writing.verdict == "collides"
    assert (writing.meeting.program, writing.meeting.other, writing.meeting.byte) == (0, 1, 60 * 4)


def test_a_collision_of_two_lines():
    (writing,) = covered("two_lines", (3, 1, 1)).writings()
    assert (writing.meeting.program, writing.meeting.other, writing.meeting.byte) == (0, 2, (2 * 64 + 3) * 4)
    assert [line(op) for op in writing.ops] == [
        "tl.store(dst + (pid + 2) * BLOCK + 3 + lanes, 1.0, mask=lanes < 1)",
        "tl.store(dst + pid * BLOCK + lanes, 0.0)",
    ]
    (alone,) = covered("two_lines", (2, 1, 1)).writings()
    assert alone.verdict == "disjoint"


def test_a_collision_in_the_last_unit_of_a_row():
    """TMA writes rows in units of 16 bytes: 41 to 44 floats are 44."""
    (writing,) = covered("two_parts", (2, 1, 1), numbers={"first": 41}).writings()
    assert (writing.meeting.program, writing.meeting.other, writing.meeting.byte) == (0, 1, 41 * 4)
    (writing,) = covered("two_parts", (2, 1, 1), numbers={"first": 44}).writings()
    assert writing.verdict == "disjoint"


def test_holes():
    coverage = covered("holes", (4, 1, 1), {"dst": (256,)})
    assert [(hole.start // 4, hole.end // 4) for hole in coverage.holes("dst")] == [
        (48, 64), (112, 128), (176, 192), (240, 256),
    ]  # fmt: skip
    assert coverage.writings()[0].verdict == "disjoint"


def test_atomics_are_no_collision_but_a_store_among_them_is():
    (shared,) = covered("split_k", (2, 3, 1)).writings()
    assert shared.verdict == "shared by atomics"
    (mixed,) = covered("split_k_with_store", (2, 3, 1)).writings()
    assert mixed.verdict == "collides"
    assert {line(op) for op in mixed.ops} == {
        "tl.store(dst + x * BLOCK + lanes, part)",
        "tl.atomic_add(dst + x * BLOCK + lanes, part)",
    }
    (alone,) = covered("split_k_with_store", (2, 1, 1)).writings()
    assert alone.verdict == "disjoint"


def test_what_depends_on_data_is_not_known_unless_nothing_can_happen():
    (loaded,) = covered("scatter", (2, 1, 1)).writings()
    assert (loaded.verdict, loaded.meeting) == ("not known", None)
    assert "loaded" in loaded.reason
    (masked,) = covered("chosen", (2, 1, 1)).writings()
    assert masked.verdict == "disjoint"
    (maybe,) = covered("chosen_collision", (2, 1, 1)).writings()
    assert (maybe.verdict, maybe.meeting) == ("not known", None)
    coverage = covered("chosen", (2, 1, 1), {"dst": (100,)})
    assert [(each.certain, each.index) for each in coverage.leaving() if each.array == "dst"] == [(False, 100)]
    assert coverage.holes("dst") is None


def test_an_argument_without_a_value():
    (writing,) = covered("rows", (4, 1, 1)).writings()
    assert (writing.verdict, writing.reason) == ("not known", "it depends on 'stride', and it has no value")


def test_a_loop_without_an_end():
    with pytest.raises(TooLong, match="operations would have to be run"):
        Coverage(*module_of("endless"), Launch((1, 1, 1)), limit=1000)


@pytest.mark.parametrize(
    ("ptx", "verdict"),
    [
        ("st.global.b32 [$1], 0; mov.b32 $0, 0;", "not known"),
        ("{ st.b32 [$1], 0; mov.b32 $0, 0; }", "not known"),
        ("@p red.async.relaxed.global.add.u32 [$1], 1;", "not known"),
        ("cp.async.bulk.global.shared::cta.bulk_group [$1], [$1], 16;", "not known"),
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$1], [$1], 16, [$1];", "disjoint"),
        ("cp.async.bulk.commit_group;", "disjoint"),
        ("st.shared.b32 [$1], 0;", "disjoint"),
        ("prefetch.global.L2 [$1]; mov.b32 $0, 0;", "disjoint"),
        ("tcgen05.st.sync.aligned.32x32b.x1.b32 [$1], {$1};", "disjoint"),
    ],
)
def test_ptx_may_write_anywhere(ptx: str, verdict: str):
    text = f"""tt.func @f(%p: !tt.ptr<i32>) {{
        %pid = tt.get_program_id x : i32
        %place = tt.addptr %p, %pid : !tt.ptr<i32>, i32
        tt.store %place, %pid : !tt.ptr<i32>
        %0 = tt.elementwise_inline_asm "{ptx}" {{
            constraints = "=r,l", packed_element = 1 : i32, pure = false}} %place : !tt.ptr<i32> -> i32
        tt.return
    }}"""
    module = parse_module(text)
    (writing,) = Coverage(module, kernel_of(module, None), Launch((4, 1, 1))).writings()
    assert writing.verdict == verdict
    (proof,) = proofs(module, analyse_program_addresses(module).accesses)
    assert proof.verdict == verdict


# For all launches -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "verdict", "condition"),
    [
        ("masked_copy", "disjoint", "pid_x <= 33554431"),
        ("rows", "disjoint", "4*%stride >= 256"),
        ("two_axes", "disjoint", "num_programs_x <= 8"),
        ("same_block", "collides", "there is more than one program"),
        ("collision", "not known", None),
        ("two_axes_too_close", "not known", None),
        ("scatter", "not known", None),
        ("chosen_collision", "not known", None),
        ("grouped_matmul", "not known", None),
    ],
)
def test_proofs_from_strides(name: str, verdict: str, condition: str | None):
    found = proof_of(name)
    assert found.verdict == verdict
    assert condition is None or condition in found.conditions


GRIDS = {"masked_copy": (9, 1, 1), "rows": (5, 1, 1), "two_axes": (8, 3, 1), "same_block": (2, 1, 1)}


@pytest.mark.parametrize("name", GRIDS)
def test_proofs_hold_for_launches(name: str):
    (writing,) = covered(name, GRIDS[name], numbers={"n": 9 * 64, "stride": 64}).writings()
    assert writing.verdict == proof_of(name).verdict


def test_the_conditions_of_proofs_are_needed():
    assert covered("rows", (5, 1, 1), numbers={"stride": 63}).writings()[0].verdict == "collides"
    assert covered("two_axes", (9, 3, 1)).writings()[0].verdict == "collides"


# Hints ----------------------------------------------------------------------------------------------------------------


def accesses_of(name: str):
    return {(each.kind.value, each.base_name): each for each in analyse_program_addresses(module_of(name)[0]).accesses}


def test_a_transposed_store_is_not_coalesced_along_its_last_dimension():
    found = accesses_of("transpose")
    assert coalescing_hint(found["load", "src"]) is not None
    assert vector_bytes(found["load", "src"]) == 4
    assert found["store", "dst"].dimensions[1].contiguity == 1
    assert found["store", "dst"].dimensions[0].contiguity == 32


def test_vectors_of_aligned_pointers():
    found = accesses_of("masked_copy")
    assert vector_bytes(found["load", "src"]) == 16
    assert coalescing_hint(found["load", "src"]) is None
    unaligned = accesses_of("unmasked_copy")["load", "src"]
    assert vector_bytes(unaligned) == 4
    assert "narrow: 4 bytes" in (coalescing_hint(unaligned) or "")


def test_the_next_block_of_a_loop():
    found = accesses_of("grouped_matmul")
    hints = [prefetch_hint(found["load", name]) for name in "ab"]
    assert [str(hint.stride) for hint in hints if hint is not None] == ["64", "64*%N"]
    assert prefetch_hint(found["store", "c"]) is None


def test_the_regularity_of_pointers_is_that_of_axis_info():
    """Compare where both know something: indices may be negative for the one, calls are opaque to the other."""
    module, function = module_of("grouped_matmul")
    infos = axis_infos(function)
    for access in analyse_program_addresses(module).accesses:
        found = regularity(access)
        assert found is not None
        assert (found.contiguity, found.divisibility) == (
            infos[access.op.ptr].contiguity, infos[access.op.ptr].divisibility,
        )  # fmt: skip


# Maps -----------------------------------------------------------------------------------------------------------------


def test_the_map_of_a_grouped_matmul():
    """Computed here once more: rows of tiles in groups of four, the columns one after the other."""
    shapes = {"a": (512, 64), "b": (64, 256), "c": (512, 256)}
    coverage = covered("grouped_matmul", (32, 1, 1), shapes, {"M": 512, "N": 256, "K": 64})
    c = coverage_map(coverage.of("c", "store"), shapes["c"])
    order = [[row % 4 + 4 * column + row // 4 * 16 for column in range(4)] for row in range(8)]
    assert c.first.tolist() == order
    assert (c.counts == 1).all()
    a = coverage_map(coverage.of("a", "load"), shapes["a"])
    assert (a.first[:, 0].tolist(), set(a.counts.ravel().tolist())) == ([row[0] for row in order], {4})
    b = coverage_map(coverage.of("b", "load"), shapes["b"])
    assert (b.first[0].tolist(), set(b.counts.ravel().tolist())) == (order[0], {8})
    assert coverage.writings()[0].verdict == "disjoint"


def test_a_map_of_many_blocks_has_samples_that_are_true():
    coverage = covered("unmasked_copy", (1000, 1, 1), {"dst": (64_000,), "src": (64_000,)})
    found = coverage_map(coverage.of("dst", "store"), (64_000,))
    assert not found.is_exact
    assert found.counts.shape[1] <= 96
    samples = (found.columns[:-1] + found.columns[1:]) // 2
    assert (found.first[0] == samples // 64).all()
    assert (found.counts == 1).all()


# Runs -----------------------------------------------------------------------------------------------------------------

RUNS = st.lists(st.tuples(st.integers(0, 4), st.integers(-5, 40), st.integers(1, 9)), max_size=25)


def as_runs(listed) -> Runs:
    columns = np.array(listed, np.int64).reshape(-1, 3)
    return Runs(columns[:, 0], columns[:, 1], columns[:, 1] + columns[:, 2])


def owners(listed) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for program, start, length in listed:
        for byte in range(start, start + length):
            found.setdefault(byte, set()).add(program)
    return found


@settings(max_examples=2000 if is_full() else 150, derandomize=True, deadline=None)
@given(RUNS, RUNS)
def test_meetings_are_found_and_real(listed, others):
    mine, theirs = owners(listed), owners(others)
    shared = {byte for byte, programs in mine.items() if len(programs) > 1}
    found = meeting(as_runs(listed))
    assert (found is None) == (not shared)
    if found is not None:
        assert found.byte == min(shared)
        assert {found.program, found.other} <= mine[found.byte]
        assert found.program != found.other
    between = {b for b in mine.keys() & theirs.keys() if len(mine[b] | theirs[b]) > 1}
    found = meeting(as_runs(listed), as_runs(others))
    assert (found is None) == (not between)
    if found is not None:
        assert found.program in mine[found.byte]
        assert found.other in theirs[found.byte] - {found.program}


@settings(max_examples=2000 if is_full() else 150, derandomize=True, deadline=None)
@given(RUNS)
def test_united_runs_are_the_same_bytes(listed):
    check_united(listed, 0)


def test_united_runs_of_programs_far_apart():
    """Unite runs whose places do not fit into one number of 64 bits together."""
    check_united([(program, start, 3) for program in (0, 5) for start in (1, 2, 9, 12)], 1 << 60)


def check_united(listed, apart: int):
    runs = as_runs(listed)
    moved = Runs(runs.program, runs.start + apart * (runs.start > 8), runs.end + apart * (runs.start > 8))
    united = moved.united()
    far = apart * (united.start > apart) if apart else 0
    united = Runs(united.program, united.start - far, united.end - far)
    rows = list(zip(united.program.tolist(), united.start.tolist(), (united.end - united.start).tolist(), strict=True))
    assert owners(rows) == owners(listed)
    for (program, start, length), (other, following, _) in pairwise(rows):
        assert program < other or start + length < following
