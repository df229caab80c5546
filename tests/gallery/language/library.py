"""Kernels that call the library functions of the language: one program, whose results go to arrays."""

import tlx_xdsl as triton
import tlx_xdsl.language as tl

# Random numbers ------------------------------------------------------------------------------------------------------


@triton.jit
def uniform_numbers(seed, first, out, more, N: tl.constexpr):
    index = first + tl.arange(0, N)
    tl.store(out + tl.arange(0, N), tl.rand(seed, index))
    a, b, c, d = tl.rand4x(seed, index, n_rounds=7)
    at = tl.arange(0, N) * 4
    tl.store(more + at, a)
    tl.store(more + at + 1, b)
    tl.store(more + at + 2, c)
    tl.store(more + at + 3, d)


@triton.jit
def normal_numbers(seed, first, out, more, N: tl.constexpr):
    index = first + tl.arange(0, N)
    tl.store(out + tl.arange(0, N), tl.randn(seed, index))
    a, b, c, d = tl.randn4x(seed, index)
    at = tl.arange(0, N) * 4
    tl.store(more + at, a)
    tl.store(more + at + 1, b)
    tl.store(more + at + 2, c)
    tl.store(more + at + 3, d)


@triton.jit
def random_words(seed, first, out, few, N: tl.constexpr):
    index = first + tl.arange(0, N)
    tl.store(out + tl.arange(0, N), tl.randint(seed, index))
    a, b, c, d = tl.randint4x(seed, index, n_rounds=3)
    at = tl.arange(0, N) * 4
    tl.store(few + at, a)
    tl.store(few + at + 1, b)
    tl.store(few + at + 2, c)
    tl.store(few + at + 3, d)


@triton.jit
def philox_words(seed, counters, out, N: tl.constexpr):
    index = tl.arange(0, N)
    c0 = tl.load(counters + index)
    c1 = tl.load(counters + N + index)
    a, b, c, d = tl.philox(seed, c0, c1, c0 ^ c1, c0 + c1)
    tl.store(out + index, a)
    tl.store(out + N + index, b)
    tl.store(out + 2 * N + index, c)
    tl.store(out + 3 * N + index, d)


@triton.jit
def uniform_from_words(words, out, N: tl.constexpr):
    index = tl.arange(0, N)
    tl.store(out + index, tl.uint_to_uniform_float(tl.load(words + index)))


@triton.jit
def normal_from_uniform(x, y, out, N: tl.constexpr):
    index = tl.arange(0, N)
    first, second = tl.pair_uniform_to_normal(tl.load(x + index), tl.load(y + index))
    tl.store(out + index, first)
    tl.store(out + N + index, second)


# Sorting -------------------------------------------------------------------------------------------------------------


@triton.jit
def sorting(x, up, down, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + at)
    tl.store(up + at, tl.sort(a))
    tl.store(down + at, tl.sort(a, dim=1, descending=True))


@triton.jit
def largest(x, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.arange(0, M)[:, None]
    a = tl.load(x + rows * N + tl.arange(0, N)[None, :])
    tl.store(out + rows * K + tl.arange(0, K)[None, :], tl.topk(a, K))


@triton.jit
def flipping(x, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + at)
    tl.store(out + at, tl.flip(a, 1))
    tl.store(out + M * N + at, tl.flip(a, 0))


@triton.jit
def merging(x, out, N: tl.constexpr):
    index = tl.arange(0, N)
    tl.store(out + index, tl.bitonic_merge(tl.load(x + index)))


# Reductions and scans ------------------------------------------------------------------------------------------------


@triton.jit
def extremes(x, unique, values, indices, M: tl.constexpr, N: tl.constexpr):
    """Find extremes: the first of equal numbers counts; where ties may be broken anyhow, all numbers differ."""
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    at = rows[:, None] * N + columns[None, :]
    a, b = tl.load(x + at), tl.load(unique + at)
    top, left = tl.max(a, axis=1, return_indices=True)
    bottom, right = tl.min(b, axis=1, return_indices=True, return_indices_tie_break_left=False)
    tl.store(values + rows, top)
    tl.store(values + M + rows, bottom)
    tl.store(values + 2 * M + columns, tl.max(a, axis=0))
    tl.store(indices + rows, left)
    tl.store(indices + M + rows, right)
    tl.store(indices + 2 * M + columns, tl.argmax(a, axis=0))
    tl.store(indices + 2 * M + N + columns, tl.argmin(b, axis=0, tie_break_left=False))


@triton.jit
def sums(x, out, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    a = tl.load(x + rows[:, None] * N + columns[None, :])
    tl.store(out + rows, tl.sum(a, axis=1))
    tl.store(out + M + columns, tl.sum(a, axis=0))
    tl.store(out + M + N, tl.sum(a))


@triton.jit
def bit_reductions(x, out, M: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, M)
    a = tl.load(x + rows[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out + rows, tl.xor_sum(a, axis=1))
    tl.store(out + M + rows, tl.reduce_or(a, axis=1))


@triton.jit
def running_sums(x, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + at)
    tl.store(out + at, tl.cumsum(a, axis=1))
    tl.store(out + M * N + at, tl.cumsum(a, axis=0, reverse=True))


@triton.jit
def running_products(x, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + at)
    tl.store(out + at, tl.cumprod(a, axis=1))
    tl.store(out + M * N + at, tl.cumprod(a, axis=0, reverse=True))


@triton.jit
def counting(x, out, N: tl.constexpr, BINS: tl.constexpr):
    tl.store(out + tl.arange(0, BINS), tl.histogram(tl.load(x + tl.arange(0, N)), BINS))


# Elementwise and shapes ----------------------------------------------------------------------------------------------


@triton.jit
def normalising(x, out, rows_out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + at)
    tl.store(out + at, tl.softmax(a))
    tl.store(rows_out + at, tl.softmax(a, dim=1))


@triton.jit
def sigmoids(x, out, N: tl.constexpr):
    index = tl.arange(0, N)
    tl.store(out + index, tl.sigmoid(tl.load(x + index)))


@triton.jit
def ceiling_division(x, y, out, n, N: tl.constexpr):
    index = tl.arange(0, N)
    a, b = tl.load(x + index), tl.load(y + index)
    tl.store(out + index, tl.cdiv(a, b))
    tl.store(out + N + index, tl.cdiv(a, 7) + tl.cdiv(n, 4))


@triton.jit
def swizzling(out, size_i, size_j, GROUP: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    new_i, new_j = tl.swizzle2d(i, j, size_i, size_j, GROUP)
    inside = (i < size_i) & (j < size_j)
    at = i * N + j
    tl.store(out + at, new_i + at * 0, mask=inside)
    tl.store(out + M * N + at, new_j + at * 0, mask=inside)


@triton.jit
def rearranging(x, y, out, N: tl.constexpr):
    index = tl.arange(0, N)
    a, b = tl.load(x + index), tl.load(y + index)
    tl.store(out + tl.arange(0, 2 * N), tl.interleave(a, b))
    grid = tl.reshape(a, (4, N // 4))
    tl.store(out + 2 * N + index, tl.ravel(tl.trans(grid)))
    tl.store(out + 3 * N + index, tl.zeros((N,), tl.float32) + tl.zeros_like(a))
    first, second = tl.split(tl.join(a, b))
    tl.store(out + 4 * N + index, first - second)
