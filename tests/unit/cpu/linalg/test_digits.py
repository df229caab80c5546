"""Rows and columns of a flat index: random sizes, divisors, starts and masks, natively and in the interpreter.

The oracle is numpy. Natively arrays stand between fences and temporary memory begins as NaN (`fences.py`).
"""

# covers: target.cpu, linalg-lower-accesses, linalg-fuse-pieces

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import tlx_xdsl
import tlx_xdsl.language as tl

SEEDS = range(60 if os.environ.get("TLX_TEST_VOLUME") == "full" else 6)
TARGETS = ["cpu", "interpreter"]


@tlx_xdsl.jit
def moved(x, out, start, n, W, H, up, left, row_step, column_step, B: tl.constexpr):
    """An image moved by some rows and columns; -1 where it comes from outside."""
    at = start + tl.program_id(0) * B + tl.arange(0, B)
    row = at // W + up
    column = at % W + left
    inside = (at < n) & (row >= 0) & (row < H) & (column >= 0) & (column < W)
    value = tl.load(x + row * row_step + column * column_step, mask=inside, other=-1)
    tl.store(out + at, value, mask=at < n)


@tlx_xdsl.jit
def moved_by_constants(x, out, start, n, W: tl.constexpr, H: tl.constexpr, up: tl.constexpr, left: tl.constexpr,
                       row_step: tl.constexpr, column_step: tl.constexpr, B: tl.constexpr):  # fmt: skip
    moved(x, out, start, n, W, H, up, left, row_step, column_step, B)


@tlx_xdsl.jit
def mirrored(x, out, start, n, W, H, up, left, row_step, column_step, B: tl.constexpr):
    """Columns from right to left; every second row."""
    at = start + tl.program_id(0) * B + tl.arange(0, B)
    row = at // W * 2 + up
    column = W - 1 - at % W + left
    inside = (at < n) & (row >= 0) & (row < H) & (column >= 0) & (column < W)
    value = tl.load(x + row * row_step + column * column_step, mask=inside, other=-1)
    tl.store(out + at, value, mask=at < n)


def image(rng: Any) -> dict[str, int]:
    """The size of an image, and how it is moved."""
    width, height = int(rng.choice([1, 2, 3, 5, 7, 8, 13, 31, 40])), int(rng.integers(1, 12))
    step = width + int(rng.integers(0, 3))
    steps = {"row_step": step, "column_step": 1} if rng.random() < 0.6 else {"row_step": 1, "column_step": height}
    n = max(width * height - int(rng.integers(-3, 4)), 1)
    up, left = (int(each) for each in rng.integers(-3, 4, 2))
    return {"n": n, "W": width, "H": height, "up": up, "left": left, **steps}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("body", [moved, moved_by_constants, mirrored])
