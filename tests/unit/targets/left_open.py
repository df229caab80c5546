"""Small kernels about what Triton leaves open, with inputs and what numpy says: `docs/left-open.md`.

Each runs in the interpreter before and after the passes, after the lowering to linalg, as PTX, and natively on the CPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl

Arrays = dict[str, Any]

NAN, INF = np.nan, np.inf
E4M3, E5M2, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16

MACHINES = ("frontend", "ttgir", "linalg", "cpu", "ptx")
"""Stages of the interpreter, native code, and the PTX machine."""


@dataclass(frozen=True)
class Case:
    """A kernel with its arguments, and what the arrays that it writes hold in the end."""

    kernel: Any
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    ulps: float = 0
    """How far floats may be from that, in units in the last place; a NaN equals each NaN."""

    def run(self, machine: str) -> Arrays:
        """The arrays after a run; what nothing writes has every bit set."""
        given = {name: each.copy() if isinstance(each, np.ndarray) else each for name, each in self.inputs.items()}
        found = {name: np.zeros_like(each) for name, each in self.outputs.items() if name not in given}
        for array in found.values():
            array.view(np.uint8)[...] = 0xFF
        if machine == "cpu":
            self.kernel[(1,)](**given, **found)
        else:
            self.kernel.interpret((1,), **given, **found, stage=machine, jobs=1)
        arrays = given | found
        return {name: arrays[name] for name in self.outputs}

    def differences(self, machine: str) -> list[str]:
        """Describe the results in which a machine differs from numpy."""
        said: list[str] = []
        for name, found in self.run(machine).items():
            expected = self.outputs[name]
            wrong = np.ravel(~same(found, expected, self.ulps))
            if wrong.any():
                at = int(np.flatnonzero(wrong)[0])
                said.append(f"{name}[{at}] is {found.ravel()[at]!r}, expected {expected.ravel()[at]!r}: {wrong.sum()}")
        return said


def same(found: Any, expected: Any, ulps: float) -> Any:
    """Return which elements are equal: in every bit, or as NaN, or within a distance."""
    bits = np.dtype(f"u{found.itemsize}")
    equal = found.view(bits) == expected.view(bits)
    if found.dtype.kind in "iub":
        return equal
    with np.errstate(all="ignore"):
        a, b = found.astype(np.float64), expected.astype(np.float64)
        equal |= np.isnan(a) & np.isnan(b)
        if ulps:
            unit = np.spacing(np.maximum(np.abs(expected), np.finfo(found.dtype).tiny).astype(found.dtype))
            equal |= np.abs(a - b) <= ulps * unit.astype(np.float64)
    return equal


# Conversions ---------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def to_integers(x, i16, i32, i64, u16, u32, u64, N: tl.constexpr):
    at = tl.arange(0, N)
    v = tl.load(x + at)
    tl.store(i16 + at, v.to(tl.int16))
    tl.store(i32 + at, v.to(tl.int32))
    tl.store(i64 + at, v.to(tl.int64))
    tl.store(u16 + at, v.to(tl.uint16))
    tl.store(u32 + at, v.to(tl.uint32))
    tl.store(u64 + at, v.to(tl.uint64))


@tlx_xdsl.jit
def to_truth(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.load(x + at).to(tl.int1).to(tl.int32))


@tlx_xdsl.jit
def to_floats(x, f32, f64, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(f32 + at, tl.load(x + at).to(tl.float32))
    tl.store(f64 + at, tl.load(x + at).to(tl.float64))


@tlx_xdsl.jit
def narrowed(x, f16, bf16, e4, e5, N: tl.constexpr):
    at = tl.arange(0, N)
    v = tl.load(x + at)
    tl.store(f16 + at, v.to(tl.float16))
    tl.store(bf16 + at, v.to(tl.bfloat16))
    tl.store(e4 + at, v.to(tl.float8e4nv))
    tl.store(e5 + at, v.to(tl.float8e5))


@tlx_xdsl.jit
def cut(x, f16, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(f16 + at, tl.load(x + at).to(tl.float16, fp_downcast_rounding="rtz"))


WIDE = np.float32([
    0, -0.0, 0.5, -0.5, 0.99, -1, 1, 1.5, -1.5, 127.5, -128.5, 255.9, 256, 32767, 32768, -32768, -32769, 65535, 65536,
    70000, 2147483520, 2147483648, -2147483648, -2147483904, 4294967040, 4294967296, -1e10, 1e10, 9.2233715e18,
    9.223372e18, -9.223372e18, -9.3e18, 1.8446743e19, 1.8446744e19, 1e30, -1e30, INF, -INF, NAN, 3.4e38, -3.4e38, 1e-40,
    -1e-40, 1e-45, 6.1e-5, 5.9e-8, 2.9e-8, 448, 464, 465, 57344, 61440, 61441, 65504, 65519, 65520, 240, -448.5, 2e-3,
    1e-3, -7e-4, 17, 18, 19,
])  # fmt: skip
"""Numbers at the limits of types."""


def integers(x: Any, dtype: str) -> Any:
    """Towards zero, and to the nearest integer of the type."""
    info = np.iinfo(dtype)
    # PTX: from f64, and to 64 bits, a NaN becomes the highest bit alone.
    nan = 0 if x.itemsize < 8 and info.bits < 64 else 1 << (info.bits - 1)
    whole = [nan if v != v else int(max(info.min, min(info.max, v))) for v in map(float, x)]
    return np.array([v % (1 << info.bits) for v in whole], f"u{info.bits // 8}").view(dtype)


TYPES = {"i16": "i2", "i32": "i4", "i64": "i8", "u16": "u2", "u32": "u4", "u64": "u8"}


def saturated(x: Any, dtype: Any) -> Any:
    """Round to nearest even; numbers beyond the largest, and infinities, become the largest."""
    top = np.float32(ml_dtypes.finfo(dtype).max)
    return np.clip(x, -top, top).astype(dtype)


def towards_zero(x: Any) -> Any:
    nearest = np.clip(x, -65504, 65504).astype(np.float16)
    over = np.abs(nearest.astype(np.float32)) > np.abs(x)
    found = np.where(over, np.nextafter(nearest, np.float16(0)), nearest)
    return np.where(np.isinf(x) | np.isnan(x), x.astype(np.float16), np.copysign(found, x)).astype(np.float16)


# Integers ------------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def wrapping(x, y, add, sub, mul, neg, size, N: tl.constexpr):
    at = tl.arange(0, N)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(add + at, a + b)
    tl.store(sub + at, a - b)
    tl.store(mul + at, a * b)
    tl.store(neg + at, 0 - a)
    tl.store(size + at, tl.abs(a))


@tlx_xdsl.jit
def quotients(x, y, quotient, remainder, N: tl.constexpr):
    at = tl.arange(0, N)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(quotient + at, a // b)
    tl.store(remainder + at, a % b)


@tlx_xdsl.jit
def shifts(x, y, left, right, N: tl.constexpr):
    at = tl.arange(0, N)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(left + at, a << b)
    tl.store(right + at, a >> b)


@tlx_xdsl.jit
def high_halves(x, y, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.umulhi(tl.load(x + at), tl.load(y + at)))


@tlx_xdsl.jit
def bitwise(x, y, both, either, one, none, N: tl.constexpr):
    at = tl.arange(0, N)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(both + at, a & b)
    tl.store(either + at, a | b)
    tl.store(one + at, a ^ b)
    tl.store(none + at, ~a)


@tlx_xdsl.jit
def prefixes(x, sums, products, N: tl.constexpr):
    at = tl.arange(0, N)
    v = tl.load(x + at)
    tl.store(sums + at, tl.cumsum(v, 0))
    tl.store(products + at, tl.cumprod(v, 0))


@tlx_xdsl.jit
def reduced(x, out, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    tl.store(out, tl.sum(v, 0))
    tl.store(out + 1, tl.xor_sum(v, 0))
    tl.store(out + 2, tl.max(v, 0))
    tl.store(out + 3, tl.min(v, 0))


def extremes(dtype: str) -> tuple[Any, Any]:
    """All pairs of small numbers and those at the limits of a type, as 128."""
    info = np.iinfo(dtype)
    few = [0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1, *([-1, -3] if info.min else [])]
    a, b = np.meshgrid(np.array(few, dtype), np.array(few, dtype))
    return np.resize(a.ravel(), 128), np.resize(b.ravel(), 128)


def divided(a: Any, b: Any) -> tuple[Any, Any]:
    """The quotient towards zero, and the remainder with the sign of the dividend."""
    pairs = [(abs(m) // abs(n) * (1 if (m < 0) == (n < 0) else -1), n, m) for m, n in zip(map(int, a), map(int, b))]  # noqa: B905
    bits = a.itemsize * 8
    wrap = [((q + (1 << bits - 1)) % (1 << bits)) - (1 << bits - 1) if a.dtype.kind == "i" else q for q, _, _ in pairs]
    return np.array(wrap, a.dtype), np.array([m - n * q for q, n, m in pairs], a.dtype)


def shifted(a: Any, by: Any) -> tuple[Any, Any]:
    bits, unsigned = a.itemsize * 8, a.view(f"u{a.itemsize}")
    left = [(int(v) << s) % (1 << bits) if 0 <= s < bits else 0 for v, s in zip(unsigned, map(int, by), strict=True)]
    right = [int(v) >> (s if 0 <= s < bits else bits) for v, s in zip(a, map(int, by), strict=True)]
    return np.array(left, unsigned.dtype).view(a.dtype), np.array(right, a.dtype)


# Floats --------------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def sums_and_products(x, y, add, sub, mul, size, N: tl.constexpr):
    at = tl.arange(0, N)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(add + at, a + b)
    tl.store(sub + at, a - b)
    tl.store(mul + at, a * b)
    tl.store(size + at, tl.abs(a))


@tlx_xdsl.jit
def rounded_once(x, y, quotient, root, N: tl.constexpr):
    at = tl.arange(0, N)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(quotient + at, tl.div_rn(a, b))
    tl.store(root + at, tl.sqrt_rn(a))


@tlx_xdsl.jit
def fused(x, y, z, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.fma(tl.load(x + at), tl.load(y + at), tl.load(z + at)))


@tlx_xdsl.jit
def approximate_quotients(x, y, quotient, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(quotient + at, tl.load(x + at) / tl.load(y + at))


@tlx_xdsl.jit
def float_remainders(x, y, remainder, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(remainder + at, tl.load(x + at) % tl.load(y + at))


@tlx_xdsl.jit
def functions(x, e, e2, log, log2, root, inverse, N: tl.constexpr):
    at = tl.arange(0, N)
    a = tl.load(x + at)
    tl.store(e + at, tl.exp(a - 4.0))
    tl.store(e2 + at, tl.exp2(a - 4.0))
    tl.store(log + at, tl.log(a))
    tl.store(log2 + at, tl.log2(a))
    tl.store(root + at, tl.sqrt(a))
    tl.store(inverse + at, tl.rsqrt(a))


@tlx_xdsl.jit
def whole_numbers(x, floor, ceil, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(floor + at, tl.floor(tl.load(x + at)))
    tl.store(ceil + at, tl.ceil(tl.load(x + at)))


@tlx_xdsl.jit
def extrema(x, y, high, low, high_nan, low_nan, between, between_nan, N: tl.constexpr):
    at = tl.arange(0, N)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(high + at, tl.maximum(a, b))
    tl.store(low + at, tl.minimum(a, b))
    tl.store(high_nan + at, tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL))
    tl.store(low_nan + at, tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL))
    tl.store(between + at, tl.clamp(a, b, tl.abs(b)))
    tl.store(between_nan + at, tl.clamp(a, b, tl.abs(b), propagate_nan=tl.PropagateNan.ALL))


@tlx_xdsl.jit
def comparisons(x, y, out, N: tl.constexpr):
    at = tl.arange(0, N)
    a, b = tl.load(x + at), tl.load(y + at)
    less = (a < b).to(tl.int32) + 2 * (a <= b).to(tl.int32)
    tl.store(out + at, less + 4 * (a == b).to(tl.int32) + 8 * (a != b).to(tl.int32))


@tlx_xdsl.jit
def moved(x, y, c, chosen, reversed, bits, N: tl.constexpr):
    at = tl.arange(0, N)
    v = tl.load(x + at)
    tl.store(chosen + at, tl.where(tl.load(c + at) > 0, v, tl.load(y + at)))
    tl.store(reversed + at, tl.flip(v, 0))
    tl.store(bits + at, v.to(tl.int32, bitcast=True))


PAIRS = np.float32([0, -0.0, 1, -1, 3, -3, 0.5, 5, INF, -INF, NAN, 1e-40, -1e-40, 3.25e38, 1e-45, -2.5])


def pairs(dtype: Any) -> tuple[Any, Any]:
    """All pairs of `PAIRS`."""
    a, b = np.meshgrid(PAIRS, PAIRS)
    return a.ravel().astype(dtype), b.ravel().astype(dtype)


def extremum(a: Any, b: Any, *, low: bool, nan: bool) -> Any:
    """Choose of two zeros by their sign; a NaN loses, or wins."""
    wide, other = a.astype(np.float64), b.astype(np.float64)
    first = (wide < other) | ((wide == other) & (np.signbit(wide) if low else ~np.signbit(wide)))
    found = np.where(first if low else (wide > other) | ((wide == other) & ~np.signbit(wide)), wide, other)
    missing = np.isnan(wide) | np.isnan(other)
    given = np.where(np.isnan(wide), other, wide)
    return np.where(missing, NAN if nan else given, found).astype(a.dtype)


def between(a: Any, b: Any, *, nan: bool) -> Any:
    return extremum(extremum(a, b, low=False, nan=nan), np.abs(b), low=True, nan=nan)


# Rows ----------------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def row_extrema(x, high, low, R: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, R)
    v = tl.load(x + rows[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(high + rows, tl.max(v, 1))
    tl.store(low + rows, tl.min(v, 1))


@tlx_xdsl.jit
def highest(a, b):
    return tl.maximum(a, b)


@tlx_xdsl.jit
def running_maxima(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.associative_scan(tl.load(x + at), 0, highest))


@tlx_xdsl.jit
def row_places(x, high, low, value, R: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, R)
    v = tl.load(x + rows[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(high + rows, tl.argmax(v, 1))
    tl.store(low + rows, tl.argmin(v, 1))
    most, _ = tl.max(v, 1, return_indices=True)
    tl.store(value + rows, most)


@tlx_xdsl.jit
def row_order(x, up, down, best, R: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, R)[:, None]
    at = rows * N + tl.arange(0, N)[None, :]
    v = tl.load(x + at)
    tl.store(up + at, tl.sort(v, 1))
    tl.store(down + at, tl.sort(v, 1, descending=True))
    tl.store(best + rows * 4 + tl.arange(0, 4)[None, :], tl.topk(v, 4, 1))


@tlx_xdsl.jit
def counted(x, out, N: tl.constexpr):
    tl.store(out + tl.arange(0, 8), tl.histogram(tl.load(x + tl.arange(0, N)), 8))


@tlx_xdsl.jit
def picked(x, places, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.gather(tl.load(x + at), tl.load(places + at), 0))


def rows(dtype: Any, *, nan: bool) -> Any:
    rng = np.random.default_rng(5)
    found = rng.choice(np.float32([NAN if nan else 4, INF, -INF, 1, 2, 3, 0, -0.0]), (8, 16))
    if nan:
        found[0] = NAN
    return found.astype(dtype)


def along(x: Any, *, low: bool) -> Any:
    found = x[:, 0]
    for column in x.T[1:]:
        found = extremum(found, column, low=low, nan=False)
    return found


# Memory --------------------------------------------------------------------------------------------------------------


@tlx_xdsl.jit
def masked(x, out, n, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.load(x + at, mask=at < n))


@tlx_xdsl.jit
def masked_number(x, out, n):
    tl.store(out, tl.load(x, mask=n > 9))


@tlx_xdsl.jit
def masked_atomics(x, old, n, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(old + at, tl.atomic_add(x + at, 1, mask=at < n))


@tlx_xdsl.jit
def atomic_maxima(x, y, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.atomic_max(x + at, tl.load(y + at))


@tlx_xdsl.jit
def atomic_minima(x, y, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.atomic_min(x + at, tl.load(y + at))


def by_sign_and_size(a: Any, b: Any, *, low: bool) -> Any:
    """The extremum in the order of IEEE 754's totalOrder: -NaN, -inf, ..., -0, +0, ..., inf, NaN."""
    x, y = a.view(np.int32).astype(np.int64), b.view(np.int32).astype(np.int64)
    keys = [np.where(each < 0, -1 - (each & 0x7FFFFFFF), each) for each in (x, y)]
    return np.where((keys[0] < keys[1]) == low, a, b).astype(np.float32)


