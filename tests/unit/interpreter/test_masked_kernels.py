"""Kernels as people write them, whose masked loads do not say what else: right, and without NaN, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl

STAGES = ("frontend", "ttgir")
Rng = np.random.Generator


@tlx_xdsl.jit
def softmax_backward(y, dy, dx, columns, B: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, B)
    mask = at < columns
    out, gradient = tl.load(y + row * columns + at, mask=mask), tl.load(dy + row * columns + at, mask=mask)
    dot = tl.sum(out * gradient, 0)
    tl.store(dx + row * columns + at, out * (gradient - dot), mask=mask)


@tlx_xdsl.jit
def rms_norm(x, w, y, columns, B: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, B)
    mask = at < columns
    v = tl.load(x + row * columns + at, mask=mask).to(tl.float32)
    scale = tl.rsqrt(tl.sum(v * v, 0) / columns + 1e-5)
    tl.store(y + row * columns + at, v * scale * tl.load(w + at, mask=mask), mask=mask)


@tlx_xdsl.jit
def layer_norm_backward(x, w, dy, dx, dw, columns, B: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, B)
    mask = at < columns
    v, g = tl.load(x + row * columns + at, mask=mask), tl.load(dy + row * columns + at, mask=mask)
    mean = tl.sum(v, 0) / columns
    centred = tl.where(mask, v - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, 0) / columns + 1e-5)
    normed = centred * scale
    scaled = g * tl.load(w + at, mask=mask)
    along, level = tl.sum(scaled * normed, 0) / columns, tl.sum(scaled, 0) / columns
    tl.store(dx + row * columns + at, (scaled - normed * along - level) * scale, mask=mask)
    tl.atomic_add(dw + at, g * normed, mask=mask)


@tlx_xdsl.jit
def convolution(x, w, y, channels, height, width, K: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    """Pixels of a row by filters of K x K, padded with zeros by the mask alone."""
    row, filter_ = tl.program_id(0), tl.program_id(1)
    column, channel = tl.arange(0, B), tl.arange(0, C)
    total = tl.zeros((B,), tl.float32)
    for i in tl.static_range(K):
        for j in tl.static_range(K):
            h, v = row + i - K // 2, column + j - K // 2
            inside = (h >= 0) & (h < height) & (v >= 0) & (v < width)
            block = tl.load(
                x + (channel[:, None] * height + h) * width + v[None, :],
                mask=inside[None, :] & (channel < channels)[:, None],
            )
            weight = tl.load(w + ((filter_ * channels + channel) * K + i) * K + j, mask=channel < channels)
            total += tl.sum(block * weight[:, None], 0)
    tl.store(y + (filter_ * height + row) * width + column, total, mask=column < width)


def softmax_case(rng: Rng) -> Any:
    y = rng.random((3, 21)).astype(np.float32)
    y /= y.sum(1, keepdims=True)
    dy = rng.standard_normal((3, 21)).astype(np.float32)
    dx = np.full_like(y, np.nan)
    return softmax_backward, 3, [y, dy, dx, 21, 32], [(dx, y * (dy - (y * dy).sum(1, keepdims=True)))]


def rms_case(rng: Rng) -> Any:
    x, w = rng.standard_normal((3, 21)).astype(np.float32), rng.standard_normal(21).astype(np.float32)
    y = np.full_like(x, np.nan)
    return rms_norm, 3, [x, w, y, 21, 32], [(y, x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * w)]


def layer_norm_case(rng: Rng) -> Any:
    x, dy = (rng.standard_normal((3, 21)).astype(np.float32) for _ in range(2))
    w = rng.standard_normal(21).astype(np.float32)
    dx, dw = np.full_like(x, np.nan), np.zeros_like(w)
    scale = 1 / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    normed = (x - x.mean(1, keepdims=True)) * scale
    g = dy * w
    expected = (g - normed * (g * normed).mean(1, keepdims=True) - g.mean(1, keepdims=True)) * scale
    return layer_norm_backward, 3, [x, w, dy, dx, dw, 21, 32], [(dx, expected), (dw, (dy * normed).sum(0))]


def convolution_case(rng: Rng) -> Any:
    x, w = rng.standard_normal((3, 5, 6)).astype(np.float32), rng.standard_normal((2, 3, 3, 3)).astype(np.float32)
    y = np.full((2, 5, 6), np.nan, np.float32)
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    expected = np.einsum("chwij,fcij->fhw", windows, w)
    return convolution, (5, 2), [x, w, y, 3, 5, 6, 3, 8, 4], [(y, expected)]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("case", [softmax_case, rms_case, layer_norm_case, convolution_case])
def test_published_shapes_are_right_and_have_no_nan(case: Any, stage: str):
    kernel, grid, arguments, outputs = case(np.random.default_rng(1))
    kernel.interpret(grid, *arguments, stage=stage)
    for found, expected in outputs:
        assert not np.isnan(found).any()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", [softmax_case, rms_case, layer_norm_case, convolution_case])
def test_who_asks_for_poison_sees_where_they_rely_on_it(case: Any):
    kernel, grid, arguments, outputs = case(np.random.default_rng(1))
    kernel.interpret(grid, *arguments, unwritten="poison")
    assert np.isnan(outputs[0][0]).any()
