"""References of the corpus's elementwise kernels."""

import ml_dtypes
import numpy as np

from tests.unit.interpreter.philox import random_bits, uniform
from tests.unit.interpreter.stock.control import normal
from tests.unit.interpreter.stock.running import Expected, Run, nan, reference

F32, F16, BF16 = np.float32, np.float16, ml_dtypes.bfloat16


@reference("vector_add")
def vector_add(rng):
    n = 2500
    x, y = normal(rng, n), normal(rng, n)
    return Run({"x": x, "y": y, "out": nan(n), "n": n}, {"out": x + y}, (3,))


@reference("vector_add_unaligned")
def vector_add_unaligned(rng):
    n = 700
    x, y = normal(rng, n, dtype=BF16), normal(rng, n, dtype=BF16)
    return Run({"x": x, "y": y, "out": nan(n), "n": n}, {"out": (x + y).astype(F32)}, (3,))


@reference("math_functions")
def math_functions(rng):
    x = rng.uniform(0.1, 2, 1024).astype(F32)
    a = x.astype(np.float64)
    b = np.exp(a) + np.exp2(a) + np.log(a) + np.log2(a)
    b += np.sin(a) * np.cos(a) - _erf(a)
    b += np.sqrt(a) + 1 / np.sqrt(a) + np.sqrt(a)
    b += np.floor(a) + np.ceil(a) + np.abs(a)
    b += a * b + a + 2 * (a / b) + np.fmod(a, b)
    b = 1 / (1 + np.exp(-b)) - b
    return Run({"x": x, "out": nan(1024)}, {"out": Expected(b, 1e-5, 1)})


def _erf(x):
    import math

    return np.vectorize(math.erf)(x)


@reference("approximate_division")
def approximate_division(rng):
    x = rng.uniform(0.5, 3, 256).astype(F32)
    a = x.astype(np.float64)
    return Run({"x": x, "out": nan(256)}, {"out": Expected(a / 3 + 1 / a + a / (a + 2), 1e-6)})


@reference("libdevice_calls")
def libdevice_calls(rng):
    x, n = rng.uniform(0.1, 4, 256).astype(F32), rng.integers(-3, 4, 256).astype(np.int32)
    x[:3] = np.nan
    a = x.astype(np.float64)
    points = np.linspace(0, np.pi, 201)
    # Bessel's integral; the trapezoidal rule is exact for what is periodic.
    j0 = np.cos(a[:, None] * np.sin(points))
    j0 = (j0.sum(1) - (j0[:, 0] + j0[:, -1]) / 2) / 200
    b = np.ldexp(np.tanh(a) + a**1.5 + a * a + a, n) + j0
    return Run({"x": x, "i": n, "out": nan(256)}, {"out": Expected(b, 1e-5, 1)})


@reference("minimum_maximum")
def minimum_maximum(rng):
    x, y = normal(rng, 512), normal(rng, 512)
    x[::7], y[::11] = np.nan, np.nan
    low, high = F32(-0.5), F32(0.75)
    quiet = np.fmin(x, y) + np.fmax(x, y)
    strict = np.minimum(x, y) + np.maximum(x, y)
    bounded = np.fmin(np.fmax(x, low), high) + np.clip(y, low, high)
    expected = np.where(x > y, quiet, strict) + bounded
    arguments = {"x": x, "y": y, "out": np.zeros(512, F32), "low": float(low), "high": float(high)}
    return Run(arguments, {"out": expected})