# The cases -----------------------------------------------------------------------------------------------------------


def _conversions() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for name, dtype in (("f32", np.float32), ("f64", np.float64), ("f16", np.float16), ("bf16", BF16)):
        x = WIDE.astype(dtype)
        outputs = {each: integers(x.astype(np.float64) if dtype is BF16 else x, TYPES[each]) for each in TYPES}
        if dtype is BF16:
            outputs = {each: integers(x.astype(np.float32), TYPES[each]) for each in TYPES}
        found[f"{name} to integers"] = Case(to_integers, {"x": x, "N": 64}, outputs)
        found[f"{name} to a bit"] = Case(to_truth, {"x": x, "N": 64}, {"out": (x != 0).astype(np.int32)})
    for dtype in ("i1", "i4", "i8", "u1", "u4", "u8"):
        x = extremes(dtype)[0]
        outputs = {"f32": x.astype(np.float32), "f64": x.astype(np.float64)}
        found[f"{np.dtype(dtype)} to floats"] = Case(to_floats, {"x": x, "N": 128}, outputs)
    outputs = {
        "f16": WIDE.astype(np.float16), "bf16": WIDE.astype(BF16), "e4": saturated(WIDE, E4M3),
        "e5": saturated(WIDE, E5M2),
    }  # fmt: skip
    found["f32 to narrow floats"] = Case(narrowed, {"x": WIDE, "N": 64}, outputs)
    found["f32 to f16 towards zero"] = Case(cut, {"x": WIDE, "N": 64}, {"f16": towards_zero(WIDE)})
    for name, dtype in (("e4m3", E4M3), ("e5m2", E5M2), ("f16", np.float16), ("bf16", BF16)):
        x = np.arange(256, dtype=np.uint8).view(dtype) if np.dtype(dtype).itemsize == 1 else WIDE.astype(dtype)
        outputs = {"f32": x.astype(np.float32), "f64": x.astype(np.float64)}
        found[f"{name} to wide floats"] = Case(to_floats, {"x": x, "N": len(x)}, outputs)
    return found


