"""Reductions and scans, with one operand and several; sorting, histograms, normalisation."""

import triton
import triton.language as tl

from tests.gallery.cases import BLACKWELL, HOPPER, case


@case({"x": "*fp32:16", "out": "*fp32:16", "stride": "i32:16", "cols": "i32", "BLOCK": 1024}, archs=(HOPPER, BLACKWELL))
@triton.jit
def softmax(x, out, stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    index = tl.arange(0, BLOCK)
    a = tl.load(x + row * stride + index, mask=index < cols, other=float("-inf"))
    numerator = tl.exp(a - tl.max(a, axis=0))
    tl.store(out + row * stride + index, numerator / tl.sum(numerator, axis=0), mask=index < cols)


@case(
    {
        "x": "*fp16:16",
        "w": "*fp16:16",
        "b": "*fp16:16",
        "out": "*fp16:16",
        "mean": "*fp32",
        "cols": "i32",
        "eps": "fp32",
    }
    | {"BLOCK": 256},
    archs=(HOPPER, BLACKWELL),
)
@triton.jit
def layernorm(x, w, b, out, mean, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x += row * cols
    out += row * cols
    total = tl.zeros((BLOCK,), tl.float32)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, cols, BLOCK):
        index = start + tl.arange(0, BLOCK)
        a = tl.load(x + index, mask=index < cols, other=0.0).to(tl.float32)
        total += a
        squares += a * a
    average = tl.sum(total, axis=0) / cols
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / cols - average * average + eps)
    tl.store(mean + row, average)
    for start in range(0, cols, BLOCK):
        index = start + tl.arange(0, BLOCK)
        inside = index < cols
        a = tl.load(x + index, mask=inside, other=0.0).to(tl.float32)
        y = (a - average) * scale * tl.load(w + index, mask=inside) + tl.load(b + index, mask=inside)
        tl.store(out + index, y, mask=inside)


@case({"x": "*fp32:16", "value": "*fp32:16", "where": "*i32:16", "M": 32, "N": 128}, archs=(HOPPER, BLACKWELL))
@triton.jit
def argmax_and_argmin(x, value, where, M: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, M)
    tile = tl.load(x + rows[:, None] * N + tl.arange(0, N)[None, :])
    top, column = tl.max(tile, axis=1, return_indices=True)
    bottom, last = tl.min(tile, axis=1, return_indices=True, return_indices_tie_break_left=False)
    tl.store(value + rows, top - bottom)
    tl.store(where + rows, column - last)
    tl.store(where, tl.argmax(tl.argmin(tile, axis=0).to(tl.float32), axis=0))


@triton.jit
def _merge_moments(mean_a, square_a, count_a, mean_b, square_b, count_b):
    delta = mean_b - mean_a
    count = count_a + count_b
    share = tl.where(count == 0.0, 0.0, count_b / count)
    return mean_a + delta * share, square_a + square_b + delta * delta * count_a * share, count


@case({"x": "*fp32:16", "mean": "*fp32:16", "variance": "*fp32:16", "M": 16, "N": 64}, archs=(HOPPER, BLACKWELL))
@triton.jit
def moments(x, mean, variance, M: tl.constexpr, N: tl.constexpr):
    """A reduction of three operands at once."""
    rows = tl.arange(0, M)
    tile = tl.load(x + rows[:, None] * N + tl.arange(0, N)[None, :])
    middle, square, count = tl.reduce((tile, tl.zeros_like(tile), tile * 0 + 1.0), 1, _merge_moments, keep_dims=True)
    tl.store(mean + rows[:, None], middle)
    tl.store(variance + rows[:, None], square / count)


@case({"x": "*fp32:16", "i": "*i32:16", "out": "*fp32:16", "M": 16, "N": 32})
@triton.jit
def reductions_of_all_kinds(x, i, out, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tile = tl.load(x + at)
    words = tl.load(i + at)
    tl.store(out, tl.sum(tile))
    tl.store(out + 1, tl.max(tl.min(tile, axis=0), axis=0))
    tl.store(out + 2, tl.xor_sum(tl.xor_sum(words, axis=1), axis=0))
    tl.store(out + 3, tl.sum(words.to(tl.int8)) + tl.sum((tile > 0).to(tl.int1)))
    tl.store(out + tl.arange(0, M), tl.reduce_or(words, axis=1))


@triton.jit
def _multiply(a, b):
    return a * b


@triton.jit
def _compose(scale_a, shift_a, scale_b, shift_b):
    return scale_a * scale_b, shift_a * scale_b + shift_b


@case({"x": "*fp32:16", "y": "*fp32:16", "out": "*fp32:16", "M": 32, "N": 64}, archs=(HOPPER, BLACKWELL))
@triton.jit
def scans(x, y, out, M: tl.constexpr, N: tl.constexpr):
    """Scans in both directions and along both axes, and one of a linear recurrence, which has two operands."""
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x + at)
    b = tl.load(y + at)
    total = tl.cumsum(a, axis=1) + tl.cumsum(a, axis=0, reverse=True) + tl.cumprod(b, axis=1)
    total += tl.associative_scan(b, 0, _multiply)
    scale, shift = tl.associative_scan((a, b), 1, _compose, reverse=True)
    tl.store(out + at, total + scale + shift)


@case({"x": "*i32:16", "out": "*i32:16", "BLOCK": 1024, "BINS": 64})
@triton.jit
def histogram(x, out, BLOCK: tl.constexpr, BINS: tl.constexpr):
    index = tl.arange(0, BLOCK)
    values = tl.load(x + index)
    bins = tl.histogram(values, BINS) + tl.histogram(values, BINS, mask=index < 1000)
    tl.atomic_add(out + tl.arange(0, BINS), bins)


@case({"x": "*fp32:16", "out": "*fp32:16", "best": "*fp32:16", "ROWS": 4, "BLOCK": 16}, library=True)
@triton.jit
def sort_and_top(x, out, best, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.arange(0, ROWS)[:, None]
    a = tl.load(x + rows * BLOCK + tl.arange(0, BLOCK)[None, :])
    tl.store(out + rows * BLOCK + tl.arange(0, BLOCK)[None, :], tl.sort(a, descending=True))
    tl.store(best + rows * 4 + tl.arange(0, 4)[None, :], tl.topk(a, 4))
