"""Windows that are moved over an image by its flat index, beyond its edges: convolutions and maxima.

The oracle is numpy, on whole numbers. Natively arrays stand between fences and temporary memory begins as NaN
(`fences.py`): a number from outside of the image, or one that was not computed, shows.
"""

# covers: target.cpu, linalg-fuse-pieces, linalg-lower-accesses

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func

pytest.importorskip("llvmlite")

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit.cpu.codegen.native import bufferized
from tlx_xdsl.cpu.codegen.forwarding import buffer_of, forwarding
from tlx_xdsl.cpu.runtime.linalg import plain_module
from tlx_xdsl.dialects import memref
from tlx_xdsl.frontend.python.foreign import source_of
from tlx_xdsl.runtime.driver.compilation import Specialization

SEEDS = range(60 if os.environ.get("TLX_TEST_VOLUME") == "full" else 8)


@tlx_xdsl.jit
def of_window(x, first, row, column, H, W, known, other):
    """The elements of an image whose rows begin with row `first` of `x`, and `other` outside of it."""
    inside = known & (row >= 0) & (row < H) & (column >= 0) & (column < W)
    return tl.load(x + (first + row) * W + column, mask=inside, other=other)


@tlx_xdsl.jit
def convolution(x, w, y, start, n, C, H, W, K, L, columns, top, left, STEP: tl.constexpr, GAP: tl.constexpr,
                K_IS: tl.constexpr, L_IS: tl.constexpr, B: tl.constexpr):  # fmt: skip
    """A window whose size is known (`K_IS`, `L_IS`), or a number of the launch."""
    at = start + tl.program_id(0) * B + tl.arange(0, B)
    known = at < n
    row, column = at // columns * STEP - top, at % columns * STEP - left
    total = tl.zeros((B,), tl.float32)
    for c in range(C):
        if K_IS:
            for a in tl.static_range(K_IS):
                for b in tl.static_range(L_IS):
                    value = of_window(x, c * H, row + a * GAP, column + b * GAP, H, W, known, 0.0)
                    total += value * tl.load(w + (c * K_IS + a) * L_IS + b)
        else:
            for a in range(K):
                for b in range(L):
                    value = of_window(x, c * H, row + a * GAP, column + b * GAP, H, W, known, 0.0)
                    total += value * tl.load(w + (c * K + a) * L + b)
    tl.store(y + at, total, mask=known)


@tlx_xdsl.jit
def largest(x, w, y, start, n, C, H, W, K, L, columns, top, left, STEP: tl.constexpr, GAP: tl.constexpr,
            K_IS: tl.constexpr, L_IS: tl.constexpr, B: tl.constexpr):  # fmt: skip
    """The largest number of a window, in the last channel."""
    at = start + tl.program_id(0) * B + tl.arange(0, B)
    known = at < n
    row, column = at // columns * STEP - top, at % columns * STEP - left
    found = tl.full((B,), -float("inf"), tl.float32)
    image = x + (C - 1) * H * W
    if K_IS:
        for a in tl.static_range(K_IS):
            for b in tl.static_range(L_IS):
                value = of_window(image, 0, row + a * GAP, column + b * GAP, H, W, known, -float("inf"))
                found = tl.maximum(found, value)
    else:
        for a in range(K):
            for b in range(L):
                value = of_window(image, 0, row + a * GAP, column + b * GAP, H, W, known, -float("inf"))
                found = tl.maximum(found, value)
    tl.store(y + at, found, mask=known)


def windows(
    x: Any, high: int, wide: int, rows: int, columns: int, top: int, left: int, step: int, gap: int, other: float
):
    """The elements of each window: channels, rows, columns, and the places of the window."""
    channels, height, width = x.shape
    found = np.full((channels, rows, columns, high, wide), other, np.float32)
    for i, j, a, b in np.ndindex(rows, columns, high, wide):
        r, q = i * step - top + a * gap, j * step - left + b * gap
        if 0 <= r < height and 0 <= q < width:
            found[:, i, j, a, b] = x[:, r, q]
    return found