def _integers() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for dtype in ("i1", "i2", "i4", "i8", "u1", "u4", "u8"):
        a, b = extremes(dtype)
        name = np.dtype(dtype).name
        outputs = {"add": a + b, "sub": a - b, "mul": a * b, "neg": a.dtype.type(0) - a, "size": np.abs(a)}
        found[f"{name} wraps around"] = Case(wrapping, {"x": a, "y": b, "N": 128}, outputs)
        divisor = np.where(b == 0, b.dtype.type(5), b)
        quotient, remainder = divided(a, divisor)
        outputs = {"quotient": quotient, "remainder": remainder}
        found[f"{name} quotients"] = Case(quotients, {"x": a, "y": divisor, "N": 128}, outputs)
        outputs = {"both": a & b, "either": a | b, "one": a ^ b, "none": ~a}
        found[f"{name} bits"] = Case(bitwise, {"x": a, "y": b, "N": 128}, outputs)
        bits = a.itemsize * 8
        by = np.resize(np.array([0, 1, bits - 1, bits, bits + 1, 2 * bits, 100], dtype), 128)
        left, right = shifted(a, by)
        found[f"{name} shifts"] = Case(shifts, {"x": a, "y": by, "N": 128}, {"left": left, "right": right})
    rng = np.random.default_rng(3)
    for dtype in ("i4", "i8", "u4"):
        info = np.iinfo(dtype)
        x = rng.integers(info.min, info.max, 64, dtype, endpoint=True)
        outputs = {"sums": np.cumsum(x, dtype=dtype), "products": np.cumprod(x, dtype=dtype)}
        found[f"{np.dtype(dtype)} prefixes"] = Case(prefixes, {"x": x, "N": 64}, outputs)
        out = np.array([x.sum(dtype=dtype), np.bitwise_xor.reduce(x), x.max(), x.min()])
        found[f"{np.dtype(dtype)} reductions"] = Case(reduced, {"x": x, "N": 64}, {"out": out})
    x = rng.integers(0, 1 << 32, 64, "u4")
    high = ((x.astype(object) * np.roll(x, 3).astype(object)) >> 32).astype("u4")
    found["high halves"] = Case(high_halves, {"x": x, "y": np.roll(x, 3), "N": 64}, {"out": high})
    return found


