"""Pointers that are chosen while a program runs: what is read and written through them lies where they point."""

# covers: target.cpu

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit.volume import is_full
from tlx_xdsl.interpreter.faults import Fault

SIZE, N, PROGRAMS = 12, 7, 4


@tlx_xdsl.jit
def of_two(x, y, z, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    pid = tl.program_id(0)
    p = tl.where(pid < 1, x, y)
    tl.store(out + pid * n + at, tl.load(p + at, mask=at < n), mask=at < n)


@tlx_xdsl.jit
def of_three(x, y, z, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    pid = tl.program_id(0)
    p = tl.where(pid < 1, x + 2, tl.where(pid < 2, y, z + 1))
    tl.store(out + pid * n + at, tl.load(p + at, mask=at < n), mask=at < n)


@tlx_xdsl.jit
def of_a_branch(x, y, z, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    pid = tl.program_id(0)
    if pid < 1:
        p = x
    elif pid < 2:
        p = y + 1
    else:
        p = z
    tl.store(out + pid * n + at, tl.load(p + at, mask=at < n), mask=at < n)


@tlx_xdsl.jit
def of_a_loop(x, y, z, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    pid = tl.program_id(0)
    p, q = x, y
    total = tl.zeros((B,), tl.float32)
    for _ in range(pid + 2):
        total += tl.load(p + at, mask=at < n)
        p, q = tl.where(pid == 2, z, q), p + 1
    tl.store(out + pid * n + at, total, mask=at < n)


@tlx_xdsl.jit
def of_a_while_loop(x, y, z, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    pid = tl.program_id(0)
    p = x
    left = pid + 1
    total = tl.zeros((B,), tl.float32)
    while left > 0:
        total += tl.load(p + at, mask=at < n)
        p = tl.where(left % 2 == 1, y, p + 1)
        left -= 1
    tl.store(out + pid * n + at, total, mask=at < n)


@tlx_xdsl.jit
def of_elements(x, y, z, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    pid = tl.program_id(0)
    p = tl.where(at % 3 == 0, x + at, tl.where(at % 3 == pid, y + at, z + 1 + at))
    tl.store(out + pid * n + at, tl.load(p, mask=at < n), mask=at < n)


@tlx_xdsl.jit
def of_stores(x, y, z, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    pid = tl.program_id(0)
    tl.store(tl.where(pid < 2, y, z) + at, tl.load(x + pid + at, mask=at < n), mask=at < n)


@tlx_xdsl.jit
def of_scalars(x, y, z, out, n, B: tl.constexpr):
    pid = tl.program_id(0)
    p = tl.where(pid % 2 == 0, x, z)
    tl.store(out + pid, tl.load(p + 1) + tl.load(p, mask=pid > 1) + tl.atomic_add(p + 2, 1.0))


KERNELS = [of_two, of_three, of_a_branch, of_a_loop, of_a_while_loop, of_elements, of_stores, of_scalars]


def arrays() -> list[Any]:
    x, y, z = (np.arange(SIZE, dtype=np.float32) + 100 * number for number in range(1, 4))
    return [x, y, z, np.full(PROGRAMS * N, 7, np.float32)]


CHECKED = KERNELS if is_full() else [of_three, of_a_loop]


@pytest.mark.parametrize(
    ("kernel", "checks"), [*((each, False) for each in KERNELS), *((each, True) for each in CHECKED)]
)
def test_the_numbers_are_those_of_the_interpreter(kernel: Any, checks: bool):
    expected, found = arrays(), arrays()
    tlx_xdsl.interpret(kernel, PROGRAMS, *expected, N, B=8, jobs=1)
    kernel[(PROGRAMS,)](*found, N, B=8, checks=checks)
    np.testing.assert_array_equal(np.concatenate(found), np.concatenate(expected))


@pytest.mark.parametrize("kernel", [of_three, of_a_loop, of_stores])
def test_arrays_may_be_the_same(kernel: Any):
    expected, found = arrays(), arrays()
    for each in (expected, found):
        each[1] = each[2] = each[0]
    tlx_xdsl.interpret(kernel, PROGRAMS, *expected, N, B=8, jobs=1)
    kernel[(PROGRAMS,)](*found, N, B=8)
    np.testing.assert_array_equal(np.concatenate(found), np.concatenate(expected))


def test_the_bounds_are_those_of_the_array_that_was_chosen():
    x, y, z, out = arrays()
    of_two[(2,)](x, y, z, out, N, B=8, checks=True)
    with pytest.raises(Fault, match=r"in program \(1, 0, 0\)"):
        of_two[(2,)](x, y[:3], z, out, N, B=8, checks=True)