@pytest.mark.parametrize("body", [convolution, largest])
@pytest.mark.parametrize("is_known", [True, False])
def test_windows(body: Any, is_known: bool):
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        c, high, wide, step, gap = (int(each) for each in rng.integers([1, 1, 1, 1, 1], [4, 4, 4, 3, 4]))
        h, w = int(rng.integers(1, 12)), int(rng.choice([1, 2, 7, 8, 9, 16, 17, 33, 40]))
        top, left = (int(each) for each in rng.integers(-1, 5, 2))
        # Mostly as many as have an element of the image, and some more or fewer.
        rows = max((h + 2 * top - gap * (high - 1) - 1) // step + 1 + int(rng.integers(-1, 2)), 1)
        columns = max((w + 2 * left - gap * (wide - 1) - 1) // step + 1 + int(rng.integers(-1, 3)), 1)
        x = rng.integers(-9, 9, (c, h, w)).astype(np.float32)
        weights = rng.integers(-9, 9, (c, high, wide)).astype(np.float32)
        place = (high, wide, rows, columns, top, left, step, gap)
        if body is convolution:
            right = np.einsum("cijab,cab->ij", windows(x, *place, other=0), weights)
        else:
            right = windows(x, *place, other=-np.inf)[-1].max((2, 3))
        y = np.full((rows, columns), np.nan, np.float32)
        start, block = int(rng.choice([0, 0, 3])), int(rng.choice([16, 64, 256]))
        numbers = (start, y.size, c, h, w, high, wide, columns, top, left)
        constants = (step, gap, high if is_known else 0, wide, block)
        body[(-(-max(y.size - start, 1) // block),)](x, weights, y, *numbers, *constants, target="cpu")
        assert np.array_equal(y.ravel()[start:], right.ravel()[start:]), (seed, x.shape, *place, start, block)
        assert np.isnan(y.ravel()[:start]).all(), "what the mask leaves out was written"


def test_no_channels():
    """Add up nothing, though the rows have no length either."""
    x, y = np.ones(16, np.float32), np.full(16, np.nan, np.float32)
    convolution[(1,)](x, x, y, 0, 16, 0, 4, 4, 2, 2, 0, 0, 0, 1, 1, 2, 2, 16, target="cpu")
    assert (y == 0).all()


@tlx_xdsl.jit
def checked(x, y, n, W, limit, VARIES: tl.constexpr, B: tl.constexpr):
    """An assertion beside the pieces, of one number or of one for each turn."""
    at = tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for c in range(n):
        tl.device_assert((c if VARIES else 1) < limit, "too many")
        inside = at % W + c > 1
        total += tl.load(x + at // W * 2 * W + at % W + c, mask=inside, other=0.0)
    tl.store(y + at, total)


@pytest.mark.parametrize("varies", [False, True])
@pytest.mark.parametrize(("n", "limit"), [(3, 3), (3, 1), (0, 0)])
def test_assertions_hold_in_each_turn(n: int, limit: int, varies: bool):
    width, x, y = 5, np.arange(200, dtype=np.float32), np.zeros(32, np.float32)

    def launch() -> None:
        checked[(1,)](x, y, n, width, limit, varies, 32, target="cpu", debug=True)

    if n and (n - 1 if varies else 1) >= limit:
        with pytest.raises(tlx_xdsl.CompilationError, match="too many"):
            launch()
        return
    launch()
    at = np.arange(32)
    parts = [np.where(at % width + c > 1, x[at // width * 2 * width + at % width + c], 0) for c in range(n)]
    assert np.array_equal(y, np.sum(parts, 0) if parts else np.zeros(32))


def test_no_tile_is_copied():
    """All loads of a padded convolution are read where they lie, in one loop over the rows around that of channels."""
    numbers = ("start", "n", "C", "H", "W", "K", "L", "columns", "top", "left")
    signature = {"x": "*fp32", "w": "*fp32", "y": "*fp32", **dict.fromkeys(numbers, "i32")}
    constants = {"STEP": 1, "GAP": 1, "K_IS": 3, "L_IS": 3, "B": 256}
    module = bufferized(plain_module(source_of(convolution), Specialization(signature, constants)))
    loads = [op for op in module.walk() if isinstance(op, memref.CopyOp) and buffer_of(op.source) is None]
    assert loads
    assert forwarding(module).skipped.issuperset(loads)
    (walk,) = (op for op in module.walk() if op.name == "scf.while")
    assert isinstance(walk.parent_op(), func.FuncOp)
    divisions = [op for op in module.walk() if op.name == "arith.divsi"]
    assert [op.parent for op in divisions] == [walk.regions[1].block]
