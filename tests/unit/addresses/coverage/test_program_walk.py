"""The addresses of small functions, program by program, against Python's integers."""

from __future__ import annotations

import numpy as np
import pytest

from tlx_xdsl.addresses.coverage.coverage import Coverage, Touched
from tlx_xdsl.addresses.coverage.launch import Launch
from tlx_xdsl.addresses.coverage.map import coverage_map
from tlx_xdsl.addresses.coverage.runs import Runs
from tlx_xdsl.addresses.coverage.values import Number, compared, fitted, wrapped
from tlx_xdsl.analysis.integers.functions import COMPARISONS
from tlx_xdsl.interpreter.plan import kernel_of
from tlx_xdsl.text.parser import parse_module
from tlx_xdsl.text.verify import verify_module

pytestmark = pytest.mark.quick


def coverage_of(body: str, programs: int, **numbers: int) -> Coverage:
    """Compute the coverage of a function that gets `%pid`, some constants, lanes 0 to 7 and a pointer to bytes."""
    text = f"""tt.func @f(%p: !tt.ptr<i8>, %flags: !tt.ptr<i32>, %n: i32) {{
        %pid = tt.get_program_id x : i32
        %zero = arith.constant 0 : i8
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %c3 = arith.constant 3 : i32
        %c8 = arith.constant 8 : i32
        %lanes = tt.make_range {{start = 0 : i32, end = 8 : i32}} : tensor<8xi32>
        %flag = tt.load %flags : !tt.ptr<i32>
        %loaded = arith.cmpi sgt, %flag, %c0 : i32
        {body}
    }}"""
    module = parse_module(text)
    verify_module(module)
    return Coverage(module, kernel_of(module, None), Launch((programs, 1, 1), numbers))


def bytes_of(runs: Runs, program: int) -> list[int]:
    mine = runs.where(runs.program == program)
    return sorted(byte for a, b in zip(mine.start.tolist(), mine.end.tolist(), strict=True) for byte in range(a, b))


def stored(coverage: Coverage, programs: int, *, maybe: bool = False) -> list[list[int]]:
    """List the bytes that each program stores to `%p`."""
    touched = coverage.of("p", "store")
    runs = Runs.joined([each.maybe if maybe else each.runs for each in touched])
    return [bytes_of(runs, program) for program in range(programs)]


STORE = """
    %place = tt.addptr %p, %x : !tt.ptr<i8>, i32
    tt.store %place, %zero : !tt.ptr<i8>
"""

NUMBERS = {
    "%x = arith.muli %pid, %big : i32": lambda pid: pid * 1_000_000_000,
    "%y = arith.addi %pid, %big : i32 \n %x = arith.addi %y, %big : i32 \n": lambda pid: pid + 2_000_000_000,
    "%y = arith.addi %big, %big : i32 \n %x = arith.addi %y, %big : i32 \n": lambda pid: 3_000_000_000,
    "%y = arith.subi %pid, %c3 : i32 \n %x = arith.divsi %y, %two : i32": lambda pid: int((pid - 3) / 2),
    "%y = arith.subi %pid, %c3 : i32 \n %x = arith.remsi %y, %two : i32": lambda pid: (
        (pid - 3) - 2 * int((pid - 3) / 2)
    ),
    "%y = arith.subi %pid, %c3 : i32 \n %x = arith.divui %y, %two : i32": lambda pid: ((pid - 3) % 2**32) // 2,
    "%y = arith.subi %pid, %c3 : i32 \n %x = arith.shrui %y, %c1 : i32": lambda pid: ((pid - 3) % 2**32) >> 1,
    "%y = arith.subi %pid, %c3 : i32 \n %x = arith.shrsi %y, %c1 : i32": lambda pid: (pid - 3) >> 1,
    "%y = arith.subi %pid, %c3 : i32 \n %x = arith.minui %y, %c8 : i32": lambda pid: min((pid - 3) % 2**32, 8),
    "%x = arith.shli %pid, %c3 : i32": lambda pid: pid << 3,
    "%x = arith.xori %pid, %c3 : i32": lambda pid: pid ^ 3,
    "%y = arith.cmpi ult, %pid, %c3 : i32 \n %x = arith.select %y, %pid, %c8 : i32": lambda pid: pid if pid < 3 else 8,
    "%y = arith.trunci %wide : i32 to i8 \n %x = arith.extsi %y : i8 to i32": lambda pid: (pid * 100 + 128) % 256 - 128,
    "%y = arith.trunci %wide : i32 to i8 \n %x = arith.extui %y : i8 to i32": lambda pid: pid * 100 % 256,
    "%y = arith.cmpi eq, %pid, %c3 : i32 \n %x = arith.extsi %y : i1 to i32": lambda pid: -(pid == 3),
    "%x = tt.call @twice(%pid) : (i32) -> i32": lambda pid: 2 * pid,
}


