"""Reductions and scans. Sums and products are compared in units of what all the magnitudes together make."""

# covers: tt.reduce

from __future__ import annotations

import numpy as np

from tests.unit.interpreter.oracle.checking import Model, bools, empty, floats, ints, positive, reference, value

F4, F8 = np.float32, np.float64
ROWS, COLUMNS = np.arange(16), np.arange(32)
TILE = np.arange(512).reshape(16, 32)


def distinct(count: int) -> object:
    """Integers in any order, without one twice."""
    return lambda rng: rng.permutation(count).astype("i4") - count // 2


def tied(rng: np.random.Generator) -> np.ndarray:
    """Rows whose least number is there once, and whose greatest one twice."""
    order = rng.permuted(np.tile(np.arange(32), (16, 1)), axis=1)
    return np.where(order == 0, -1, order // 2).astype("f4").ravel()


@reference("named_reductions", x=floats("f4", 512), h=floats("f2", 512), out=empty("f4", 512))
def named_reductions(m: Model, x, h, out) -> None:
    a, b = x[TILE], h[TILE]
    wide, wide_b = a.astype(F8), b.astype(F8)
    m.store("out", COLUMNS, wide.sum(0), ulp=2, near=np.abs(wide).sum(0))
    m.store("out", ROWS, wide.sum(1), ulp=2.5, near=np.abs(wide).sum(1))
    m.store("out", 0, wide.sum(), ulp=4.5, near=np.abs(wide).sum())
    m.store("out", ROWS, a.max(1))
    m.store("out", COLUMNS, b.max(0))
    m.store("out", 0, b.min())
    m.store("out", TILE, a - a.max(1, keepdims=True))
    # A unit of f16 is 2**13 units of f32.
    m.store("out", ROWS, wide_b.sum(1), ulp=2.5 * 2**13, near=np.abs(wide_b).sum(1))
    m.store("out", ROWS, wide_b.sum(1), ulp=2.5, near=np.abs(wide_b).sum(1))
    m.store("out", COLUMNS[None, :], a.min(0, keepdims=True))


@reference("integer_reductions", x=ints("i4", 512), q=ints("i1", 512), u=ints("u2", 512), out=empty("i8", 512))
def integer_reductions(m: Model, x, q, u, out) -> None:
    a, b, c = x[TILE], q[TILE], u[TILE]
    m.store("out", ROWS, a.sum(1, dtype="i4"))
    m.store("out", ROWS, b.sum(1, dtype="i8"))
    m.store("out", ROWS, c.sum(1, dtype="i8"))
    m.store("out", ROWS, b.max(1))
    m.store("out", ROWS, c.min(1))
    m.store("out", ROWS, np.bitwise_xor.reduce(a, 1))
    m.store("out", ROWS, np.bitwise_or.reduce(a, 1))
    m.store("out", ROWS, (a > 0).sum(1))


@reference("places_of_extremes", x=floats("f4", 512), i=distinct(512), out=empty("f4", 16), places=empty("i4", 16))
@reference("places_of_extremes", x=tied, i=distinct(512), out=empty("f4", 16), places=empty("i4", 16))
def places_of_extremes(m: Model, x, i, out, places) -> None:
    # Where ties are broken to the left, the first of equal ones; there are none where they may be broken anyhow.
    a, b = x[TILE], i[TILE]
    m.store("places", ROWS, a.argmax(1))
    m.store("places", ROWS, a.argmin(1))
    m.store("places", ROWS, b.argmax(1))
    m.store("out", ROWS, a.max(1) + b.min(1).astype(F4))
    m.store("places", ROWS, a.argmax(1) + b.argmin(1))


@reference("own_reductions", x=positive("f4", 512, 0.9, 1.1), i=ints("i4", 512, 0, 9), out=empty("f4", 16))
@reference(
    "own_reductions", x=lambda rng: rng.choice([0.5, 1.0, 2.0], 512).astype("f4"), i=ints("i4", 512, 0, 4),
    out=empty("f4", 16),
)  # fmt: skip
def own_reductions(m: Model, x, i, out) -> None:
    a, wide = x[TILE], x[TILE].astype(F8)
    m.store("out", ROWS, wide.prod(1), ulp=16)
    m.store("out", 0, wide.prod(), ulp=256)
    m.store("out", ROWS, a.max(1) + a.argmax(1).astype(F4))
    m.store("out", ROWS[:, None], np.minimum(i[TILE].sum(1, keepdims=True), 100))
    m.store("out", 0, wide.sum(1).prod(), ulp=64)


@reference("scans", x=positive("f4", 512, 0.8, 1.25), i=ints("i1", 512), out=empty("f4", 512))
def scans(m: Model, x, i, out) -> None:
    wide, b = x[TILE].astype(F8), i[TILE]
    m.store("out", TILE, wide.cumsum(0), ulp=3)
    m.store("out", TILE, wide[:, ::-1].cumsum(1)[:, ::-1], ulp=3)
    m.store("out", TILE, wide.cumprod(1), ulp=16)
    m.store("out", TILE, b.cumsum(1, dtype="i8"))
    m.store("out", TILE, b.cumsum(1, dtype="i8"))


@reference("own_scans", x=positive("f4", 512, 0.8, 1.25), out=empty("f4", 512))
def own_scans(m: Model, x, out) -> None:
    wide = x[TILE].astype(F8)
    m.store("out", TILE, wide.cumprod(1), ulp=16)
    scale, shift = wide.copy(), wide + 1
    for row in range(14, -1, -1):
        scale[row], shift[row] = scale[row + 1] * wide[row], shift[row + 1] * wide[row] + wide[row] + 1
    m.store("out", TILE, scale * shift, ulp=16)


@reference("normalised_rows", grid=(3, 1, 1), x=floats("f4", 1000), out=empty("f4", 1000), rows=value(7),
           columns=value(100), stride=value(120))  # fmt: skip
def normalised_rows(m: Model, x, out, rows, columns, stride) -> None:
    index = np.arange(128)
    for row in range(m.pid[0], rows, m.grid[0]):
        a = x[row * stride + np.arange(columns)].astype(F8)
        centred = a - a.mean()
        result = np.zeros(128)
        result[:columns] = centred / np.sqrt((centred**2).sum() / columns + 1e-5)
        m.store("out", row * stride + index, result, index < columns, ulp=4, near=np.full(128, 2.0))


# Every type ----------------------------------------------------------------------------------------------------------


@reference("half_reductions", x=positive("f2", 512, 0.9, 1.1), out=empty("f4", 512))
@reference("brain_reductions", x=positive("bf16", 512, 0.9, 1.1), out=empty("f4", 512))
@reference("double_reductions", x=positive("f8", 512, 0.9, 1.1), out=empty("f8", 512))
def float_reductions(m: Model, x, out) -> None:
    a, wide = x[TILE], x[TILE].astype(F8)
    # How many units of the result one unit of the type is.
    ratio = {"float16": 2**13, "bfloat16": 2**16, "float64": 1}[a.dtype.name]
    low, high = wide.argmin(1), wide.argmax(1)
    # Ties are broken to the left for argmax, and anyhow for argmin.
    m.store("out", ROWS, wide.sum(1) + wide.prod(1), ulp=6 * ratio)
    m.store("out", ROWS, wide.max(1) - wide.min(1))
    lowest = _found(wide, low)
    m.store("out", ROWS, high + lowest)
    # With its place, the extremum of bf16 is taken in f32.
    kind = F4 if ratio > 2**13 else a.dtype
    m.store("out", ROWS, wide.min(1).astype(kind) + low.astype(kind))
    m.store("out", ROWS[:, None], wide.max(1, keepdims=True))
    m.store("out", TILE, wide.cumsum(1) + wide.cumprod(1), ulp=8 * ratio)
    m.store("out", TILE, wide.cumprod(1), ulp=16 * (2**29 if a.dtype == F8 else 1))


def _found(wide: np.ndarray, low: np.ndarray) -> np.ndarray:
    """The place that is found where ties are broken anyhow: neighbours first, of equal ones the right one."""
    values, places = wide, np.broadcast_to(COLUMNS, wide.shape)
    while values.shape[1] > 1:
        keep = values[:, 0::2] < values[:, 1::2]
        places = np.where(keep, places[:, 0::2], places[:, 1::2])
        values = np.where(keep, values[:, 0::2], values[:, 1::2])
    assert (np.take_along_axis(wide, places, 1)[:, 0] == np.take_along_axis(wide, low[:, None], 1)[:, 0]).all()
    return places[:, 0]


@reference("signed_byte_reductions", x=ints("i1", 512), out=empty("i8", 512))
@reference("unsigned_short_reductions", x=ints("u2", 512), out=empty("i8", 512))
@reference("unsigned_word_reductions", x=ints("u4", 512), out=empty("i8", 512))
@reference("long_reductions", x=ints("i8", 512), out=empty("i8", 512))
@reference("bool_reductions", x=bools(512), out=empty("i8", 512))
def integer_reductions_of_a_type(m: Model, x, out) -> None:
    a = x[TILE]
    sums = np.dtype({"b": "i4", "i": "i4", "u": "u4"}[a.dtype.kind] if a.dtype.itemsize < 4 else a.dtype)
    m.store("out", ROWS, a.sum(1, dtype=sums))
    m.store("out", ROWS, a.astype("i1").sum(1, dtype="i1"))
    m.store("out", ROWS, a.max(1))
    m.store("out", ROWS, a.min(1))
    m.store("out", ROWS, a.argmin(1))
    m.store("out", ROWS, np.bitwise_xor.reduce(a, 1))
    m.store("out", 0, np.bitwise_or.reduce(a, None))
    m.store("out", TILE, a.cumsum(1, dtype=sums))


@reference("cubes", x=floats("f4", 512), out=empty("f4", 512))
def cubes(m: Model, x, out) -> None:
    a, wide = x.reshape(4, 8, 16), x.reshape(4, 8, 16).astype(F8)
    i, j, k = np.arange(4), np.arange(8), np.arange(16)
    plane = j[:, None] * 16 + k
    m.store("out", i[:, None] * 16 + k, a.max(1) + a.argmax(1).astype(F4))
    m.store("out", i[:, None] * 8 + j, a.argmin(2))
    m.store("out", np.zeros((1, 1, 1), int), wide.sum(), ulp=6, near=np.abs(wide).sum())
    places = np.take_along_axis((a > 0).astype("i4"), a.argmax(0)[None], 0)[0]
    m.store("out", plane[None], (a.max(0) + places + wide.sum(0))[None], ulp=4, near=np.abs(wide).sum(0)[None] + 5)
    cumulative = wide[:, ::-1].cumsum(1)[:, ::-1]
    near = np.abs(wide)[:, ::-1].cumsum(1)[:, ::-1]
    m.store("out", i[:, None, None] * 128 + plane, cumulative, ulp=3, near=near)
    m.store("out", 0, wide.sum(), ulp=6, near=np.abs(wide).sum())


@reference("combining_functions", x=floats("f4", 600), out=empty("f4", 512), n=value(3))
def combining_functions(m: Model, x, out, n) -> None:
    a = x[:512].reshape(4, 8, 16)

    def nested(p: np.ndarray, q: np.ndarray) -> np.ndarray:
        return (np.maximum(p, q) + F4(1)) * F4(2)

    # The function is not associative; neighbours are combined first.
    m.store("out", np.arange(128).reshape(8, 16), nested(nested(a[0], a[1]), nested(a[2], a[3])))
    m.store("out", 0, a.max())
    total, size = np.zeros((4, 16)), np.zeros((4, 16))
    for step in range(n):
        cube = x[step : step + 512].reshape(4, 8, 16).astype(F8)
        total = (total + cube.sum(1)) * cube.max(1)
        size = (size + np.abs(cube).sum(1)) * np.abs(cube.max(1))
    m.store("out", np.arange(4)[:, None] * 16 + np.arange(16), total, ulp=16, near=size)
