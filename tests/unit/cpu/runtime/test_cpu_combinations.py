"""Reductions with functions of the kernel's own, after loops and without, against numpy."""

# covers: target.cpu

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit import volume

RNG = np.random.default_rng(52)
F32 = np.float32
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -1.5, 1e-45], F32)


@tlx_xdsl.jit
def is_floating(x):
    return (x + tl.zeros((1,), tl.int1)).dtype.is_floating()


@tlx_xdsl.jit
def larger(a, b):
    """The maximum that inductor writes."""
    mask = a > b
    if is_floating(a):
        mask |= a != a
    return tl.where(mask, a, b)


@tlx_xdsl.jit
def smaller(a, b):
    mask = a < b
    if is_floating(a):
        mask |= a != a
    return tl.where(mask, a, b)


@tlx_xdsl.jit
def larger_number(a, b):
    return tl.where((a > b) | (b != b), a, b)


@tlx_xdsl.jit
def last_unless_larger(a, b):
    """No maximum: NaN on either side gives the second, so that it depends on the order."""
    return tl.where(a > b, a, b)


@tlx_xdsl.jit
def of_row(x, y, n, combine: tl.constexpr, B: tl.constexpr):
    at = tl.arange(0, B)
    row = tl.program_id(0)
    value = tl.load(x + row * n + at, mask=at < n)
    tl.store(y + row, tl.reduce(value, 0, combine))


def reduced(combine, rows):
    out = np.full(len(rows), 77, rows.dtype)
    of_row[(len(rows),)](rows, out, rows.shape[1], combine=combine, B=rows.shape[1])
    return out


def rows_of(special, count=64, width=64):
    """Rows of one or two special values each, and some of many."""
    rows = [np.resize(np.roll(special, -k)[: 1 + k % 3], width) for k in range(len(special) * 3)]
    rows += [RNG.choice(special, width) for _ in range(count)]
    return np.array(rows, special.dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize(("combine", "numpys"), [(larger, np.maximum), (smaller, np.minimum), (larger_number, np.fmax)])
def test_extrema_of_special_floats(combine, numpys, dtype):
    rows = rows_of(SPECIAL.astype(dtype))
    found, expected = reduced(combine, rows), numpys.reduce(rows, axis=1)
    np.testing.assert_array_equal(found, expected)
    # Of two zeros the greater one is the maximum: one that is among the elements, whatever the order.
    zero = found == 0
    assert zero.any()
    has_zero = [{bool(sign) for sign in np.signbit(row[row == 0])} for row in rows[zero]]
    assert all(bool(sign) in signs for sign, signs in zip(np.signbit(found[zero]), has_zero, strict=True))


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.int64])
def test_extrema_of_integers(dtype):
    limits = np.iinfo(dtype)
    rows = rows_of(np.array([limits.min, limits.max, 0, 1, limits.max - 1], dtype))
    np.testing.assert_array_equal(reduced(larger, rows), rows.max(axis=1))
    np.testing.assert_array_equal(reduced(smaller, rows), rows.min(axis=1))


def test_what_depends_on_the_order_keeps_it():
    rows = rows_of(SPECIAL)
    expected = rows[:, 0].copy()
    for column in rows.T[1:]:
        expected = np.where(expected > column, expected, column)
    np.testing.assert_array_equal(reduced(last_unless_larger, rows), expected)


@tlx_xdsl.jit
def accumulated(x, y, rows, n, start: tl.constexpr, kind: tl.constexpr, masks: tl.constexpr, X: tl.constexpr,
                B: tl.constexpr):  # fmt: skip
    """A loop as inductor writes it: a block of accumulators, which is reduced in the end."""
    row = tl.program_id(0) * X + tl.arange(0, X)[:, None]
    fits = row < rows
    acc = tl.full([X, B], start, x.dtype.element_ty)
    for first in tl.range(0, n, B):
        at = first + tl.arange(0, B)[None, :]
        inside = (at < n) & fits
        value = tl.load(x + row * n + at, inside, other=0)
        if kind == "sum":
            more = acc + value
        elif kind == "product":
            more = acc * (value + 1)
        elif kind == "xor":
            more = acc ^ value
        else:
            more = larger(acc, value)
        acc = tl.where(inside, more, acc) if masks else more
    if kind == "sum":
        total = tl.sum(acc, 1)
    elif kind == "product":
        total = tl.reduce(acc, 1, product)
    elif kind == "xor":
        total = tl.xor_sum(acc, 1)
    else:
        total = tl.reduce(acc, 1, larger)
    tl.store(y + row, total[:, None], fits)


@tlx_xdsl.jit
def product(a, b):
    return a * b


