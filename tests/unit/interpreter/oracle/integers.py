"""Integers: arithmetic, bits, comparisons, casts, promotion."""

from __future__ import annotations

import numpy as np

from tests.unit.interpreter.oracle.checking import Model, bools, empty, ints, reference

LANES = np.arange(32)


def quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Rounded towards zero, by way of Python's integers."""
    return np.array([abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a, b, strict=True)])


def remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the remainder with the sign of the dividend."""
    return np.array([int(x) - int(q) * int(y) for x, y, q in zip(a, b, quotient(a, b), strict=True)])


def put(m: Model, position: int, values: object, **options: float) -> None:
    """The helper `_put` of the kernels: a row of 32."""
    m.store("out", position * 32 + LANES, values, **options)


def nonzero(name: str) -> object:
    """Numbers that one can divide by, and that overflow no division."""

    def make(rng: np.random.Generator) -> np.ndarray:
        limits = np.iinfo(name)
        values = rng.integers(limits.min, limits.max, 32, name, endpoint=True)
        return np.where((values == 0) | (values == -1), np.array(7, name), values)

    return make


@reference(
    "signed_arithmetic",
    x=nonzero("i1"), y=nonzero("i2"), z=nonzero("i4"), w=nonzero("i8"), out=empty("i8", 300),
)  # fmt: skip
@reference(
    "unsigned_arithmetic",
    x=nonzero("u1"), y=nonzero("u2"), z=nonzero("u4"), w=nonzero("u8"), out=empty("i8", 300),
)  # fmt: skip
def arithmetic(m: Model, x: np.ndarray, y: np.ndarray, z: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
    put(m, 0, x.astype(y.dtype) + y)
    put(m, 1, y.astype(z.dtype) - z)
    put(m, 2, z.astype(w.dtype) * w)
    put(m, 3, quotient(x, y))
    put(m, 4, remainder(w, z).astype(w.dtype))
    put(m, 5, x * x + x - x)
    put(m, 6, np.ones(32))


@reference(
    "mixed_signedness",
    x=ints("i1", 32), y=ints("u1", 32), z=ints("i4", 32), w=ints("u4", 32), v=ints("u8", 32), out=empty("i8", 300),
)  # fmt: skip
def mixed(m: Model, x, y, z, w, v, out) -> None:
    put(m, 0, x.view("u1") + y)
    put(m, 1, z + y.astype("i4"))
    put(m, 2, z.view("u4") * w)
    put(m, 3, x.astype("i8").view("u8") - v)
    put(m, 4, x.view("u1") < y)
    put(m, 5, z.view("u4") > w)
    put(m, 6, (y & x.view("u1")).astype("u4") | (z.view("u4") ^ w))


@reference(
    "bits", x=ints("i1", 32), y=ints("u2", 32), z=ints("i4", 32, 0, 31), w=ints("u8", 32, 0, 31), out=empty("i8", 400)
)
def bits(m: Model, x, y, z, w, out) -> None:
    put(m, 0, x)
    put(m, 1, 0)
    put(m, 2, ~z)
    put(m, 3, ~w)
    put(m, 4, x << np.int8(2))
    put(m, 5, z >> 3)
    put(m, 6, w >> np.uint64(3))
    put(m, 7, y.astype("i4") >> z)
    put(m, 8, np.int32(1) << z)
    put(m, 9, x & 15)
    put(m, 10, z.astype("u8") << w)


@reference("bits", x=ints("i1", 32), y=ints("u2", 32), z=ints("i4", 32), w=ints("u8", 32), out=empty("i8", 400))
def shifts_past_the_width(m: Model, x, y, z, w, out) -> None:
    # As PTX does: all bits are shifted out.
    put(m, 0, x)
    put(m, 1, 0)
    put(m, 2, ~z)
    put(m, 3, ~w)
    put(m, 4, x << np.int8(2))
    put(m, 5, z >> 3)
    put(m, 6, w >> np.uint64(3))
    amount = z.view("u4").astype(object)
    put(m, 7, [int(a) >> int(min(n, 40)) for a, n in zip(y, amount, strict=True)])
    put(m, 8, np.array([(1 << n) if n < 32 else 0 for n in amount]).astype("i4"))
    put(m, 9, x & 15)
    put(m, 10, 0)


@reference(
    "between_integers",
    x=ints("i1", 32), y=ints("i8", 32), z=ints("u4", 32), w=bools(32), out=empty("i8", 4000),
)  # fmt: skip
def between_integers(m: Model, x, y, z, w, out) -> None:
    for base, a in ((0, x), (1000, y), (2000, z), (3000, w)):
        for row, name in enumerate(("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")):
            m.store("out", base + row * 32 + LANES, a.astype(name).astype("i8"))
        m.store("out", base + 256 + LANES, a != 0)


@reference("digit_sums", x=ints("i4", 50, 0, 2**31 - 1), out=empty("i4", 50), n=lambda _rng: 50)
def digit_sums(m: Model, x, out, n) -> None:
    for i in range(n):
        m.store("out", i, sum(map(int, str(x[i]))))


@reference("mapped_functions", x=ints("i4", 64, -1000, 1000), out=empty("i4", 64))
def collatz(m: Model, x, out) -> None:
    # Remainders of negative numbers are negative, so no odd negative number is even by mistake.
    m.store("out", np.arange(64), np.where(x % 2 == 0, quotient(x, np.full(64, 2)), 3 * x + 1))


@reference("early_return_of_values", x=ints("i4", 1, -50, 50), out=empty("i4", 2), low=lambda _: -10, high=lambda _: 10)
@reference("early_return_of_values", x=lambda _: np.array([-30], "i4"), out=empty("i4", 2), low=lambda _: -10,
           high=lambda _: 10)  # fmt: skip
@reference("early_return_of_values", x=lambda _: np.array([3], "i4"), out=empty("i4", 2), low=lambda _: -10,
           high=lambda _: 10)  # fmt: skip
def clipped(m: Model, x, out, low, high) -> None:
    m.store("out", 0, np.clip(x[0], low, high))
    m.store("out", 1, -high if x[0] < 0 else high)


@reference("while_in_while", out=empty("i4", 2), n=lambda _: 1000, limit=lambda _: 9)
def while_in_while(m: Model, out, n, limit) -> None:
    a, count = n, 0
    while a > 1 and count < limit:
        b = a
        while b > count:
            b -= 3
        count += 1
        a = b + (abs(a) // 2 if a >= 0 else -(abs(a) // 2))
    m.store("out", 0, count)
    m.store("out", 1, a)


@reference("loop_index_types", out=empty("i8", 1), low=lambda _: -5, high=lambda _: 100, first=lambda _: 17,
           last=lambda _: 50)  # fmt: skip
def loop_index_types(m: Model, out, low, high, first, last) -> None:
    m.store("out", 0, sum(range(low, high)) + sum(range(first)) + sum(range(0, last, 3)))
