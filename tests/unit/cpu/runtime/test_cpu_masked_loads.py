"""A load without `other` gives 0 for what its mask hides, whatever ran before; so does an atomic operation."""

# covers: target.cpu

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("llvmlite")

import tlx_xdsl
import tlx_xdsl.language as tl

BLOCK = 16
SENTINEL = 7
LENGTHS = (0, 1, 3, 5, 16)
DTYPES = [
    ml_dtypes.bfloat16, np.float16, np.float32, np.float64, np.int8, np.uint16, np.int32, np.int64, np.bool_,
    ml_dtypes.float8_e5m2,
]  # fmt: skip


@tlx_xdsl.jit
def spread(x, out):
    at = tl.arange(0, 16)
    value = tl.load(x + at)
    tl.store(out + at, tl.sort(value) + tl.sum(value, 0))


@tlx_xdsl.jit
def direct(x, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.load(x + at, mask=at < n))


@tlx_xdsl.jit
def direct_below(x, out, N: tl.constexpr, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.load(x + at, mask=at < N))


def test_what_another_kernel_left_is_not_seen():
    out = np.full(16, SENTINEL, np.float32)
    for left in (100, np.nan):
        spread[(1,)](np.full(16, left, np.float32), np.empty(16, np.float32))
        direct[(1,)](np.float32([1, 2, 3]), out, 3, B=16)
        assert out.tolist() == [1, 2, 3] + [0] * 13


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_of_every_type(dtype: Any):
    x = np.arange(1, BLOCK + 1).astype(dtype)
    for n in LENGTHS:
        for launch in (
            lambda out, n=n: direct[(1,)](x[:n], out, n, B=BLOCK),
            lambda out, n=n: direct_below[(1,)](x[:n], out, N=n, B=BLOCK),
        ):
            memory = np.full(BLOCK + 8, SENTINEL).astype(dtype)
            launch(memory[4:-4])
            right = memory.copy()
            right[4:-4] = np.where(np.arange(BLOCK) < n, x, np.zeros_like(x))
            assert memory.tobytes() == right.tobytes(), n


@tlx_xdsl.jit
def scalar(x, out, n, B: tl.constexpr):
    tl.store(out + tl.arange(0, B), tl.load(x, mask=n > 8))


@tlx_xdsl.jit
def summed(x, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.sum(tl.load(x + at, mask=at < n), 0) + at * 0)


@tlx_xdsl.jit
def highest(x, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.max(tl.load(x + at, mask=at < n), 0) + at * 0)


@tlx_xdsl.jit
def sorted_(x, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.sort(tl.load(x + at, mask=at < n)))


@tlx_xdsl.jit
def in_the_middle(x, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.load(x + at, mask=(at >= 2) & (at < n)))


@tlx_xdsl.jit
def gathered(x, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.load(x + at * at % B, mask=at < n))


@tlx_xdsl.jit
def under_any_mask(x, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.load(x + at, mask=(at * at % 7 > 2) & (at < n)))


@tlx_xdsl.jit
def under_a_condition(x, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.load(x + at, mask=(at < n) & (n > 4)))