def _floats() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for name, dtype in (("f32", np.float32), ("f64", np.float64), ("f16", np.float16), ("bf16", BF16)):
        a, b = pairs(dtype)
        given = {"x": a, "y": b, "N": 256}
        outputs: Arrays = {"add": a + b, "sub": a - b, "mul": a * b, "size": np.abs(a)}
        found[f"{name} sums and products"] = Case(sums_and_products, given, outputs)
        outputs = {
            "high": extremum(a, b, low=False, nan=False), "low": extremum(a, b, low=True, nan=False),
            "high_nan": extremum(a, b, low=False, nan=True), "low_nan": extremum(a, b, low=True, nan=True),
            "between": between(a, b, nan=False), "between_nan": between(a, b, nan=True),
        }  # fmt: skip
        found[f"{name} extrema"] = Case(extrema, given, outputs)
        out = (a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b)
        found[f"{name} comparisons"] = Case(comparisons, given, {"out": out.astype(np.int32)})
        x = rows(dtype, nan=True)
        outputs = {"high": along(x, low=False), "low": along(x, low=True)}
        found[f"{name} row extrema with NaN"] = Case(row_extrema, {"x": x, "R": 8, "N": 16}, outputs)
        maxima = np.array([along(x[1:2, :end], low=False)[0] for end in range(1, 17)])
        found[f"{name} running maxima with NaN"] = Case(running_maxima, {"x": x[1], "N": 16}, {"out": maxima})
        x = rows(dtype, nan=False)
        outputs = {
            "high": x.argmax(1).astype(np.int32),
            "low": x.argmin(1).astype(np.int32),
            "value": along(x, low=False),
        }
        # Which of the two zeros comes with the place is the first one's.
        outputs["value"] = np.take_along_axis(x, outputs["high"][:, None].astype(np.int64), 1)[:, 0]
        found[f"{name} row places"] = Case(row_places, {"x": x, "R": 8, "N": 16}, outputs)
        x = np.where(x == 0, x.dtype.type(0), x)
        up = np.sort(x, 1)
        outputs = {"up": up, "down": up[:, ::-1].copy(), "best": up[:, :-5:-1].copy()}
        found[f"{name} row order"] = Case(row_order, {"x": x, "R": 8, "N": 16}, outputs)
    a, b = pairs(np.float32)
    given = {"x": a, "y": b, "N": 256}
    found["f32 rounded once"] = Case(rounded_once, given, {"quotient": a / b, "root": np.sqrt(a)})
    # The product is exact in f64; of all roundings of the sum there, none makes another tie in f32.
    x, y = np.float32(np.linspace(-3, 3, 64)), np.float32(np.linspace(1, 2, 64) ** 3)
    outputs = {"out": (x.astype(np.float64) * y - x.astype(np.float64)[::-1]).astype(np.float32)}
    found["f32 fused"] = Case(fused, {"x": x, "y": y, "z": -x[::-1].copy(), "N": 64}, outputs)
    found["f32 quotients"] = Case(approximate_quotients, given, {"quotient": a / b}, ulps=2)
    kept = np.where(np.isfinite(a) & (np.abs(a) > 1e-3) & (np.abs(a) < 100), a, np.float32(7))
    divisor = np.where(np.isfinite(b) & (np.abs(b) > 1e-3) & (np.abs(b) < 100), b, np.float32(2.25))
    # What is left over exactly has no sign that all agree on.
    exact = np.fmod(kept, divisor)
    kept, exact = np.where(exact == 0, np.float32(0.75), kept), np.fmod(np.where(exact == 0, 0.75, kept), divisor)
    found["f32 remainders"] = Case(
        float_remainders, {"x": kept, "y": divisor, "N": 256}, {"remainder": exact.astype(np.float32)}, ulps=64
    )
    x = np.float32(np.linspace(0.01, 9, 64))
    wide = x.astype(np.float64)
    less = (x - np.float32(4)).astype(np.float64)
    outputs = {
        "e": np.exp(less), "e2": np.exp2(less), "log": np.log(wide), "log2": np.log2(wide), "root": np.sqrt(wide),
        "inverse": 1 / np.sqrt(wide),
    }  # fmt: skip
    outputs = {name: each.astype(np.float32) for name, each in outputs.items()}
    found["f32 functions"] = Case(functions, {"x": x, "N": 64}, outputs, ulps=10)
    x = np.where(np.abs(WIDE) < 1e-30, np.float32(-0.25), WIDE)
    outputs = {"floor": np.floor(x), "ceil": np.ceil(x)}
    found["f32 whole numbers"] = Case(whole_numbers, {"x": x, "N": 64}, outputs)
    payloads = np.array([0x7FC00001, 0xFFC12345, 0x7F800001, 0xFF800001, 1, 1 << 31, 0x3F800000, 0x7F800000], np.uint32)
    x, y, c = payloads.view(np.float32), payloads[::-1].copy().view(np.float32), np.array([1, 0] * 4, np.int32)
    outputs = {
        "chosen": np.where(c > 0, x.view(np.int32), y.view(np.int32)).view(np.float32), "reversed": y,
        "bits": payloads.view(np.int32),
    }  # fmt: skip
    found["bits of NaN"] = Case(moved, {"x": x, "y": y, "c": c, "N": 8}, outputs)
    return found


