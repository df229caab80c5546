"""Scalar functions over many elements at once: lanes that take different ways, and how reductions associate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.interpreter.faults import Fault

N = 128
RNG = np.random.default_rng(3)


@tlx_xdsl.jit
def _collatz(n, limit):
    """Steps until 1: every lane takes as many as it needs."""
    steps = 0
    while n != 1 and steps < limit:
        if n % 2 == 0:  # noqa: SIM108
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@tlx_xdsl.jit
def collatz_kernel(x, y, out):
    index = tl.arange(0, 128)
    tl.store(out + index, tl.map_elementwise(_collatz, tl.load(x + index), tl.load(y + index)))


def test_lanes_leave_a_loop_one_by_one():
    x = np.arange(1, N + 1, dtype=np.int32)
    limit, out = RNG.integers(0, 200, N).astype(np.int32), np.zeros(N, np.int32)
    tlx_xdsl.interpret(collatz_kernel, (1,), x, limit, out)
    expected = []
    for n, most in zip(x.tolist(), limit.tolist(), strict=True):
        steps = 0
        while n != 1 and steps < most:
            n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
        expected.append(steps)
    assert out.tolist() == expected


@tlx_xdsl.jit
def _triangle(first, n):
    total = first
    largest = -1
    for i in range(first, n):
        total += i
        if total > 50:
            largest = i
    return total, largest


@tlx_xdsl.jit
def triangle_kernel(x, y, out):
    index = tl.arange(0, 128)
    total, largest = tl.map_elementwise(_triangle, tl.load(x + index), tl.load(y + index))
    tl.store(out + index, total)
    tl.store(out + 128 + index, largest)


def test_every_lane_has_its_own_bounds():
    x, y = RNG.integers(-9, 9, N).astype(np.int32), RNG.integers(-9, 30, N).astype(np.int32)
    out = np.zeros(2 * N, np.int32)
    tlx_xdsl.interpret(triangle_kernel, (1,), x, y, out)
    totals, largest = [], []
    for first, end in zip(x.tolist(), y.tolist(), strict=True):
        total, last = first, -1
        for i in range(first, end):
            total += i
            last = i if total > 50 else last
        totals.append(total)
        largest.append(last)
    assert out.tolist() == totals + largest


@tlx_xdsl.jit(noinline=True)
def _root(n):
    """The least number whose square is not below `n`, at most 19; a function of its own that returns early."""
    if n > 361:
        return -1
    root = 0
    for i in range(0, 19):
        if i * i < n:
            root = i + 1
    return root


@tlx_xdsl.jit
def _sign_and_root(n):
    if n < 0:
        return -_root(-n), n
    return _root(n), -n


@tlx_xdsl.jit
def calls_kernel(x, out):
    index = tl.arange(0, 128)
    root, negated = tl.map_elementwise(_sign_and_root, tl.load(x + index))
    tl.store(out + index, root)
    tl.store(out + 128 + index, negated)


def test_calls_and_early_returns():
    x, out = RNG.integers(-500, 500, N).astype(np.int32), np.zeros(2 * N, np.int32)
    tlx_xdsl.interpret(calls_kernel, (1,), x, out)
    roots = [next((i for i in range(20) if i * i >= abs(n)), -1) for n in x.tolist()]
    assert out[:N].tolist() == [-r if n < 0 else r for r, n in zip(roots, x.tolist(), strict=True)]
    assert out[N:].tolist() == (-np.abs(x)).tolist()


@tlx_xdsl.jit
def _pair(a0, a1, b0, b1):
    return a0 * b1, a1 + b0


@tlx_xdsl.jit
def packed_kernel(x, y, out):
    index = tl.arange(0, 128)
    (paired,) = tl.map_elementwise(_pair, tl.load(x + index), tl.load(y + index), pack=2)
    tl.store(out + index, paired)


def test_packs_are_neighbours():
    x, y = (RNG.integers(-99, 99, N).astype(np.int32) for _ in range(2))
    out = np.zeros(N, np.int32)
    tlx_xdsl.interpret(packed_kernel, (1,), x, y, out)
    assert out[0::2].tolist() == (x[0::2] * y[1::2]).tolist()
    assert out[1::2].tolist() == (x[1::2] + y[0::2]).tolist()


@tlx_xdsl.jit
def _checked(a):
    if a >= 0:
        tl.device_assert(a < 90, "too large")
        a = a + 1
    return a


@tlx_xdsl.jit
def effects_kernel(x, out):
    index = tl.arange(0, 128)
    tl.store(out + index, tl.map_elementwise(_checked, tl.load(x + index)))


def test_effects_happen_for_the_lanes_that_come_by():
    x, out = RNG.integers(-900, 80, N).astype(np.int32), np.zeros(N, np.int32)
    x[:3] = 5, -950, 89
    tlx_xdsl.interpret(effects_kernel, (1,), x, out)
    assert out.tolist() == np.where(x >= 0, x + 1, x).tolist()
    x[7] = 90
    with pytest.raises(Fault, match="assertion failed: too large"):
        tlx_xdsl.interpret(effects_kernel, (1,), x, out)


# Reductions ----------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def _left(a, b):
    """Associative, but not commutative."""
    return a


@tlx_xdsl.jit
def _matrix(a, b, c, d, e, f, g, h):
    """The product of two matrices of 2 x 2, which does not commute."""
    return a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h


@tlx_xdsl.jit
def products_kernel(x, out, total, REVERSE: tl.constexpr):
    index = tl.arange(0, 64)
    a, b, c, d = tl.load(x + index), tl.load(x + 64 + index), tl.load(x + 128 + index), tl.load(x + 192 + index)
    p, q, r, s = tl.associative_scan((a, b, c, d), 0, _matrix, reverse=REVERSE)
    tl.store(out + index, p)
    tl.store(out + 64 + index, q)
    tl.store(out + 128 + index, r)
    tl.store(out + 192 + index, s)
    p, q, r, s = tl.reduce((a, b, c, d), 0, _matrix)
    tl.store(total, p)
    tl.store(total + 1, q)
    tl.store(total + 2, r)
    tl.store(total + 3, s)
    tl.store(total + 4, tl.reduce(a, 0, _left))


@pytest.mark.parametrize("reverse", [False, True])
@given(st.integers(0, 2**31))
def test_what_does_not_commute_keeps_its_order(reverse: bool, seed: int):
    x = np.random.default_rng(seed).integers(-(2**31), 2**31, 256).astype(np.int32)
    out, total = np.zeros(256, np.int32), np.zeros(5, np.int32)
    tlx_xdsl.interpret(products_kernel, (1,), x, out, total, reverse, jobs=1)
    matrices = [matrix.reshape(2, 2) for matrix in x.reshape(4, 64).T]
    product, scanned = np.eye(2, dtype=np.int32), []
    for matrix in reversed(matrices) if reverse else matrices:
        product = product @ matrix
        scanned.append(product.ravel())
    if reverse:
        scanned.reverse()
    assert out.reshape(4, 64).T.tolist() == np.array(scanned).tolist()
    whole = np.eye(2, dtype=np.int32)
    for matrix in matrices:
        whole = whole @ matrix
    assert total.tolist() == [*whole.ravel().tolist(), int(x[0])]


@tlx_xdsl.jit
def sums_kernel(x, out):
    rows, columns = tl.arange(0, 16)[:, None], tl.arange(0, 8)[None, :]
    a = tl.load(x + rows * 8 + columns)
    tl.store(out + tl.arange(0, 8), tl.sum(a, 0))
    tl.store(out + 8 + tl.arange(0, 16), tl.max(a, 1))
    tl.store(out + 24 + rows * 8 + columns, tl.cumsum(a, 0))


@given(st.integers(0, 2**31))
def test_a_reduction_is_the_last_of_its_scan(seed: int):
    x = np.random.default_rng(seed).integers(-(2**31), 2**31, 128).astype(np.int32)
    out = np.zeros(152, np.int32)
    tlx_xdsl.interpret(sums_kernel, (1,), x, out, jobs=1)
    a = x.reshape(16, 8)
    assert out[:8].tolist() == a.sum(0, dtype=np.int32).tolist() == out[-8:].tolist()
    assert out[8:24].tolist() == a.max(1).tolist()


@tlx_xdsl.jit
def wrong_index_kernel(x, i, out):
    index = tl.arange(0, 16)
    tl.store(out + index, tl.gather(tl.load(x + index), tl.load(i + index), 0))


def test_an_undefined_index_picks_an_undefined_element():
    x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    i = np.where(x == 3, -1, 2).astype(np.int32)
    tlx_xdsl.interpret(wrong_index_kernel, (1,), x, i, out, unwritten="poison")
    np.testing.assert_array_equal(out, np.where(x == 3, np.nan, 2))


def test_an_index_outside_of_the_source_is_reported():
    x, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    i = np.arange(16, dtype=np.int32)
    i[5] = 16
    with pytest.raises(
        Fault, match=r"index 16 \(element \[5\] of the indices\) is outside of the 16 elements"
    ) as found:
        tlx_xdsl.interpret(wrong_index_kernel, (1,), x, i, out)
    assert found.value.source_line is not None
    assert "tl.gather" in found.value.source_line