@tlx_xdsl.jit
def fused(x, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    value = tl.load(x + at, mask=at < n)
    tl.store(out + at, tl.where(at % 2 == 0, value, value * 2 + 1))


@tlx_xdsl.jit
def transposed(x, out, n, B: tl.constexpr):
    rows, columns = tl.arange(0, B // 4)[:, None], tl.arange(0, 4)[None, :]
    tile = tl.load(x + rows * 4 + columns, mask=(rows * 4 < n) & (columns < 3))
    tl.store(out + tl.arange(0, B), tl.reshape(tl.trans(tile), (B,)))


@tlx_xdsl.jit
def in_a_loop(x, out, n, B: tl.constexpr):
    at = tl.arange(0, 4)
    total = tl.zeros((4,), tl.float32)
    for first in range(0, n, 4):
        total += tl.load(x + first + at, mask=first + at < n, other=None)
    tl.store(out + at, total)


@tlx_xdsl.jit
def multiplied(x, out, n, B: tl.constexpr):
    rows, columns = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    left = tl.load(x + rows * 0 + columns, mask=columns < n)
    right = tl.load(x + rows + columns * 0, mask=rows < n)
    tl.store(out + tl.arange(0, B), tl.sum(tl.dot(left, right), 0) / B)


@tlx_xdsl.jit
def of_a_block_pointer(x, out, n, B: tl.constexpr):
    block = tl.make_block_ptr(x, (n,), (1,), (0,), (B,), (0,))
    tl.store(out + tl.arange(0, B), tl.load(block, boundary_check=(0,)))


@tlx_xdsl.jit
def old_values(x, out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.atomic_add(x + at, 1.0, mask=at < n))


def masked(x: Any, n: int) -> Any:
    return np.where(np.arange(BLOCK) < n, x, 0)


AT = np.arange(BLOCK)
ORACLES: dict[Any, Any] = {
    scalar: lambda x, n: np.full(BLOCK, x[0] if n > 8 else 0),
    summed: lambda x, n: np.full(BLOCK, x[:n].sum()),
    highest: lambda x, n: np.full(BLOCK, masked(x, n).max()),
    sorted_: lambda x, n: np.sort(masked(x, n)),
    in_the_middle: lambda x, n: np.where(AT >= 2, masked(x, n), 0),
    gathered: lambda x, n: masked(x[AT * AT % BLOCK], n),
    under_any_mask: lambda x, n: np.where(AT * AT % 7 > 2, masked(x, n), 0),
    under_a_condition: lambda x, n: masked(x, n) * (n > 4),
    fused: lambda x, n: np.where(AT % 2 == 0, masked(x, n), masked(x, n) * 2 + 1),
    transposed: lambda x, n: np.where((AT[:, None] // 4 * 4 < n) & (AT[:, None] % 4 < 3), x[:, None], 0)
    .reshape(4, 4).T.ravel(),
    in_a_loop: lambda x, n: np.append(masked(x, n).reshape(4, 4).sum(0), [SENTINEL] * 12),
    multiplied: lambda x, n: np.full(BLOCK, (masked(x, n) ** 2).sum()),
    of_a_block_pointer: masked,
    old_values: masked,
}  # fmt: skip


@pytest.mark.parametrize("kernel", ORACLES)
def test_every_kind_of_load(kernel: Any):
    for n in LENGTHS:
        x = -np.arange(1, BLOCK + 1, dtype=np.float32)
        memory = np.full(BLOCK + 8, SENTINEL, np.float32)
        kernel[(1,)](x.copy(), memory[4:-4], n, B=BLOCK)
        right = np.full(BLOCK + 8, SENTINEL, np.float32)
        right[4:-4] = ORACLES[kernel](x, n)
        np.testing.assert_array_equal(memory, right, str(n))


@tlx_xdsl.jit
def from_before(x, y, out, offset, length, B: tl.constexpr):
    """A tile that may begin before `x`; every third element of the result is not stored."""
    at = tl.arange(0, B)
    padded = tl.make_block_ptr(
        x, shape=(length,), strides=(1,), offsets=(offset,), block_shape=(B,), order=(0,)
    )  # fmt: skip
    found = tl.load(padded, boundary_check=(0,)) >= tl.load(y + at)
    tl.store(out + at, found.to(tl.int32), mask=at % 3 != 1)


@pytest.mark.parametrize("offset", [-17, -16, -1, 0, 5])
def test_vectors_before_the_first_element_are_masked(offset: int):
    """A window whose first elements lie before the array has vectors with all lanes only where it has begun."""
    memory = np.full(200, 99, np.float32)
    for length in (0, 16, 31, 32, 47, 64):
        x = memory[100 : 100 + length]
        x[:] = np.arange(length) % 5
        y, out = np.arange(64, dtype=np.float32) % 3 + 1, np.full(65, SENTINEL, np.int32)
        places = np.arange(64) + offset
        expected = np.where((places >= 0) & (places < length), memory[np.clip(100 + places, 0, 199)], 0) >= y
        from_before[(1,)](x, y, out, offset, length, B=64)
        np.testing.assert_array_equal(out[:64], np.where(np.arange(64) % 3 == 1, SENTINEL, expected))
        assert out[64] == SENTINEL
        memory[:] = 99
