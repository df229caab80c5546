"""Mathematical functions, against f64 and against exact fractions."""

# covers: tl.math

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tests.unit.interpreter.oracle.checking import Model, empty, floats, ints, positive, reference, special, value
from tests.unit.interpreter.oracle.integers import LANES

F2, F4, F8 = np.float16, np.float32, np.float64
I64 = np.arange(64)
SINGLE = 2**29
"""Units of f64 in a unit of f32."""

erf = np.vectorize(math.erf)


@reference("functions", x=positive("f4", 32), d=positive("f8", 32), out=empty("f8", 32))
def functions(m: Model, x, d, out) -> None:
    a, b = x.astype(F8), d

    def put(parts: list[np.ndarray], unit: int = 1) -> None:
        # Each function may be off by half a unit, and so may each sum.
        m.store("out", LANES, sum(parts), ulp=len(parts) * unit, near=sum(map(np.abs, parts)))

    put([np.exp(a), 2**a, np.log(a), np.log2(a)], SINGLE)
    put([np.sin(a), np.cos(a), np.sqrt(a), 1 / np.sqrt(a)], SINGLE)
    put([erf(a), np.floor(a), np.ceil(a), np.abs(a)], SINGLE)
    put([np.exp(b), np.log(b), np.sin(b), np.floor(b)])
    put([np.sqrt(b), 1 / np.sqrt(b), erf(b), np.abs(b)], 4)
    put([np.exp(a), np.log2(a), np.abs(a), np.floor(a), np.ceil(a), np.sqrt(a)], SINGLE)


def fused(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c, rounded once to f32."""
    return np.array([_nearest(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)))
                     for x, y, z in zip(a, b, c, strict=True)])  # fmt: skip


def _nearest(exact: Fraction) -> np.float32:
    near = F4(float(exact))
    candidates = [near, np.nextafter(near, F4(np.inf)), np.nextafter(near, F4(-np.inf))]
    return min(candidates, key=lambda x: (abs(Fraction(float(x)) - exact), int(x.view("u4")) & 1))


@reference("exact_functions", x=positive("f4", 32), y=positive("f4", 32), i=ints("i4", 32), u=ints("u8", 32),
           n=value(-123456789), f=value(0.5), out=empty("f4", 32))  # fmt: skip
def exact_functions(m: Model, x, y, i, u, n, f, out) -> None:
    m.store("out", LANES, x / y + x / F4(3))
    m.store("out", LANES, x / y + np.sqrt(x))
    m.store("out", LANES, fused(x, y, x) + fused(x, np.full(32, F4(2)), np.full(32, F4(f))))
    m.store("out", LANES, [int(j) * 12345 >> 32 for j in i.view("u4")])
    m.store("out", LANES, np.array([int(k) * int(k) >> 64 for k in u], "u8").astype(F4))
    m.store("out", LANES, (np.abs(i).astype("u8") + u).astype(F4))
    high = int(np.array((n % 2**32) ** 2 >> 32, "u8").astype("u4").view("i4"))
    m.store("out", 0, F4(np.exp(F8(f))) + F4(abs(n)) + F4(high), ulp=1)


@reference("gelu", grid=(3, 1, 1), x=floats("f4", 700), b=floats("f4", 64), out=empty("f4", 768), n=value(700),
           p=value(0.25), seed=value(17))  # fmt: skip
def gelu(m: Model, x, b, out, n, p, seed) -> None:
    index = m.pid[0] * 256 + np.arange(256)
    inside, p = index < n, F4(p)
    a = (x[np.minimum(index, 699)] + b[index % 64]).astype(F8)
    growth = np.exp(2 * (a + 0.044715 * a**3))
    gated = 0.5 * a * (1 + growth / (growth + 1))
    kept = ((index * 7 + seed) % 100).astype(F4) > p * F4(100)
    m.store("out", index, np.where(kept, gated / (1 - p), 0.0), inside, ulp=16)


# The library, which is written over primitives -----------------------------------------------------------------------


def bitonic(rng: np.random.Generator) -> np.ndarray:
    """Numbers of all magnitudes, infinities among them, of which the first 32 rise and then fall."""
    x = special("f4", 256)(rng)
    # Zeros of both signs are equal: any order of them is sorted.
    x[np.isnan(x) | (x == 0)] = 0
    rng.shuffle(x)
    x[:16], x[16:32] = np.sort(x[:16]), np.sort(x[16:32])[::-1]
    return x


@reference("sorting", x=bitonic, i=ints("i4", 32), out=empty("f4", 256))
def sorting(m: Model, x, i, out) -> None:
    index = np.arange(256).reshape(8, 32)
    a = x[index]
    m.store("out", index, np.sort(a, 1))
    m.store("out", index, np.sort(a, 1)[:, ::-1])
    m.store("out", LANES, np.sort(i))
    m.store("out", np.arange(8), np.sort(x[:32])[:-9:-1])
    m.store("out", LANES, np.sort(x[:32]))


@reference("flips_and_swizzles", grid=(4, 6, 1), x=floats("f4", 256), out=empty("f4", 400))
def flips_and_swizzles(m: Model, x, out) -> None:
    index = np.arange(256).reshape(8, 32)
    a, wide = x[index], x[index].astype(F8)
    m.store("out", index, a[:, ::-1])
    m.store("out", index, a[::-1])
    for axis in (0, 1):
        power = np.exp(wide - wide.max(axis, keepdims=True))
        m.store("out", index, power / power.sum(axis, keepdims=True), ulp=6)
    # Groups of 4 rows, column by column; here there is one group.
    place = m.pid[0] * m.grid[1] + m.pid[1]
    m.store("out", place % 4 * 32 + place // 4, 1.0)


@reference("small_helpers", x=positive("f4", 64, 0.01, 0.99), out=empty("f4", 64), n=value(7))
def small_helpers(m: Model, x, out, n) -> None:
    wide = x.astype(F8)
    m.store("out", I64, 2 / (1 + np.exp(-wide)), ulp=3)
    m.store("out", I64, -(-I64 // 3) + -(-n // 4) + -(-I64 // n))
    m.store("out", I64, I64 * F4(4.6566127342e-10))
    radius, angle = np.sqrt(-2 * np.log(wide)), 2 * np.pi * wide
    # The angle, up to 2 pi, is off by half a unit in its last place: up to 4 of those of 1, twice.
    m.store("out", I64, radius * np.cos(angle) + radius * np.sin(angle), ulp=12, near=radius)