@pytest.mark.parametrize(("code", "number"), NUMBERS.items())
def test_integers_are_those_of_the_hardware(code: str, number):
    head = """
        %big = arith.constant 1000000000 : i32
        %two = arith.constant 2 : i32
        %hundred = arith.constant 100 : i32
        %wide = arith.muli %pid, %hundred : i32
    """
    twice = "} tt.func private @twice(%a: i32) -> i32 { %b = arith.addi %a, %a : i32 \n tt.return %b : i32"
    coverage = coverage_of(f"{head}{code}{STORE} tt.return {twice}", 6)
    wrapped = [(number(pid) + 2**31) % 2**32 - 2**31 for pid in range(6)]
    assert stored(coverage, 6) == [[each] for each in wrapped]


def masked(mask: str) -> str:
    return f"""{mask}
        %ptrs = tt.splat %p : !tt.ptr<i8> -> tensor<8x!tt.ptr<i8>>
        %places = tt.addptr %ptrs, %lanes : tensor<8x!tt.ptr<i8>>, tensor<8xi32>
        %zeros = tt.splat %zero : i8 -> tensor<8xi8>
        tt.store %places, %zeros, %mask : tensor<8x!tt.ptr<i8>>
        tt.return"""


def test_a_mask_with_gaps():
    """A mask with gaps is not one run: neither in the middle, nor at both ends."""
    mask = "%s = tt.splat %pid : i32 -> tensor<8xi32> \n %mask = arith.cmpi ne, %lanes, %s : tensor<8xi32>"
    expected = [[lane for lane in range(8) if lane != pid] for pid in range(9)]
    assert stored(coverage_of(masked(mask), 9), 9) == expected


def test_half_of_a_conjunction_is_known():
    mask = """%s = tt.splat %pid : i32 -> tensor<8xi32>
        %flags8 = tt.splat %loaded : i1 -> tensor<8xi1>
        %few = arith.cmpi slt, %lanes, %s : tensor<8xi32>
        %mask = arith.andi %few, %flags8 : tensor<8xi1>"""
    coverage = coverage_of(masked(mask), 3)
    assert stored(coverage, 3) == [[], [], []]
    assert stored(coverage, 3, maybe=True) == [[], [0], [0, 1]]


def test_transposed_and_reshaped():
    """Element [i, j] of 4x2 lanes 2*i + j; transposed, element [j, i] lies at 4*j + i times two."""
    code = """
        %square = tt.reshape %lanes : tensor<8xi32> -> tensor<4x2xi32>
        %turned = tt.trans %square {order = array<i32: 1, 0>} : tensor<4x2xi32> -> tensor<2x4xi32>
        %row = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
        %across = tt.expand_dims %row {axis = 0 : i32} : tensor<4xi32> -> tensor<1x4xi32>
        %far = arith.constant dense<100> : tensor<1x4xi32>
        %hundreds = arith.muli %across, %far : tensor<1x4xi32>
        %wide = tt.broadcast %hundreds : tensor<1x4xi32> -> tensor<2x4xi32>
        %offsets = arith.addi %turned, %wide : tensor<2x4xi32>
        %ptrs = tt.splat %p : !tt.ptr<i8> -> tensor<2x4x!tt.ptr<i8>>
        %places = tt.addptr %ptrs, %offsets : tensor<2x4x!tt.ptr<i8>>, tensor<2x4xi32>
        %zeros = tt.splat %zero : i8 -> tensor<2x4xi8>
        tt.store %places, %zeros : tensor<2x4x!tt.ptr<i8>>
        tt.return"""
    expected = np.arange(8).reshape(4, 2).T + 100 * np.arange(4)
    assert stored(coverage_of(code, 1), 1) == [sorted(expected.ravel().tolist())]


LOOP = """
    %last = scf.for %i = %c0 to {bound} step %c3 iter_args(%at = %pid) -> (i32) : i32 {{
        %place = tt.addptr %p, %at : !tt.ptr<i8>, i32
        tt.store %place, %zero : !tt.ptr<i8>
        %next = arith.addi %at, %c8 : i32
        scf.yield %next : i32
    }}
    %end = tt.addptr %p, %last : !tt.ptr<i8>, i32
    tt.store %end, %zero : !tt.ptr<i8>
    tt.return
"""


def test_loops_of_different_lengths():
    """Programs carry the values of their own last iteration out of a loop."""
    expected = [[pid + 8 * turn for turn in range(len(range(0, pid, 3)) + 1)] for pid in range(8)]
    assert stored(coverage_of(LOOP.format(bound="%pid"), 8), 8) == expected


def test_a_loop_of_unknown_length():
    coverage = coverage_of(LOOP.format(bound="%flag"), 2)
    assert stored(coverage, 2) == [[], []]
    assert len(coverage.unseen) == 2
    assert [each.verdict for each in coverage.writings()] == ["not known"]


