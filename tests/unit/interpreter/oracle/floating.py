"""Floats: arithmetic, comparisons, casts and roundings, promotion."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.unit.interpreter.oracle.checking import (
    Model,
    bools,
    dtype,
    empty,
    floats,
    ints,
    positive,
    reference,
    special,
    value,
)  # fmt: skip
from tests.unit.interpreter.oracle.integers import LANES, nonzero, put, quotient, remainder

F2, F4, F8 = np.float16, np.float32, np.float64
BF = ml_dtypes.bfloat16


@reference(
    "float_arithmetic",
    x=special("f2", 32), y=special("bf16", 32), z=special("f4", 32), w=special("f8", 32), out=empty("f8", 300),
)  # fmt: skip
@reference(
    "float_arithmetic",
    x=floats("f2", 32), y=floats("bf16", 32), z=floats("f4", 32), w=floats("f8", 32), out=empty("f8", 300),
)  # fmt: skip
def float_arithmetic(m: Model, x, y, z, w, out) -> None:
    put(m, 0, x + y.astype(F4).astype(F2))
    put(m, 1, y.astype(F4) - z)
    put(m, 2, z.astype(F8) * w)
    put(m, 3, x.astype(F4) / y.astype(F4))
    put(m, 4, np.fmod(z.astype(F8), w))
    put(m, 5, (x * x).astype(F4) - x.astype(F4) / x.astype(F4))
    put(m, 6, y * y)
    put(m, 7, -x)
    put(m, 8, -w + z.astype(F8))


@reference(
    "integers_meet_floats",
    x=ints("i4", 32), y=floats("f2", 32), z=nonzero("i8"), w=ints("u1", 32, 1), b=bools(32), out=empty("f4", 300),
)  # fmt: skip
def integers_meet_floats(m: Model, x, y, z, w, b, out) -> None:
    put(m, 0, x.astype(F2) + y)
    put(m, 1, y * z.astype(F2))
    put(m, 2, w.astype(F4) / y.astype(F4))
    put(m, 3, 1.0)
    put(m, 4, b.astype(F2) + y)
    put(m, 5, x + b)
    put(m, 6, b)
    put(m, 7, y.astype(F4) / F4(3))
    put(m, 8, 1.0)


@reference(
    "python_numbers", x=floats("f2", 32), y=nonzero("i1"), z=floats("bf16", 32), w=ints("u2", 32), out=empty("f4", 400)
)
def python_numbers(m: Model, x, y, z, w, out) -> None:
    put(m, 0, x + F2(1))
    put(m, 1, F2(2.5) - x)
    put(m, 2, y * np.int8(3))
    put(m, 3, y.astype(F4) + F4(2.5))
    put(m, 4, F4(1) / z.astype(F4))
    put(m, 5, np.int8(100) + y)
    put(m, 6, (quotient(np.full(32, 7), y) + remainder(y, np.full(32, 7))).astype("i1"))
    put(m, 7, w - np.uint16(1))
    put(m, 8, np.array(1.0e30).astype(BF) * z)
    put(m, 9, w + np.uint16(1))
    put(m, 10, np.uint16(3) - w)


@reference(
    "scalars_and_blocks",
    n=value(-12345), m=value(1 << 40), u=value(4_000_000_000), f=value(0.1), h=value(-2.7), out=empty("f8", 600),
)  # fmt: skip
def scalars_and_blocks(m_: Model, n, m, u, f, h, out) -> None:
    f, h, index = F4(f), F2(h), np.arange(32)
    put(m_, 0, index + n)
    put(m_, 1, index * m)
    put(m_, 2, (index + u) % 2**32)
    put(m_, 3, index.astype(F4) * f)
    put(m_, 4, index.astype(F2) * h)
    put(m_, 5, index.astype(F4) * f)
    m_.store("out", 500, n + m)
    m_.store("out", 501, n * u % 2**32)
    m_.store("out", 502, f + F4(h))
    m_.store("out", 503, F4(n) * f)
    m_.store("out", 504, F4(n) / F4(2))
    m_.store("out", 505, -(-n // 2) - (-n % 3))
    m_.store("out", 506, 2147483647 + n)
    m_.store("out", 507, F2(0.1) + h)
    m_.store("out", 508, 2147483648 * u % 2**32)


@reference("comparisons", x=ints("i2", 32, -5, 5), y=ints("u4", 32, 0, 9), z=special("f4", 32), w=special("bf16", 32),
           out=lambda _rng: np.zeros(400, np.bool_))  # fmt: skip
def comparisons(m: Model, x, y, z, w, out) -> None:
    wide = w.astype(F4)
    put(m, 0, x < 3)
    put(m, 1, True)
    put(m, 2, y > 3)
    put(m, 3, True)
    put(m, 4, z == wide)
    put(m, 5, z != 1.0)
    put(m, 6, z < wide)
    put(m, 7, z >= 1)
    put(m, 8, x.astype("i4").view("u4") > y)
    put(m, 9, wide >= x.astype(F4))
    put(m, 10, x.astype("i4").view("u4") == y)


@reference("logic_of_blocks", x=ints("i4", 32, -3, 8), z=special("f4", 32), out=lambda _rng: np.zeros(300, np.bool_))
def logic(m: Model, x, z, out) -> None:
    put(m, 0, (x > 1) & (z < 2))
    put(m, 1, (x > 1) | (z < 2))
    put(m, 2, (x > 1) & (z < 2))
    put(m, 3, (x > 1) | (z < 2))
    put(m, 4, x <= 1)
    put(m, 5, (x > 1) & (x < 5))
    put(m, 6, (x == 0) | (z == 0))
    put(m, 7, (x > 1) ^ (z < 2))


@reference("augmented", x=floats("f4", 32), y=ints("i4", 32), out=empty("f4", 32), n=value(11))
def augmented(m: Model, x, y, out, n) -> None:
    a = (x + F4(1) - F4(n)) * F4(2) / F4(3)
    b = remainder(quotient(y, np.full(32, 3)), np.full(32, 7)) * 2 >> 2
    put(m, 0, a + (((b & 255) | 1) ^ n).astype(F4))


@reference("broadcasting", x=floats("f4", 16), y=floats("f4", 32), i=ints("i4", 32, -3, 3), out=empty("f4", 2048))
def broadcasting(m: Model, x, y, i, out) -> None:
    a, b, index = x[:, None], y[None, :], np.arange(512).reshape(16, 32)
    m.store("out", index, a * b)
    m.store("out", 512 + index, (a + b) * i.astype(F4) + x[0])
    m.store("out", 1024 + index, np.where(i > 0, a, b))
    m.store("out", 1536 + index, a)


@reference("small_floats", x=special("e5m2", 32), y=special("e4m3", 32), z=floats("f2", 32), out=empty("f4", 128))
def small_floats(m: Model, x, y, z, out) -> None:
    put(m, 0, x.astype(F4) + y.astype(F4))
    put(m, 1, x.astype(F2) * z)
    put(m, 2, x)
    put(m, 3, y.astype(F2) + z)


# Casts ---------------------------------------------------------------------------------------------------------------


def narrowed(values: np.ndarray, name: str) -> np.ndarray:
    """The nearest number of a type, ties to even; by exact comparison of the neighbours, in f64 or wider."""
    kind = dtype(name)
    candidates = np.arange(1 << 8 * min(kind.itemsize, 2)).astype(f"u{kind.itemsize}").view(kind)
    numbers = candidates[np.isfinite(candidates.astype(F8)) & ~np.signbit(candidates.astype(F8))]
    wide = values.astype(F8)
    at = np.clip(np.searchsorted(numbers.astype(F8), np.abs(wide)), 1, len(numbers) - 1)
    low, high = numbers[at - 1].astype(F8), numbers[at].astype(F8)
    down, up = np.abs(wide) - low, high - np.abs(wide)
    odd = (at - 1) % 2 == 1
    magnitude = np.where((down < up) | ((down == up) & ~odd), low, high)
    # Half a unit after the largest number begins infinity.
    limit = numbers[-1].astype(F8) + (numbers[-1].astype(F8) - numbers[-2].astype(F8)) / 2
    magnitude = np.where(np.abs(wide) >= limit, np.inf, magnitude)
    return np.copysign(np.where(np.isnan(wide), np.nan, magnitude), wide)


@reference(
    "integers_to_floats",
    x=ints("i1", 32), y=ints("i8", 32), z=ints("u4", 32), w=bools(32), out=empty("f8", 4000),
)  # fmt: skip
@reference(
    "integers_to_floats",
    x=ints("i1", 32), y=ints("i8", 32, -70000, 70000), z=ints("u4", 32, 0, 70000), w=bools(32), out=empty("f8", 4000),
)  # fmt: skip
def integers_to_floats(m: Model, x, y, z, w, out) -> None:
    for base, a in ((0, x), (1000, y), (2000, z), (3000, w)):
        m.store("out", base + LANES, narrowed(a, "f2"))
        m.store("out", base + 32 + LANES, narrowed(a, "bf16"))
        m.store("out", base + 64 + LANES, a.astype(F4))
        m.store("out", base + 96 + LANES, a.astype(F8))


@reference(
    "between_floats",
    x=special("f2", 32), y=special("bf16", 32), z=special("f4", 32), w=special("f8", 32), out=empty("f8", 4000),
)  # fmt: skip
@reference(
    "between_floats",
    x=floats("f2", 32), y=floats("bf16", 32), z=floats("f4", 32), w=floats("f8", 32, 1e-5), out=empty("f8", 4000),
)  # fmt: skip
def between_floats(m: Model, x, y, z, w, out) -> None:
    for base, a in ((0, x), (1000, y), (2000, z), (3000, w)):
        m.store("out", base + LANES, narrowed(a, "f2"))
        m.store("out", base + 32 + LANES, narrowed(a, "bf16"))
        m.store("out", base + 64 + LANES, a.astype(F4))
        m.store("out", base + 96 + LANES, a.astype(F8))


def whole(values: np.ndarray, name: str) -> np.ndarray:
    """Rounded towards zero; out of range the nearest integer (PTX ISA, "cvt"); 8 bits are those of 16.

    NaN is 0, or where f64 or 64 bits take part the highest bit.
    """
    limits = np.iinfo(name if name[1] != "1" else f"{name[0]}2")
    highest_bit = limits.min or 1 << limits.bits - 1

    def one(x: float) -> int:
        if np.isnan(x):
            return highest_bit if values.dtype == np.float64 or limits.bits == 64 else 0
        return limits.max if x >= limits.max else limits.min if x <= limits.min else int(x)

    return np.array([one(float(x)) for x in values], object).astype(limits.dtype).astype(name)


@reference(
    "floats_to_integers",
    x=special("f2", 32), y=special("bf16", 32), z=special("f4", 32), w=special("f8", 32), out=empty("i8", 4000),
)  # fmt: skip
@reference(
    "floats_to_integers",
    x=floats("f2", 32, 99), y=floats("bf16", 32, 99), z=floats("f4", 32, 1e5), w=floats("f8", 32, 1e10),
    out=empty("i8", 4000),
)  # fmt: skip
def floats_to_integers(m: Model, x, y, z, w, out) -> None:
    for base, a in ((0, x), (1000, y), (2000, z), (3000, w)):
        for row, name in enumerate(("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")):
            m.store("out", base + row * 32 + LANES, whole(a, name).astype("i8"))
        m.store("out", base + 256 + LANES, a.astype(F8) != 0)


def towards_zero(values: np.ndarray, name: str) -> np.ndarray:
    """The next number of a type towards zero; infinities and NaN stay."""
    kind = dtype(name)
    candidates = np.arange(1 << 8 * kind.itemsize).astype(f"u{kind.itemsize}").view(kind).astype(F8)
    numbers = candidates[np.isfinite(candidates) & ~np.signbit(candidates)]
    wide = values.astype(F8)
    at = np.searchsorted(numbers, np.abs(wide), "right") - 1
    return np.copysign(np.where(np.isfinite(wide), numbers[at], wide), wide)


def saturated(values: np.ndarray, name: str) -> np.ndarray:
    """The nearest number of an 8-bit type, of which the largest finite one is the limit."""
    limit = float(ml_dtypes.finfo(dtype(name)).max)
    return np.clip(narrowed(np.clip(values.astype(F8), -limit, limit), name), -limit, limit)


@reference(
    "eight_bit_floats",
    x=special("f4", 32), h=special("f2", 32), q=special("e4m3", 32), out=empty("e5m2", 128), wide=empty("f4", 64),
)  # fmt: skip
@reference(
    "eight_bit_floats",
    x=floats("f4", 32), h=floats("f2", 32), q=special("e4m3", 32), out=empty("e5m2", 128), wide=empty("f4", 64),
)  # fmt: skip
def eight_bit_floats(m: Model, x, h, q, out, wide) -> None:
    m.store("out", LANES, saturated(x, "e5m2"))
    m.store("out", 32 + LANES, towards_zero(x, "e5m2"))
    m.store("out", 64 + LANES, saturated(h, "e5m2"))
    m.store("out", 96 + LANES, saturated(q, "e5m2"))
    m.store("wide", LANES, q)
    m.store("wide", 32 + LANES, saturated(x, "e4m3"))


@reference("roundings", x=special("f4", 32), out=empty("f2", 128))
@reference("roundings", x=floats("f4", 32, 1e-4), out=empty("f2", 128))
def roundings(m: Model, x, out) -> None:
    m.store("out", LANES, narrowed(x, "f2"))
    m.store("out", 32 + LANES, towards_zero(x, "f2"))
    m.store("out", 64 + LANES, narrowed(towards_zero(x, "bf16"), "f2"))
    m.store("out", 96 + LANES, narrowed(x, "f2"))


@reference("bit_casts", x=special("f4", 32), h=special("f2", 32), n=value(0x400921FB54442D18), out=empty("i4", 160),
           q=ints("i1", 32))  # fmt: skip
def bit_casts(m: Model, x, h, n, out, q) -> None:
    raw = x.view("i4")
    m.store("out", LANES, raw ^ 1)
    m.store("out", 32 + LANES, h.view("i2"))
    m.store("out", 64 + LANES, (raw.view("u4") >> 1).astype("i4"))
    m.store("out", 96 + LANES, x > 0)
    m.store("out", 128 + LANES, q.view(ml_dtypes.float8_e5m2).astype(F4) > 0)
    m.store("x", 0, np.pi)


@reference("scalar_casts", n=value(1000), u=value(2**64 - 5), f=value(-7.9), d=value(1e300), out=empty("f8", 6))
@reference("scalar_casts", n=value(-129), u=value(12345), f=value(3e9), d=value(0.1), out=empty("f8", 6))
def scalar_casts(m: Model, n, u, f, d, out) -> None:
    f = F4(f)
    m.store("out", 0, F4(np.array(n).astype("i1")) + F4(F2(u)))
    m.store("out", 1, F4(whole([f], "i4")[0]) + F4(d))
    m.store("out", 2, 3 + n)
    m.store("out", 3, F4(0.5) * f)
    m.store("out", 4, 2)
    m.store("out", 5, 8.5)


@reference("selection", x=special("f4", 64), out=empty("f4", 64), n=value(3))
@reference("selection", x=floats("f4", 64), out=empty("f4", 64), n=value(40))
def selection(m: Model, x, out, n) -> None:
    index = np.arange(64)
    b = np.where(index < n, x, F4(0))
    c = x if n > 3 else b
    d = np.where(index % 2 == 0, 1, -1)
    m.store("out", index, lesser(b, c) + np.maximum(d, n).astype(F4))
    m.store("out", index, np.where(np.isnan(x) | np.isnan(b), np.nan, lesser(x, b)))
    m.store("out", index, np.where(np.isnan(x), np.nan, greater(x, F4(0))))
    first = lesser(greater(x, F4(0)), F4(1))
    second = np.where(np.isnan(b), np.nan, lesser(greater(b, F4(-n)), F4(n))).astype(F4)
    m.store("out", index, first + second)
    m.store("out", 0, min(n, 5) + max(n, 0))
    m.store("out", 1, 2.0)


def lesser(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The lesser number: a NaN is none, and -0 is below 0 (PTX ISA, "min")."""
    below = (a < b) | ((a == b) & np.signbit(a)) | np.isnan(b)
    return np.where(below, a, b)


def greater(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The greater number."""
    return -lesser(-a, -b)


@reference("converting_stores", a=empty("i1", 32), b=empty("bf16", 32), c=empty("i8", 32), d=empty("e5m2", 32),
           x=special("f4", 32), n=value(-77))  # fmt: skip
def converting_stores(m: Model, a, b, c, d, x, n) -> None:
    m.store("a", LANES, LANES)
    m.store("b", LANES, narrowed(x, "bf16"))
    m.store("c", LANES, whole(x, "i8"))
    m.store("c", LANES, LANES)
    m.store("d", LANES, saturated(x, "e5m2"))
    m.store("b", 0, n)
    m.store("a", 0, 3)
    m.store("b", LANES, 0.5)
    m.store("c", 0, n)


@reference("newton", x=positive("f4", 1), out=empty("f4", 2), n=value(9), eps=value(1e-4))
def newton(m: Model, x, out, n, eps) -> None:
    target = guess = x[0]
    left = n
    while left > 0:
        following = F4(0.5) * (guess + target / guess)
        difference, guess = guess - following, following
        left = left - 1 if difference > F4(eps) else 0
    m.store("out", 0, guess)
    m.store("out", 1, left)