def in_a_loop(x, kind, start, masks, X=1, B=128):
    out = np.full(len(x), 77, x.dtype)
    grid = (-(-len(x) // X),)
    accumulated[grid](x, out, len(x), x.shape[1], start=start, kind=kind, masks=masks, X=X, B=B)
    return out


@pytest.mark.parametrize("X", [1, 4])
@pytest.mark.parametrize("width", [1, 127, 128, 700] if volume.is_full() else [127, 700])
def test_sums_in_loops(width, X):
    x = RNG.standard_normal((5, width)).astype(F32)
    for masks in (True, False):
        found = in_a_loop(x, "sum", 0.0, masks, X)
        np.testing.assert_allclose(found, x.sum(axis=1, dtype=np.float64), rtol=1e-5, atol=1e-5)
    # A start that would count once for each accumulator stays there.
    found = in_a_loop(x, "sum", 0.5, True, X)
    np.testing.assert_allclose(found, x.sum(axis=1, dtype=np.float64) + 64, rtol=1e-5, atol=1e-4)


def test_other_accumulations_in_loops():
    x = (RNG.standard_normal((3, 300)) / 50).astype(F32)
    np.testing.assert_allclose(in_a_loop(x, "product", 1.0, True), (x + 1).prod(axis=1), rtol=1e-4)
    integers = RNG.integers(-1000, 1000, (3, 300)).astype(np.int32)
    np.testing.assert_array_equal(in_a_loop(integers, "xor", 0, True), np.bitwise_xor.reduce(integers, axis=1))
    np.testing.assert_array_equal(in_a_loop(integers, "sum", 0, False), integers.sum(axis=1))


def test_maxima_in_loops():
    x = -np.abs(RNG.standard_normal((4, 300))).astype(F32)
    x[1, 200], x[2, 299] = np.nan, np.inf
    found = in_a_loop(x, "maximum", float("-inf"), True, X=4)
    np.testing.assert_array_equal(found, x.max(axis=1))
    # The start takes part; without masks so do the zeros of what is not loaded.
    np.testing.assert_array_equal(in_a_loop(x, "maximum", 3.0, True), np.maximum(x.max(axis=1), F32(3)))
    np.testing.assert_array_equal(in_a_loop(x, "maximum", float("-inf"), False), np.maximum(x.max(axis=1), F32(0)))


@tlx_xdsl.jit
def added(a, b):
    return a + b


@tlx_xdsl.jit
def composed(a_factor, a_term, b_factor, b_term):
    """The function `x -> factor * x + term` of the first, then that of the second: the order matters."""
    return b_factor * a_factor, b_factor * a_term + b_term


@tlx_xdsl.jit
def scanned(x, y, combine: tl.constexpr, reverse: tl.constexpr, R: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, R)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(y + at, tl.associative_scan(tl.load(x + at), 1, combine, reverse=reverse))


@tlx_xdsl.jit
def functions(f, t, y, z, N: tl.constexpr):
    at = tl.arange(0, N)
    factor, term = tl.associative_scan((tl.load(f + at), tl.load(t + at)), 0, composed)
    tl.store(y + at, factor)
    tl.store(z + at, term)


@pytest.mark.parametrize(
    "shape", [(1, 64), (1, 256), (2, 512), (4, 1024), (8, 256)] if volume.is_full() else [(1, 64), (4, 1024)]
)
@pytest.mark.parametrize("reverse", [False, True])
def test_scans_of_long_rows(shape, reverse):
    integers, floats = RNG.integers(-99, 99, shape).astype(np.int32), RNG.standard_normal(shape).astype(F32)
    for x, tolerance in ((integers, 0), (floats, 1e-4)):
        out, turned = np.empty_like(x), x[:, ::-1] if reverse else x
        scanned[(1,)](x, out, combine=added, reverse=reverse, R=shape[0], N=shape[1])
        expected = turned.astype(np.float64).cumsum(axis=1)
        np.testing.assert_allclose(out, expected[:, ::-1] if reverse else expected, rtol=tolerance, atol=tolerance)
    floats[0, 40] = np.nan
    out = np.empty_like(floats)
    scanned[(1,)](floats, out, combine=larger, reverse=False, R=shape[0], N=shape[1])
    np.testing.assert_array_equal(out, np.maximum.accumulate(floats, axis=1))


def test_a_scan_keeps_the_order():
    factors, terms = (RNG.integers(-5, 5, 512).astype(np.int32) for _ in range(2))
    out = [np.empty_like(factors) for _ in range(2)]
    functions[(1,)](factors, terms, *out, N=512)
    product, total = 1, 0
    for at, (factor, term) in enumerate(zip(factors.tolist(), terms.tolist(), strict=True)):
        product, total = wrapped(factor * product), wrapped(factor * total + term)
        assert (out[0][at], out[1][at]) == (product, total)


def wrapped(number):
    """A number in 32 bits."""
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)