def _divide(a, b):
    """Division that rounds towards zero."""
    return (np.abs(a) // abs(b) * np.sign(a) * np.sign(b)).astype(a.dtype)


@reference("integer_arithmetic")
def integer_arithmetic(rng):
    a, u = rng.integers(-(2**31), 2**31, 256).astype(np.int32), rng.integers(0, 2**32, 256).astype(np.uint32)
    s = rng.integers(-(2**40), 2**40, 256)
    a[:32] = rng.integers(-4, 5, 32)
    k = np.int32(5)
    signed = _divide(a, 7) + np.fmod(a, 5) + (a >> 3) + (a << 2) - (a ^ k)
    unsigned = u // 7 + u % 5 + (u >> 3) + ((u.astype(np.uint64) ** 2) >> np.uint64(32)).astype(np.uint32)
    bits = (a & 0x7FFFFFFF) | ~a
    extremes = np.minimum(a, k) + np.maximum(a, k)
    extremes = extremes + np.minimum(u, u + np.uint32(1)).astype(np.int32) + np.maximum(u, 9).astype(np.int32)
    order = (a < k) & (a <= 3) | (a > -3) & (a >= k) | (a == 0) & (a != k) | (u < 7) & (u >= 2)
    out = np.where(order, signed + bits, extremes) + unsigned.astype(np.int32) + np.abs(a)
    high = np.array([int(number) % 2**64 * 3 >> 64 for number in s])
    wide = s * a + _divide(s + 4095, 4096) + high
    stays = np.full(256, 17, np.int64)
    arguments = {"x": a, "y": u, "s": s, "out": np.zeros(256, np.int32), "wide": stays.copy(), "k": int(k)}
    return Run(arguments, {"out": out.astype(np.int32), "wide": np.where(a == 3, stays, wide)})


@reference("overflow_checks")
def overflow_checks(rng):
    x = rng.integers(-46000, 46000, 256).astype(np.int32)
    return Run({"x": x, "out": np.zeros(256, np.int32)}, {"out": x * x + x - 3})


@reference("integer_and_float_casts")
def integer_and_float_casts(rng):
    a, b = rng.integers(-128, 128, 256).astype(np.int8), rng.integers(0, 2**16, 256).astype(np.uint16)
    h, d = rng.uniform(0, 1000, 256).astype(F16), rng.uniform(-1000, 1000, 256)
    widened = a.astype(np.int64) + b.astype(np.int64)
    narrowed = (widened & 0xFF) != 0
    total = a + b.astype(np.float64) + h.astype(np.float64) + d.astype(F32) + narrowed
    total += np.trunc(h.astype(np.float64)) * 2 + np.trunc(d)
    total += d.astype(F16).astype(np.float64) + h.astype(F32).astype(BF16).astype(np.float64)
    arguments = {"i8": a, "u16": b, "f16": h, "f64": d, "out": nan(256)}
    return Run(arguments, {"out": Expected(total, 1e-6, 1e4)})


@reference("fp8_casts")
def fp8_casts(rng):
    e4, e5 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
    x = (rng.standard_normal(512) * 50).astype(F32)
    old4, old5 = normal(rng, 512, dtype=e4), normal(rng, 512, dtype=e5)
    nearest = x.astype(e4)
    half = x.astype(F16)
    truncated = np.where(np.abs(half.astype(F32)) > np.abs(x), np.nextafter(half, F16(0)), half)
    old = old4.astype(F16) + old5.astype(F16)
    arguments = {"x": x, "e4": old4.copy(), "e5": old5.copy(), "h": nan(512, F16)}
    return Run(arguments, {"e4": nearest, "e5": x.astype(e5), "h": truncated + old + nearest.astype(F16)})


@reference("map_elements")
def map_elements(rng):
    x, y = (rng.integers(-50, 50, 256).astype(np.int32) for _ in range(2))
    return Run({"x": x.copy(), "y": y.copy()}, {"x": np.minimum(x, y), "y": np.maximum(x, y)})


@reference("dropout")
def dropout(rng):
    x, seed, p = normal(rng, 768), int(rng.integers(0, 2**31)), F32(0.3)
    keep = uniform(random_bits(seed, np.arange(768))[0]) > p
    expected = np.where(keep, x.astype(np.float64) / (1 - p), 0)
    return Run({"x": x, "out": nan(768), "seed": seed, "p": float(p)}, {"out": Expected(expected, 1e-6)}, (3,))


@reference("random_numbers")
def random_numbers(rng):
    seed = int(rng.integers(0, 2**62))
    index = np.arange(128)
    words = random_bits(seed, index, rounds=4)
    bits = np.bitwise_xor.reduce(words)
    first, second, *_ = (uniform(word) for word in random_bits(seed, index))
    angle = 2 * np.pi * second.astype(np.float64)
    out = np.sqrt(-2 * np.log(np.maximum(first, 1e-7).astype(np.float64))) * np.cos(angle)
    arguments = {"out": nan(128), "bits": np.zeros(128, np.uint32), "seed": seed}
    return Run(arguments, {"bits": bits, "out": Expected(out, 1e-5, 1)})


@reference("print_and_assert")
def print_and_assert(rng):
    x = normal(rng, 128)
    return Run({"x": x, "n": 128}, {"x": x.copy()})


@reference("expected_zeros")
def expected_zeros(rng):
    x = normal(rng, 128)
    return Run({"x": x}, {"x": np.where(np.arange(128) < 100, x, 0)})


@reference("special_constants")
def special_constants(rng):
    out, h, b = normal(rng, 128), normal(rng, 128, dtype=F16), normal(rng, 128, dtype=BF16)
    d, i = rng.standard_normal(128), rng.integers(-(2**62), 2**62, 128)
    a = np.where(out > 0, F32(np.inf), out)
    a = np.where(a < -1, F32(-np.inf), a)
    total = a * F32(1e-40) + F32(1e38) + F32(0.1) - F32(1e-7) + F32(16777216.0)
    expected = {
        "out": total,
        "h": np.where(h > 1, F16(65504), h * F16(6e-8)),
        "b": np.where(b > 1, BF16(1e38), b * BF16(0.33)),
        "d": np.where(d > 1, 1e300, d * 0.1),
        "i": np.where(i > 0, np.int64(0x7FFFFFFFFFFFFFFF), i - 0x123456789ABCDEF),
    }
    arguments = {"out": out.copy(), "h": h.copy(), "b": b.copy(), "d": d.copy(), "i": i.copy()}
    return Run(arguments, expected)
