"""Blocks whose elements lie the other way round than those of the result: transposed in registers."""

# covers: target.cpu

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit import volume

RNG = np.random.default_rng(7)


@tlx_xdsl.jit
def added(x, y, out, rows, columns, step, R: tl.constexpr, C: tl.constexpr):
    """`out = x + y.T`, all of `columns` elements a row, where `y` has rows of `step` elements."""
    row = tl.program_id(1) * R + tl.arange(0, R)[:, None]
    column = tl.program_id(0) * C + tl.arange(0, C)[None, :]
    inside = (row < rows) & (column < columns)
    value = tl.load(x + row * columns + column, inside) + tl.load(y + row + column * step, inside)
    tl.store(out + row * columns + column, value, inside)


@tlx_xdsl.jit
def scaled(x, out, R: tl.constexpr, C: tl.constexpr):
    """Twice the transposed matrix, of sizes that the compiler knows."""
    row, column = tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    tl.store(out + row * C + column, tl.load(x + row + column * R) * 2)


@tlx_xdsl.jit
def long_body(x, y, out, rows, columns, R: tl.constexpr, C: tl.constexpr):
    """Much arithmetic with two matrices that lie the other way round, and with the row's number."""
    row = tl.program_id(1) * R + tl.arange(0, R)[:, None]
    column = tl.program_id(0) * C + tl.arange(0, C)[None, :]
    inside = (row < rows) & (column < columns)
    a = tl.load(x + row + column * rows, inside).to(tl.float32)
    b = tl.load(y + row + column * rows, inside).to(tl.float32)
    value = a
    for _ in tl.static_range(6):
        value = value * b + a * row
        value = tl.where(value > 100, value - 100, value) * 0.125
    tl.store(out + row * columns + column, value, inside)


def numbers(shape, dtype):
    return RNG.integers(-50, 50, shape).astype(dtype)


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float16, np.int64] + ([np.float64, np.int8] if volume.is_full() else [])
)
@pytest.mark.parametrize(
    ("rows", "columns"), [(64, 64), (1, 40), (17, 33)] + ([(50, 15), (31, 16)] if volume.is_full() else [])
)
def test_any_sizes(rows, columns, dtype):
    x, y = numbers((rows, columns), dtype), numbers((columns, rows), dtype)
    for R, C in ((16, 32), (64, 16), (8, 8)):
        out = np.full((rows + 1, columns), 77, dtype)
        grid = (-(-columns // C), -(-rows // R))
        added[grid](x, y, out, rows, columns, rows, R=R, C=C)
        np.testing.assert_array_equal(out[:rows], x + y.T)
        assert (out[rows] == 77).all()


@pytest.mark.parametrize(("R", "C"), [(16, 16), (32, 64), (128, 4), (4, 128)])
def test_known_sizes(R, C):
    x, out = numbers((C, R), np.float32), np.empty((R, C), np.float32)
    scaled[(1,)](x, out, R=R, C=C)
    np.testing.assert_array_equal(out, x.T * 2)


def test_memory_that_overlaps():
    """A block is read before any of it is written, wherever the result lies."""
    for shift in (0, 1, 40, 16 * 16):
        memory = numbers(3000, np.float32)
        x, y, out = numbers((16, 16), np.float32), memory[500 : 500 + 256], memory[500 + shift : 756 + shift]
        expected = x + y.copy().reshape(16, 16).T
        added[(1, 1)](x, y, out, 16, 16, 16, R=16, C=16)
        np.testing.assert_array_equal(out.reshape(16, 16), expected)


def test_rows_that_are_not_there_are_not_read():
    """The last column ends where the memory of the process may end."""
    y = numbers((33, 32), np.float32)
    x, out = numbers((20, 33), np.float32), np.empty((20, 33), np.float32)
    added[(3, 2)](x, y, out, 20, 33, 32, R=16, C=16, checks=True)
    np.testing.assert_array_equal(out, x + y.T[:20])


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.float16, np.int8] if volume.is_full() else [np.float32, np.int8]
)
@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (17, 33)])
def test_long_bodies(rows, columns, dtype):
    x, y = numbers((columns, rows), dtype), numbers((columns, rows), dtype)
    out = np.empty((rows, columns), np.float32)
    long_body[(-(-columns // 32), -(-rows // 32))](x, y, out, rows, columns, R=32, C=32)
    a, b = x.T.astype(np.float32), y.T.astype(np.float32)
    value, row = a, np.arange(rows, dtype=np.float32)[:, None]
    for _ in range(6):
        value = value * b + a * row
        value = np.where(value > 100, value - 100, value) * np.float32(0.125)
    np.testing.assert_allclose(out, value, rtol=1e-4, atol=1e-3)