def _memory() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for dtype in (np.float32, np.float16, BF16, E5M2, np.int8, np.int64, np.bool_):
        x = np.ones(16, dtype)
        outputs = {"out": np.array([1] * 5 + [0] * 11).astype(dtype)}
        found[f"masked {np.dtype(dtype)}"] = Case(masked, {"x": x, "n": 5, "N": 16}, outputs)
    for dtype in (np.float32, np.int32):
        x = np.full(16, 4, dtype)
        outputs = {"x": np.array([5] * 5 + [4] * 11, dtype), "old": np.array([4] * 5 + [0] * 11, dtype)}
        found[f"masked atomics {np.dtype(dtype)}"] = Case(masked_atomics, {"x": x, "n": 5, "N": 16}, outputs)
        found[f"masked number {np.dtype(dtype)}"] = Case(masked_number, {"x": x, "n": 5}, {"out": np.zeros(1, dtype)})
    a, b = pairs(np.float32)
    for kernel, low in ((atomic_maxima, False), (atomic_minima, True)):
        given = {"x": a, "y": b, "N": 256}
        found[kernel.source.symbol] = Case(kernel, given, {"x": by_sign_and_size(a, b, low=low)})
    x = np.array([0, 1, 7, 8, -1, 100, 3, 3, -8, 16, 15, 2**31 - 1, -(2**31), 5, 6, 7], np.int32)
    inside = x[(x >= 0) & (x < 8)]
    outputs = {"out": np.bincount(inside, minlength=8).astype(np.int32)}
    found["numbers without a bin"] = Case(counted, {"x": x, "N": 16}, outputs)
    places = np.random.default_rng(7).integers(0, 64, 64).astype(np.int32)
    found["gather"] = Case(picked, {"x": WIDE, "places": places, "N": 64}, {"out": WIDE[places]})
    return found


def cases() -> dict[str, Case]:
    """The cases by name."""
    with np.errstate(all="ignore"):
        return _conversions() | _integers() | _floats() | _memory()


def kernels(found: Mapping[str, Case]) -> Sequence[Any]:
    """The kernels of cases, each once."""
    return list({id(each.kernel): each.kernel for each in found.values()}.values())
