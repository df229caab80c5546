"""Answers to what Triton leaves open: each machine gives what numpy says (`docs/left-open.md`)."""

# covers: tl.math, tl.reduction, tt.reduce, target.cpu

from __future__ import annotations

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit import volume
from tests.unit.targets import left_open
from tests.versions import INSTALLED

CASES = left_open.cases()
SHORT = [
    "f32 to narrow floats", "f32 extrema", "f32 row extrema with NaN", "masked bfloat16", "masked atomics float32",
    "atomic_maxima",
]  # fmt: skip
"""Those that are compiled by stock Triton each time: half a second each."""


def test_the_kernels_are_many():
    assert len(left_open.kernels(CASES)) >= 32
    assert set(SHORT) < set(CASES)


@pytest.mark.quick
@pytest.mark.parametrize("name", CASES)
def test_the_interpreter(name: str):
    assert not CASES[name].differences("frontend")


@pytest.mark.parametrize("machine", ["ttgir", "linalg"] if volume.is_full() else ["ttgir"])
@pytest.mark.parametrize("name", CASES if volume.is_full() else SHORT)
def test_later_stages(name: str, machine: str):
    assert not CASES[name].differences(machine)


@pytest.mark.parametrize("name", CASES if volume.is_full() else SHORT)
def test_native_code(name: str):
    pytest.importorskip("llvmlite")
    assert not CASES[name].differences("cpu")


@pytest.mark.backend
@pytest.mark.skipif(INSTALLED is None, reason="stock Triton makes the PTX")
@pytest.mark.parametrize("name", CASES if volume.is_full() else SHORT)
def test_the_ptx_machine(name: str):
    assert not CASES[name].differences("ptx")


# What has no one answer on GPUs, and one here ------------------------------------------------------------------------


@tlx_xdsl.jit
def places(x, out, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    tl.store(out, tl.argmax(v, 0))
    tl.store(out + 1, tl.argmin(v, 0))
    tl.store(out + 2, tl.argmax(v, 0, tie_break_left=False))
    tl.store(out + 3, tl.argmin(v, 0, tie_break_left=False))


@tlx_xdsl.jit
def larger(a, b):
    return tl.where(a > b, a, b)


@tlx_xdsl.jit
def prefixes(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.associative_scan(tl.load(x + at), 0, larger))
    tl.store(out + N + at, tl.associative_scan(tl.load(x + at), 0, larger, reverse=True))


def one_by_one(row: np.ndarray, *, low: bool, left: bool) -> int:
    """The place of the extremum if elements are compared from the first to the last: after a NaN it begins anew."""
    best = 0
    for at in range(1, len(row)):
        before, now = (-row[best], -row[at]) if low else (row[best], row[at])
        if not (before > now or (before == now and left)):
            best = at
    return best


@pytest.mark.parametrize("n", [8, 64])
def test_a_nan_among_indices_begins_anew(n: int):
    """The interpreter at each stage, and native code; the PTX machine has the order of the layout."""
    rng = np.random.default_rng(n)
    machines = ["frontend", "ttgir", "linalg"]
    for _ in range(5):
        x = rng.choice(np.float32([np.nan, np.inf, -np.inf, 1, 2, 0, -0.0]), n)
        x[1] = np.nan
        expected = [one_by_one(x, low=low, left=left) for left in (True, False) for low in (False, True)]
        for machine in machines:
            out = np.zeros(4, np.int32)
            result = places.interpret((1,), x, out, N=n, stage=machine)
            assert out.tolist() == expected, machine
            remarks = [each.message for each in result.warnings]
            assert any("a NaN is among the numbers" in each for each in remarks) == (machine != "linalg")
        running = [np.zeros(2 * n, np.float32) for _ in machines]
        for machine, each in zip(machines, running, strict=True):
            prefixes.interpret((1,), x, each, N=n, stage=machine)
            np.testing.assert_array_equal(each, running[0])


def test_native_code_does_the_same():
    pytest.importorskip("llvmlite")
    x = np.float32([3, np.nan, 2, np.inf, np.nan, 1, 2, 2])
    out = np.zeros(4, np.int32)
    places[(1,)](x, out, N=8)
    assert out.tolist() == [6, 5, 7, 5]


def test_long_rows_are_scanned_in_order_where_nan_may_decide():
    """Parts of a row side by side would go on with what came before a NaN."""
    pytest.importorskip("llvmlite")
    n = 512
    x = np.random.default_rng(3).permutation(n).astype(np.float32)
    x[[0, 90, 255, 256, 300]] = np.nan
    expected = [np.empty(n, np.float32) for _ in range(2)]
    for row, places_of in zip(expected, (range(n), range(n - 1, -1, -1)), strict=True):
        running = x[places_of[0]]
        for at in places_of:
            running = running if running > x[at] else x[at]
            row[at] = running
    out = np.zeros(2 * n, np.float32)
    prefixes[(1,)](x, out, N=n)
    np.testing.assert_array_equal(out, np.concatenate(expected))


def test_without_nan_nothing_is_remarked():
    out = np.zeros(4, np.int32)
    result = places.interpret((1,), np.float32([1, 3, 3, 0, 2, 0, 3, 1]), out, N=8)
    assert out.tolist() == [1, 3, 6, 5]
    assert not result.warnings


@tlx_xdsl.jit
def divided(x, y, quotient, remainder):
    at = tl.arange(0, 8)
    tl.store(quotient + at, tl.load(x + at) // tl.load(y + at))
    tl.store(remainder + at, tl.load(x + at) % tl.load(y + at))


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint32, np.int64])
def test_a_division_by_zero_sets_all_bits(dtype: type):
    """The interpreter and native code; a GPU's result depends on what the compiler makes of it."""
    pytest.importorskip("llvmlite")
    x, y = np.arange(8).astype(dtype), np.zeros(8, dtype)
    for run in (divided.interpret, lambda grid, *arrays: divided[grid](*arrays)):
        quotient, remainder = np.zeros(8, dtype), np.zeros(8, dtype)
        run((1,), x, y, quotient, remainder)
        assert quotient.tobytes() == remainder.tobytes() == b"\xff" * x.nbytes


@tlx_xdsl.jit
def folded(x, y, out):
    tl.store(out, -7 // 2)
    tl.store(out + 1, -7 % 2)
    tl.store(out + 2, tl.load(x) // tl.load(y))
    tl.store(out + 3, tl.load(x) % tl.load(y))


def test_constants_are_divided_as_python_does():
    """The frontend divides as Python does, the kernel as C does. Stock Triton does the same."""
    out = np.zeros(4, np.int32)
    folded.interpret((1,), np.int32([-7]), np.int32([2]), out)
    assert out.tolist() == [-4, 1, -3, -1]