def test_images(body: Any, target: str):
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        size = image(rng)
        start, block = int(rng.choice([0, 0, 1, 3, 17])), int(rng.choice([8, 32, 64]))
        x = rng.integers(0, 100, (size["H"] + 1) * (size["W"] + 3) + size["H"] * size["W"]).astype(np.float32)
        out = np.full(max(size["n"], 1), 7, np.float32)
        at = np.arange(start, size["n"])
        if body is mirrored:
            row, column = at // size["W"] * 2 + size["up"], size["W"] - 1 - at % size["W"] + size["left"]
        else:
            row, column = at // size["W"] + size["up"], at % size["W"] + size["left"]
        inside = (row >= 0) & (row < size["H"]) & (column >= 0) & (column < size["W"])
        places = row * size["row_step"] + column * size["column_step"]
        right = out.copy()
        right[start:] = np.where(inside, x[np.where(inside, places, 0)], -1)
        body[(-(-max(size["n"] - start, 1) // block),)](x, out, start, B=block, target=target, **size)
        assert np.array_equal(out, right), (seed, size, start, block)


@tlx_xdsl.jit
def transposed(x, out, k0, k1, k2, n, s0, s1, s2, s3, B: tl.constexpr):
    """Four dimensions in another order, as `torch.compile` writes it."""
    at = tl.program_id(0) * B + tl.arange(0, B)[:]
    inside = at < n
    x0 = at % k0
    x1 = at // k0 % k1
    x2 = at // (k0 * k1) % k2
    x3 = at // (k0 * k1 * k2)
    tl.store(out + at, tl.load(x + x0 * s0 + x1 * s1 + x2 * s2 + x3 * s3, mask=inside), mask=inside)


@tlx_xdsl.jit
def scattered(x, out, k0, k1, k2, n, s0, s1, s2, s3, B: tl.constexpr):
    """The same by its stores, with one digit of another."""
    at = tl.program_id(0) * B + tl.arange(0, B)
    inside = at < n
    x0 = at % k0
    rest = at // k0
    x1 = rest % k1
    x2 = rest // k1 % k2
    x3 = rest // k1 // k2
    tl.store(out + x0 * s0 + x1 * s1 + x2 * s2 + x3 * s3, tl.load(x + at, mask=inside), mask=inside)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.float16])
def test_four_dimensions(target: str, wide: bool, dtype: Any):
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        shape = [int(each) for each in rng.integers(1, 9, 4)]
        order = rng.permutation(4)
        x = rng.integers(0, 100, shape).astype(dtype)
        strides = [x.strides[dim] // x.itemsize for dim in order]
        sizes = [shape[dim] for dim in order]
        right = np.ascontiguousarray(x.transpose(order))
        # A number of 64 bits is an argument of this type.
        scale = (lambda number: np.int64(number)) if wide else int
        args = [scale(each) for each in (sizes[3], sizes[2], sizes[1], x.size)]
        args += [scale(strides[each]) for each in (3, 2, 1, 0)]
        block = int(rng.choice([16, 64]))
        grid = (-(-x.size // block),)
        out = np.zeros_like(right)
        transposed[grid](x.reshape(-1), out.reshape(-1), *args, B=block, target=target)
        assert np.array_equal(out, right), (seed, shape, order)
        back = np.zeros_like(x)
        scattered[grid](right.reshape(-1), back.reshape(-1), *args, B=block, target=target)
        assert np.array_equal(back, x), (seed, shape, order)


@tlx_xdsl.jit
def patches(x, out, N, C, H, W, KH, KW, pad, M: tl.constexpr, K: tl.constexpr):
    """The matrix of im2col: a row for each pixel, a column for each channel and place of the window."""
    m = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    k = tl.program_id(1) * K + tl.arange(0, K)[None, :]
    row = m // W % H + k // KW % KH - pad
    column = m % W + k % KW - pad
    batch, channel = m // (H * W), k // (KH * KW)
    known = (m < N * H * W) & (k < C * KH * KW)
    inside = known & (row >= 0) & (row < H) & (column >= 0) & (column < W)
    value = tl.load(x + ((batch * C + channel) * H + row) * W + column, mask=inside, other=0.0)
    tl.store(out + m * (C * KH * KW) + k, value, mask=known)


@pytest.mark.parametrize("target", TARGETS)
def test_patches(target: str):
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        n, c, h, w, kh, kw = (int(each) for each in rng.integers([1, 1, 1, 1, 1, 1], [3, 4, 7, 9, 4, 5]))
        pad = int(rng.integers(0, 3))
        x = rng.standard_normal((n, c, h, w)).astype(np.float32)
        wide = np.pad(x, ((0, 0), (0, 0), (pad, kh + pad), (pad, kw + pad)))
        right = np.stack(
            [wide[:, :, a : a + h, b : b + w] for a in range(kh) for b in range(kw)], axis=2
        ).transpose(0, 3, 4, 1, 2)  # fmt: skip
        out = np.full((n * h * w, c * kh * kw), np.nan, np.float32)
        block = (16, 8) if seed % 2 else (8, 32)
        grid = (-(-out.shape[0] // block[0]), -(-out.shape[1] // block[1]))
        patches[grid](x, out, n, c, h, w, kh, kw, pad, *block, target=target)
        assert np.array_equal(out, right.reshape(out.shape)), (seed, n, c, h, w, kh, kw, pad)


@tlx_xdsl.jit
def convolution(x, w, y, start, C, H, W, pad, KH: tl.constexpr, KW: tl.constexpr, PADS: tl.constexpr, B: tl.constexpr):
    """A sum that is made piece by piece; all arguments but the window's are those of the launch."""
    at = start + tl.program_id(0) * B + tl.arange(0, B)
    rows = H + 2 * pad - KH + 1
    columns = W + 2 * pad - KW + 1
    inside = at < rows * columns
    row, column = at // columns, at % columns
    total = tl.zeros((B,), tl.float32)
    for c in range(C):
        for a in tl.static_range(KH):
            for b in tl.static_range(KW):
                mask = inside
                r, q = row + a, column + b
                if PADS:
                    r, q = r - pad, q - pad
                    mask = inside & (r >= 0) & (r < H) & (q >= 0) & (q < W)
                value = tl.load(x + (c * H + r) * W + q, mask=mask, other=0.0)
                total += value * tl.load(w + (c * KH + a) * KW + b)
    tl.store(y + at, total, mask=inside)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("pads", [False, True])
def test_convolutions(pads: bool, target: str):
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        c, kh, kw = (int(each) for each in rng.integers(1, 4, 3))
        h, w = kh + int(rng.integers(0, 9)), kw + int(rng.integers(0, 40))
        pad = int(rng.integers(0, 3)) if pads else 0
        x = rng.integers(-9, 9, (c, h, w)).astype(np.float32)
        weights = rng.integers(-9, 9, (c, kh, kw)).astype(np.float32)
        wide = np.pad(x, ((0, 0), (pad, pad), (pad, pad)))
        rows, columns = wide.shape[1] - kh + 1, wide.shape[2] - kw + 1
        right = np.zeros((rows, columns), np.float32)
        for a, b in np.ndindex(kh, kw):
            right += np.einsum("c,cij->ij", weights[:, a, b], wide[:, a : a + rows, b : b + columns])
        y = np.full((rows, columns), np.nan, np.float32)
        block, start = int(rng.choice([16, 64, 256])), int(rng.choice([0, 0, 3]))
        grid = (-(-max(right.size - start, 1) // block),)
        convolution[grid](x, weights, y, start, c, h, w, pad, kh, kw, pads, block, target=target)
        assert np.array_equal(y.ravel()[start:], right.ravel()[start:]), (seed, c, h, w, kh, kw, pad, block)


@tlx_xdsl.jit
def two_images(x, y, out, low, n, W, V, STORES: tl.constexpr, B: tl.constexpr):
    """Pieces of two lengths in one sum, between two bounds, and what was in memory before it is written."""
    at = tl.arange(0, B)
    inside = (at >= low) & (at < n)
    total = tl.zeros((B,), tl.float32) + 1
    for turn in range(2):
        one = tl.load(x + at // W * (W + 1) + at % W, mask=inside, other=turn)
        two = tl.load(y + at // V + at % V * V, mask=inside, other=5)
        if STORES:
            tl.store(x + at, total, mask=at < n)
        total = total * one + two
    tl.store(out + at, total)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("stores", [False, True])
@pytest.mark.parametrize(("low", "n", "w", "v"), [(0, 64, 8, 8), (3, 50, 7, 11), (10, 10, 5, 6), (0, 33, 40, 4)])
def test_pieces_of_two_lengths(low: int, n: int, w: int, v: int, stores: bool, target: str):
    rng = np.random.default_rng(n)
    x = rng.integers(0, 3, 200).astype(np.float32)
    y, out = rng.integers(0, 3, 1000).astype(np.float32), np.zeros(64, np.float32)
    at = np.arange(64)
    inside = (at >= low) & (at < n)
    changed, total = x.copy(), np.ones(64, np.float32)
    for turn in range(2):
        one = np.where(inside, changed[at // w * (w + 1) + at % w], turn)
        two = np.where(inside, y[np.where(inside, at // v + at % v * v, 0)], 5)
        if stores:
            changed[:n] = total[:n]
        total = total * one + two
    two_images[(1,)](x, y, out, low, n, w, v, stores, B=64, target=target)
    assert np.array_equal(out, total)
    assert np.array_equal(x, changed)


@tlx_xdsl.jit
def last_of_rows(x, out, n, W, low, B: tl.constexpr):
    """All elements of a row are written to one place, so that the last one stays."""
    at = tl.arange(0, B)
    tl.store(out + at // W, tl.load(x + at, mask=at < n), mask=(at < n) & (at % W <= low))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("n", "width", "low"), [(64, 8, 100), (50, 7, 3), (64, 100, 63), (13, 5, 0), (64, 4, -1)])
def test_the_last_of_a_row_stays(n: int, width: int, low: int, target: str):
    x, out = np.arange(100, 164, dtype=np.float32), np.full(64, -1, np.float32)
    right = out.copy()
    for at in range(n):
        if at % width <= low:
            right[at // width] = x[at]
    last_of_rows[(1,)](x, out, n, width, low, B=64, target=target)
    assert np.array_equal(out, right)


@tlx_xdsl.jit
def negative(x, out, start, divisor, B: tl.constexpr):
    """Numbers below and above 0, and divisors of any sign."""
    at = tl.arange(0, B)
    number = start + at
    tl.store(out + at, tl.load(x + 50 + number // divisor * 2 + number % divisor, mask=number // divisor < 9, other=-1))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("divisor", [1, 3, 5, 16, -4, -1])
@pytest.mark.parametrize("start", [-9, 0, 5])
def test_negative_numbers(start: int, divisor: int, target: str):
    x, out = np.arange(120, dtype=np.float32), np.zeros(16, np.float32)
    number = np.arange(start, start + 16)
    quotient = (np.abs(number) // abs(divisor) * np.sign(number) * np.sign(divisor)).astype(int)
    places = 50 + quotient * 2 + np.fmod(number, divisor)
    negative[(1,)](x, out, start, divisor, B=16, target=target)
    assert np.array_equal(out, np.where(quotient < 9, x[np.where(quotient < 9, places, 0)], -1))


@tlx_xdsl.jit
def near_the_end(x, out, start, W, add, limit, B: tl.constexpr):
    """A comparison whose sum leaves 32 bits inside of a piece."""
    at = tl.arange(0, B)
    number = start + at
    inside = number % W + add < limit
    tl.store(out + at, tl.load(x + at, mask=inside, other=-1))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("start", [0, 2**31 - 20])
@pytest.mark.parametrize("limit", [-(2**31) + 3, 0, 2**31 - 3])
def test_sums_that_wrap_around(start: int, limit: int, target: str):
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    add, width = 2**31 - 10, 30
    with np.errstate(over="ignore"):
        number = np.int32(start) + np.arange(64, dtype=np.int32)
        total = np.fmod(number, np.int32(width)) + np.int32(add)
    near_the_end[(1,)](x, out, start, width, add, limit, B=64, target=target)
    assert np.array_equal(out, np.where(total < limit, x, -1))
