"""Kernels whose programs have a flat index: pooling, a transposed copy of four dimensions, and resizing, beside numpy.

Sizes are drawn, arguments at run time, and rarely divide a block. Elements beside the result stay as they are.
"""

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit import volume

pytest.importorskip("llvmlite")

DRAWS = 120 if volume.is_full() else 12
FENCE = 777.0
BESIDE = 32


@tlx_xdsl.jit
def pooled(x, y, N, C, H, W, OH, OW, STEP, K: tl.constexpr, PAD: tl.constexpr, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    count = N * C * OH * OW
    column, row = at % OW, at // OW % OH
    channel, image = at // OW // OH % C, at // OW // OH // C
    best = tl.full([B], -1e30, tl.float32)
    for i in tl.static_range(K):
        for j in tl.static_range(K):
            h, w = row * STEP + i - PAD, column * STEP + j - PAD
            inside = (h >= 0) & (h < H) & (w >= 0) & (w < W) & (at < count)
            best = tl.maximum(best, tl.load(x + ((image * C + channel) * H + h) * W + w, inside, -1e30))
    tl.store(y + at, best, at < count)


@tlx_xdsl.jit
def transposed(x, y, A, B, C, D, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    count = A * B * C * D
    d, c, b, a = at % D, at // D % C, at // (D * C) % B, at // (D * C * B)
    tl.store(y + at, tl.load(x + ((d * C + c) * A + a) * B + b, at < count), at < count)


@tlx_xdsl.jit
def resized(x, y, H, W, OH, OW, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    row, column = at // OW * H // OH, at % OW * W // OW
    tl.store(y + at, tl.load(x + row * W + column, at < OH * OW, 0.0), at < OH * OW)


def check(kernel, x, expected, block, *arguments, **constants):
    """Launch on one index for each element of `expected`, and compare."""
    memory = np.full(expected.size + 2 * BESIDE, FENCE, np.float32)
    y = memory[BESIDE:-BESIDE]
    y[:] = np.nan
    kernel[(-(-expected.size // block),)](x.reshape(-1), y, *arguments, **constants)
    np.testing.assert_array_equal(y, expected.reshape(-1))
    assert (memory[:BESIDE] == FENCE).all()
    assert (memory[-BESIDE:] == FENCE).all()


@pytest.mark.parametrize("seed", range(DRAWS))
def test_pooling(seed):
    rng = np.random.default_rng(seed)
    n, c, h, w = (int(rng.integers(1, most)) for most in (4, 5, 24, 38))
    k, step = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    pad, block = int(rng.integers(0, k // 2 + 1)), int(rng.choice([16, 128, 1024]))
    h, w = max(h, k), max(w, k)
    rows, columns = (h + 2 * pad - k) // step + 1, (w + 2 * pad - k) // step + 1
    x = rng.standard_normal((n, c, h, w)).astype(np.float32)
    wide = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)), constant_values=-1e30)
    windows = np.lib.stride_tricks.sliding_window_view(wide, (k, k), (2, 3))[:, :, ::step, ::step]
    check(pooled, x, windows.max((4, 5)), block, n, c, h, w, rows, columns, step, K=k, PAD=pad, B=block)


@pytest.mark.parametrize("seed", range(DRAWS))
def test_a_transposed_copy(seed):
    rng = np.random.default_rng(seed)
    a, b, c, d = (int(each) for each in rng.integers(1, 10, 4))
    x = rng.standard_normal((d, c, a, b)).astype(np.float32)
    block = int(rng.choice([16, 128, 1024]))
    check(transposed, x, x.transpose(2, 3, 1, 0), block, a, b, c, d, BLOCK=block)


@pytest.mark.parametrize("seed", range(DRAWS))
def test_resizing(seed):
    rng = np.random.default_rng(seed)
    h, w, rows, columns = (int(each) for each in rng.integers(1, 41, 4))
    x = rng.standard_normal((h, w)).astype(np.float32)
    block = int(rng.choice([16, 128, 1024]))
    expected = x[np.arange(rows) * h // rows][:, np.arange(columns) * w // columns]
    check(resized, x, expected, block, h, w, rows, columns, B=block)
