"""Tiles that products read where they lie, and the ones that are copied first."""

# covers: target.cpu

import functools

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit import volume
from tests.unit.cpu.codegen.native import Guarded, bufferized, compiled
from tlx_xdsl.cpu.codegen.postponed import postponed_copies
from tlx_xdsl.cpu.runtime.linalg import plain_module
from tlx_xdsl.dialects import memref
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.runtime.driver.compilation import Specialization

M, N, K = 32, 32, 16


@tlx_xdsl.jit
def plain(a, b, c, rows, depth, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x, y = tl.load(a + m[:, None] * depth + k[None, :]), tl.load(b + k[:, None] * N + n[None, :])
    tl.store(c + m[:, None] * N + n[None, :], tl.dot(x, y, input_precision="ieee"))


@tlx_xdsl.jit
def masked(a, b, c, rows, depth, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Rows begin anew after the last, and what lies beyond the depth is 2 in A and 3 in B."""
    m, n, k = tl.arange(0, M) % rows, tl.arange(0, N), tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for first in range(0, depth, K):
        inside = k + first < depth
        x = tl.load(a + m[:, None] * depth + (k + first)[None, :], mask=inside[None, :], other=2.0)
        y = tl.load(b + (k + first)[:, None] * N + n[None, :], mask=inside[:, None], other=3.0)
        total = tl.dot(x, y, total, input_precision="ieee")
    tl.store(c + tl.arange(0, M)[:, None] * N + n[None, :], total)


@tlx_xdsl.jit
def turned(a, b, c, rows, depth, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """B's columns lie one after the other, as many elements apart as its depth."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x, y = tl.load(a + m[:, None] + k[None, :] * rows), tl.load(b + k[:, None] + n[None, :] * depth)
    tl.store(c + m[:, None] * N + n[None, :], tl.dot(x, y, input_precision="ieee"))


@tlx_xdsl.jit
def written_between(a, b, c, rows, depth, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x, y = tl.load(a + m[:, None] * depth + k[None, :]), tl.load(b + k[:, None] * N + n[None, :])
    tl.store(a + m[:, None] * depth + k[None, :], x * 0)
    tl.store(b + k[:, None] * N + n[None, :], y * 0)
    tl.store(c + m[:, None] * N + n[None, :], tl.dot(x, y, input_precision="ieee"))


@tlx_xdsl.jit
def used_twice(a, b, c, rows, depth, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x, y = tl.load(a + m[:, None] * depth + k[None, :]), tl.load(b + k[:, None] * N + n[None, :])
    total = tl.dot(x, y, input_precision="ieee")
    tl.store(c + m[:, None] * N + n[None, :], tl.dot(x, y, total, input_precision="ieee"))


def module_of(kernel):
    signature = dict.fromkeys("abc", "*fp32") | dict.fromkeys(("rows", "depth"), "i32")
    return plain_module(source_of(kernel), Specialization(signature, {"M": M, "N": N, "K": K}))


@functools.cache
def native(kernel, checks):
    return compiled(module_of(kernel), checks=checks)


def run(kernel, a, b, rows, depth, *, checks=False):
    held = [Guarded(each).array for each in (a, b, np.full((M, N), np.nan, np.float32))]
    assert native(kernel, checks).run((1, 1, 1), [*held, rows, depth]) is None
    return held[2]


def numbers(*shape):
    """Integers, whose products and sums are exact."""
    return np.random.default_rng(shape).integers(-9, 9, shape).astype(np.float32)


@pytest.mark.parametrize(
    ("kernel", "postponed"), [(plain, 2), (masked, 2), (turned, 2), (written_between, 0), (used_twice, 0)]
)
def test_tiles_that_are_read_where_they_lie(kernel, postponed):
    found = postponed_copies(bufferized(module_of(kernel)))
    assert sum(isinstance(op, memref.CopyOp) for op in found) == postponed


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("kernel", [plain, written_between, used_twice])
def test_a_product_gets_what_was_loaded(kernel, checks):
    a, b = numbers(M, K), numbers(K, N)
    times = 2 if kernel is used_twice else 1
    assert (run(kernel, a, b, M, K, checks=checks) == times * (a @ b)).all()


@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("depth", [1, 15, 16, 17, 40, 48] if volume.is_full() else [1, 17, 48])
@pytest.mark.parametrize("rows", [1, 5, 31, 32, 40] if volume.is_full() else [5, 32])
def test_tiles_with_masks_and_rows_that_begin_anew(rows, depth, checks):
    a, b = numbers(min(rows, M), depth), numbers(depth, N)
    found = run(masked, a, b, rows, depth, checks=checks)
    beyond = -depth % K * 2 * 3
    assert (found == a[np.arange(M) % rows] @ b + beyond).all()


def test_a_tile_may_lie_in_another_order():
    a, b = numbers(K, M), numbers(N, K)
    assert (run(turned, a, b, M, K) == a.T @ b.T).all()
