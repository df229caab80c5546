"""Elements beside a masked store stay as they are, for every length of what is left after the last whole vector."""

# covers: target.cpu

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("llvmlite")

import tlx_xdsl
import tlx_xdsl.language as tl

LENGTHS = (*range(1, 10), 17, 33, 257)
ROOM, GAP, BLOCK = 600, 40, 512
"""Elements of a row, those before its first one that is written, and those of a block."""
DTYPES = [
    ml_dtypes.bfloat16, np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64,
    ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn,
]  # fmt: skip


@tlx_xdsl.jit
def doubled(x, out, n, start, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + start + at, mask=at < n).to(tl.float32)
    tl.store(out + start + at, value * 2, mask=at < n)


@tlx_xdsl.jit
def raised(x, out, n, start, BLOCK: tl.constexpr):
    """The vectors to store come from memory, without the mask."""
    at = tl.arange(0, BLOCK)
    value = tl.load(x + start + at, mask=at < BLOCK).to(tl.float32)
    value = value + tl.max(value, 0)
    tl.store(out + start + at, value, mask=at < n)


@tlx_xdsl.jit
def narrowed(x, out, n, start, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + start + at)
    value += tl.max(value, 0)
    tl.store(out + start + at, value, mask=at < n)


@tlx_xdsl.jit
def copied(x, out, n, start, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + start + at, tl.load(x + start + at, mask=at < n), mask=at < n)


@tlx_xdsl.jit
def spaced(x, out, n, start, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + start + at, mask=at < n).to(tl.float32)
    tl.store(out + start + at * 2, value * 2, mask=at < n)


@tlx_xdsl.jit
def in_a_loop(x, out, n, start, BLOCK: tl.constexpr):
    for first in range(0, n, 64):
        at = first + tl.arange(0, 64)
        value = tl.load(x + start + at, mask=at < n).to(tl.float32)
        tl.store(out + start + at, value * 2, mask=at < n)


@tlx_xdsl.jit
def known_lengths(x, out, body: tl.constexpr, LENGTHS: tl.constexpr, ROOM: tl.constexpr, BLOCK: tl.constexpr):
    for row in tl.static_range(len(LENGTHS)):
        body(x, out, LENGTHS[row], row * ROOM, BLOCK)


@tlx_xdsl.jit
def unknown_length(x, out, n, start, body: tl.constexpr, BLOCK: tl.constexpr):
    body(x, out, n, start, BLOCK)


@tlx_xdsl.jit
def lengths_of_llvm(x, out, n, body: tl.constexpr, LENGTHS: tl.constexpr, ROOM: tl.constexpr, BLOCK: tl.constexpr):
    """LLVM alone finds out that they are numbers."""
    for row in tl.static_range(len(LENGTHS)):
        body(x, out, (n & 0) + LENGTHS[row], row * ROOM, BLOCK)


ORACLES: dict[Any, Any] = {
    doubled: lambda row, n: row[:n] * 2,
    raised: lambda row, n: row[:n] + row[:BLOCK].max(),
    narrowed: lambda row, n: row[:n] + row[:BLOCK].max(),
    copied: lambda row, n: row[:n],
    spaced: lambda row, n: row[:n] * 2,
    in_a_loop: lambda row, n: row[:n] * 2,
}


def rows(dtype: Any, body: Any) -> tuple[Any, Any, Any]:
    """Inputs, an output whose elements are all 1.5 (or 1), and the right one; a row for each length."""
    x = np.random.default_rng(0).integers(0, 4, (len(LENGTHS), ROOM)).astype(dtype)
    out = np.full((len(LENGTHS), GAP + 2 * ROOM), 1.5, np.float32).astype(dtype)
    right = out.copy()
    step = 2 if body is spaced else 1
    for row, n in enumerate(LENGTHS):
        found = ORACLES[body](x[row].astype(np.float64), n)
        right[row, GAP : GAP + step * n : step] = found.astype(dtype)
    return x, out, right


def strided_starts(x: Any, out: Any) -> tuple[Any, Any]:
    """The same memory with rows of one length, for kernels that have one start for both."""
    whole = np.zeros_like(out)
    whole[:, GAP : GAP + ROOM] = x
    return whole.ravel()[GAP:], out.ravel()[GAP:]


def check(out: Any, right: Any) -> None:
    for n, found, wanted in zip(LENGTHS, out, right, strict=True):
        differ = np.nonzero(found.view(np.uint8) != wanted.view(np.uint8))[0]
        assert not differ.size, f"n = {n}: bytes {differ[:8] - GAP * found.itemsize} of the row"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("body", [doubled, raised])
def test_lengths_that_are_constants(body: Any, dtype: Any):
    x, out, right = rows(dtype, body)
    known_lengths[(1,)](*strided_starts(x, out), body, LENGTHS, out.shape[1], BLOCK)
    check(out, right)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, np.float64])
@pytest.mark.parametrize("body", [copied, spaced, in_a_loop])
def test_other_stores(body: Any, dtype: Any):
    test_lengths_that_are_constants(body, dtype)


@pytest.mark.parametrize("wide", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_integers_that_are_narrowed(dtype: Any, wide: Any):
    x, out, right = rows(dtype, narrowed)
    source, target = strided_starts(x, out)
    known_lengths[(1,)](source.astype(wide), target, narrowed, LENGTHS, out.shape[1], BLOCK)
    check(out, right)


@pytest.mark.parametrize("dtype", DTYPES[::2])
@pytest.mark.parametrize("body", [doubled, raised])
def test_lengths_of_the_launch(body: Any, dtype: Any):
    x, out, right = rows(dtype, body)
    source, target = strided_starts(x, out)
    for row, n in enumerate(LENGTHS):
        unknown_length[(1,)](source, target, n, row * out.shape[1], body, BLOCK)
    check(out, right)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, np.float32])
def test_lengths_that_only_llvm_knows(dtype: Any):
    x, out, right = rows(dtype, raised)
    lengths_of_llvm[(1,)](*strided_starts(x, out), 7, raised, LENGTHS, out.shape[1], BLOCK)
    check(out, right)


def test_a_checked_launch_leaves_the_next_element():
    x, out = np.ones(5, ml_dtypes.bfloat16), np.full(8, 7, ml_dtypes.bfloat16)
    known_lengths[(1,)](x, out[:5], doubled, (5,), 0, BLOCK=64, checks=True)
    assert out.tolist() == [2] * 5 + [7] * 3