def test_a_while_loop():
    code = """
        %last = scf.while (%at = %pid) : (i32) -> i32 {
            %on = arith.cmpi slt, %at, %c8 : i32
            scf.condition(%on) %at : i32
        } do {
        ^bb0(%now: i32):
            %next = arith.addi %now, %c3 : i32
            scf.yield %next : i32
        }
        %place = tt.addptr %p, %last : !tt.ptr<i8>, i32
        tt.store %place, %zero : !tt.ptr<i8>
        tt.return"""
    expected = []
    for pid in range(10):
        while pid < 8:
            pid += 3
        expected.append([pid])
    assert stored(coverage_of(code, 10), 10) == expected


CHOICES = {
    "structured": """
        scf.if %cond {
            %place = tt.addptr %p, %c1 : !tt.ptr<i8>, i32
            tt.store %place, %zero : !tt.ptr<i8>
        } else {
            %place = tt.addptr %p, %c3 : !tt.ptr<i8>, i32
            tt.store %place, %zero : !tt.ptr<i8>
        }
        tt.return""",
    "branches": """
        cf.cond_br %cond, ^bb1(%c1 : i32), ^bb2
      ^bb1(%x: i32):
        %place = tt.addptr %p, %x : !tt.ptr<i8>, i32
        tt.store %place, %zero : !tt.ptr<i8>
        tt.return
      ^bb2:
        %other = tt.addptr %p, %c3 : !tt.ptr<i8>, i32
        tt.store %other, %zero : !tt.ptr<i8>
        tt.return""",
}


@pytest.mark.parametrize("ways", CHOICES)
def test_ways_that_programs_take(ways: str):
    coverage = coverage_of(f"%cond = arith.cmpi slt, %pid, %n : i32 {CHOICES[ways]}", 4, n=2)
    assert stored(coverage, 4) == [[1], [1], [3], [3]]


@pytest.mark.parametrize("ways", CHOICES)
def test_ways_that_depend_on_data_may_be_taken(ways: str):
    coverage = coverage_of(CHOICES[ways].replace("%cond", "%loaded"), 2)
    assert stored(coverage, 2) == [[], []]
    assert stored(coverage, 2, maybe=True) == [[1, 3], [1, 3]]
    (writing,) = coverage.writings()
    assert (writing.verdict, writing.meeting) == ("not known", None)


def test_a_choice_between_arrays():
    code = """
        %other = tt.bitcast %flags : !tt.ptr<i32> -> !tt.ptr<i8>
        %cond = arith.cmpi slt, %pid, %c1 : i32
        %either = arith.select %cond, %p, %other : !tt.ptr<i8>
        tt.store %either, %zero : !tt.ptr<i8>
        tt.return"""
    coverage = coverage_of(code, 2)
    assert coverage.touched == coverage.of("flags", "load")
    assert [(each.array, each.kind) for each in coverage.unseen] == [(None, "store")]


def test_the_map_of_blocks_that_go_over_the_ends_of_rows():
    """Runs of 64 in rows of 48: the rest of a row, whole rows, and the begin of one."""
    op = coverage_of("tt.return", 1).touched[0].op
    starts = np.arange(0, 256, 64)
    touched = Touched(op, "store", "p", 1, Runs(np.arange(4), starts, starts + 64), Runs.joined([]))
    found = coverage_map([touched], (6, 48))
    drawn = np.repeat(np.repeat(found.first, np.diff(found.rows), 0), np.diff(found.columns), 1)
    owners = np.full(6 * 48, -1)
    owners[:256] = np.arange(256) // 64
    assert (drawn == owners.reshape(6, 48)).all()
    assert found.counts.max() == 1
    assert found.is_exact


# --- numbers of many programs, by their edges -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_what_is_known_by_program_is_what_each_element_has(seed: int):
    pick = np.random.default_rng(seed)
    bits = int(pick.choice([8, 16]))
    steps = int(pick.integers(1, 40))
    # Some programs wrap around as a whole, some between two elements, most not at all.
    parts = (
        pick.integers(-(1 << bits), 1 << bits, (50, 1, 1)),
        np.arange(8, dtype=np.int64).reshape(1, 8, 1) * steps,
        pick.integers(0, 3, (50 if seed % 2 else 1, 1, 4)),
    )
    exact = wrapped(sum(parts), bits)
    number = fitted(parts, bits)
    assert isinstance(number, Number)
    np.testing.assert_array_equal(np.broadcast_to(number.total, exact.shape), exact)
    limit = Number((pick.integers(-100, 100, (50 if seed % 3 else 1, 1, 1)),), bits)
    for name in ("<", "<=", ">", ">=", "==", "!="):
        function = COMPARISONS[name]
        found = compared(function, number, limit, is_order=name not in ("==", "!="))
        np.testing.assert_array_equal(np.broadcast_to(found, exact.shape), function(exact, limit.total))
