"""Matrix products, descriptors, atomics."""

# covers: tl.matrix, tt.dot

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.unit.interpreter.oracle.checking import (
    Described,
    Model,
    dtype,
    empty,
    floats,
    ints,
    reference,
    value,
)  # fmt: skip
from tests.unit.interpreter.oracle.integers import LANES

F2, F4, F8 = np.float16, np.float32, np.float64
TILE = np.arange(1024).reshape(32, 32)


@reference("blocked_product", grid=(6, 1, 1), x=floats("f2", 128 * 80), y=floats("f2", 80 * 150 + 200),
           out=empty("f2", 100 * 150), M=value(100), N=value(150), K=value(80))  # fmt: skip
def blocked_product(m: Model, x, y, out, M, N, K) -> None:
    wide = -(-N // 64)
    rows = m.pid[0] // wide * 64 + np.arange(64)[:, None]
    columns = m.pid[0] % wide * 64 + np.arange(64)[None, :]
    a, b = x.reshape(128, 80).astype(F8), y[: K * N].reshape(K, N).astype(F8)
    result, near = np.zeros((128, 192)), np.zeros((128, 192))
    result[:, :N], near[:, :N] = a @ b, np.abs(a) @ np.abs(b)
    inside = (rows < M) & (columns < N)
    # One rounding to f16, which the error of the sum in f32 can turn round.
    size = near[rows, columns] * 2.0**-9
    m.store("out", np.where(inside, rows * N + columns, 0), result[rows, columns], inside, ulp=1, near=size)


def truncated(a: np.ndarray) -> np.ndarray:
    """f32 without the bits that tf32 lacks."""
    return (a.view("u4") >> 13 << 13).view(F4)


@reference("precisions", x=floats("f4", 1024), h=floats("f2", 1024), b=floats("bf16", 1024), i=ints("i1", 1024),
           q=floats("e5m2", 1024), out=empty("f4", 1024))  # fmt: skip
def precisions(m: Model, x, h, b, i, q, out) -> None:
    # Each of 32 additions is off by half a unit of the sum of absolute values, at most.
    def keep(left: np.ndarray, right: np.ndarray, more: object = 0.0, ulp: float = 16) -> None:
        left, right, more = left[TILE].astype(F8), right[TILE].astype(F8), np.asarray(more, F8)
        near = np.abs(left) @ np.abs(right) + np.abs(more)
        m.store("out", TILE, left @ right + more, ulp=ulp, near=near)

    short, a = truncated(x), x[TILE]
    keep(short, short)
    keep(x, x)
    # The product of the second parts is left out, which has 2**-22 of the whole.
    keep(x, x, ulp=20)
    keep(x, x)
    keep(short, np.ascontiguousarray(short[TILE].T).ravel(), a)
    keep(h, h)
    keep(h, h, ulp=0.6 * 2**13)
    keep(b, b, a)
    wide = i[TILE].astype("i8")
    m.store("out", TILE, wide @ wide)
    keep(q, q)
    double = np.concatenate((q[TILE], q[TILE]), 1).astype(F8)
    near = 2 * np.abs(q[TILE].astype(F8)) @ np.abs(q[TILE].astype(F8)) + np.abs(a)
    m.store("out", TILE, double @ np.concatenate((q[TILE], q[TILE])).astype(F8) + a, ulp=6, near=near)


@reference("batched_product", x=floats("f2", 2048), out=empty("f4", 2048))
def batched_product(m: Model, x, out) -> None:
    a = x.reshape(2, 32, 32).astype(F8)
    size = np.abs(a)
    near = size @ size + size @ size.transpose(0, 2, 1)
    m.store("out", np.arange(2048).reshape(2, 32, 32), a @ a + a @ a.transpose(0, 2, 1), ulp=4, near=near)


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def halves(packed: np.ndarray, axis: int) -> np.ndarray:
    """The numbers of bytes that hold two of four bits: a sign, two bits of exponent, one of mantissa (OCP MX 1.0)."""
    parts = []
    for part in (packed & 15, packed >> 4):
        parts.append(np.where(part & 8, -1, 1) * E2M1[part & 7])
    shape = list(packed.shape)
    shape[axis] *= 2
    return np.stack(parts, axis + 1).reshape(shape)


@reference("scaled_products", a=lambda rng: floats("e4m3", 4096)(rng).view("u1"), sa=ints("u1", 128, 120, 134),
           b=lambda rng: floats("e4m3", 4096)(rng).view("u1"), sb=ints("u1", 128, 120, 134),
           h=floats("bf16", 4096), out=empty("f4", 4096))  # fmt: skip
def scaled_products(m: Model, a, sa, b, sb, h, out) -> None:
    scale_a = np.repeat(2.0 ** (sa.reshape(64, 2).astype(F8) - 127), 32, 1)
    scale_b = np.repeat(2.0 ** (sb.reshape(64, 2).astype(F8) - 127), 32, 1).T
    left, right = a.reshape(64, 64), b.reshape(64, 64)
    e4m3, e5m2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
    # The tiles of 4-bit numbers begin at the same bytes: 64 x 32 and 32 x 64 of them.
    left4, right4 = halves(a[:2048].reshape(64, 32), 1), halves(b[:2048].reshape(32, 64), 0)
    products = [
        (left.view(e5m2).astype(F8) * scale_a, right.view(e4m3).astype(F8) * scale_b),
        (left4 * scale_a, right4 * scale_b),
        (left.view(e4m3).astype(F8) * scale_a, right4),
        (left.view(e4m3).astype(F8) * scale_a, h.reshape(64, 64).astype(F8)),
    ]
    total = sum(p @ q for p, q in products)
    near = sum(np.abs(p) @ np.abs(q) for p, q in products)
    m.store("out", np.arange(4096).reshape(64, 64), total, ulp=8, near=near)


@reference("attention", grid=(2, 1, 1), q=floats("f2", 4096), k=floats("f2", 6400), v=floats("f2", 6400),
           out=empty("f2", 4096), n=value(90), scale=value(0.18))  # fmt: skip
def attention(m: Model, q, k, v, out, n, scale) -> None:
    index = m.pid[0] * 2048 + np.arange(2048).reshape(32, 64)
    score = q[index].astype(F8) @ k[: n * 64].reshape(n, 64).astype(F8).T * F4(scale)
    weight = 2.0 ** (score - score.max(1, keepdims=True))
    result = weight @ v[: n * 64].reshape(n, 64).astype(F8) / weight.sum(1, keepdims=True)
    # The weights are rounded to f16 before the second product.
    m.store("out", index, result, ulp=3, near=np.full(index.shape, 1.0))


# Descriptors ---------------------------------------------------------------------------------------------------------


def described(name: str, shape: tuple[int, ...], block: list[int]) -> object:
    """A tensor of normal numbers, or of integers."""

    def make(rng: np.random.Generator) -> Described:
        if name.startswith("i"):
            return Described(rng.integers(-(2**31), 2**31, shape, name), block)
        return Described(rng.standard_normal(shape).astype(dtype(name)), block)

    return make


def window(array: np.ndarray, corner: tuple[int, ...], block: tuple[int, ...], fill: float = 0) -> np.ndarray:
    """A block of an array, with `fill` outside."""
    result = np.full(block, fill, array.dtype)
    for place in np.ndindex(*block):
        at = tuple(a + b for a, b in zip(corner, place, strict=True))
        if all(0 <= i < size for i, size in zip(at, array.shape, strict=True)):
            result[place] = array[at]
    return result


def put(m: Model, name: str, corner: tuple[int, ...], values: np.ndarray, function: object = None) -> None:
    """Write a block, or combine it with what is there; what is outside is dropped."""
    array = m.arrays[name]
    for place in np.ndindex(*values.shape):
        at = tuple(a + b for a, b in zip(corner, place, strict=True))
        if all(0 <= i < size for i, size in zip(at, array.shape, strict=True)):
            new = values[place] if function is None else function(array[at], values[place])
            m.write(name, np.ravel_multi_index(at, array.shape), new)


@reference("host_descriptors", grid=(2, 1, 1), x=described("f2", (60, 200), [32, 64]),
           out=described("f2", (100, 208), [32, 64]), n=value(152))  # fmt: skip
def host_descriptors(m: Model, x, out, n) -> None:
    row = m.pid[0] * 32
    for column in range(0, n, 64):
        put(m, "out", (row, column), window(x, (row, column), (32, 64)) * F2(2))
    put(m, "out", (row, n), window(x, (row, 0), (32, 64)))
    put(m, "out", (row + 32, n), np.zeros((32, 64), F2))


@reference("device_descriptors", grid=(3, 1, 1), x=floats("f4", 40 * 76), out=empty("f4", 40 * 76), M=value(40),
           N=value(76))  # fmt: skip
def device_descriptors(m: Model, x, out, M, N) -> None:
    source, row = x.reshape(M, N), m.pid[0] * 16
    a = window(source, (row, 0), (16, 32))
    # Outside it is NaN, but in the rows that are stored there is no outside in the first block.
    a = np.where((row + np.arange(16) < M)[:, None], a, np.nan)
    for i in range(0, N, 32):
        a = a + window(source, (row, i), (16, 32), np.nan)
    rows = row + np.arange(16)
    inside = rows < M
    m.write("out", rows[inside][:, None] * N + np.arange(32), a[inside])


@reference("cube_descriptor", x=described("bf16", (11, 20, 64), [8, 16, 32]), out=empty("bf16", 20000), n=value(1))
def cube_descriptor(m: Model, x, out, n) -> None:
    i, j, k = np.ogrid[:8, :16, :32]
    offset = i * 1280 + j * 64 + k
    values = np.broadcast_to(window(x, (n, 0, n * 32), (8, 16, 32)), offset.shape)
    m.store("out", offset, values, (i < 11) & (k < 64) & (j >= 0))


@reference("gather_and_scatter", x=floats("bf16", 50 * 136), out=empty("f4", 50 * 136),
           index=lambda rng: rng.permutation(60)[:32].astype("i4"), M=value(50), N=value(136))  # fmt: skip
def gather_and_scatter(m: Model, x, out, index, M, N) -> None:
    source = x.reshape(M, N)
    for row in index:
        if row < M:
            m.write("out", row * N + N - 64 + np.arange(64), source[row, 64:128])


@reference("descriptor_atomics", x=described("f4", (16, 32), [16, 32]), y=described("i4", (64, 64), [16, 32]),
           v=floats("f4", 512), w=ints("i4", 512))  # fmt: skip
def descriptor_atomics(m: Model, x, y, v, w) -> None:
    a, b = v.reshape(16, 32), w.reshape(16, 32)
    put(m, "x", (0, 0), a, np.add)
    put(m, "y", (0, 32), b, np.add)
    put(m, "y", (16, 0), b, min)
    put(m, "y", (16, 32), b, max)
    put(m, "y", (32, 0), b, np.bitwise_and)
    put(m, "y", (32, 32), b, np.bitwise_or)
    put(m, "y", (48, 0), b, np.bitwise_xor)


# Atomics -------------------------------------------------------------------------------------------------------------


@reference("integer_atomics", x=ints("i4", 32), u=ints("u4", 32), w=ints("i8", 2), n=value(40))
def integer_atomics(m: Model, x, u, w, n) -> None:
    a = x.copy()
    now = a + LANES.astype("i4")
    for function, given in (
        (np.maximum, None), (np.minimum, 3), (np.bitwise_and, None), (np.bitwise_or, None), (np.bitwise_xor, None),
    ):  # fmt: skip
        given = a if given is None else np.full(32, given, "i4")
        a, now = a + now, function(now, given)
    a, now = a + now, np.full(32, n, "i4")
    m.write("u", LANES, np.minimum(np.maximum(u, a.view("u4")), 7))
    m.write("w", [0, 1], [w[0] + 1, max(w[1], n)])
    now = np.where(now == a, a * np.int32(2), now)
    now[0] = n + 1 if now[0] == n else now[0]
    m.write("x", LANES, now)


@reference("float_atomics", x=floats("f4", 32), h=floats("f2", 32), b=floats("bf16", 32), d=floats("f8", 32),
           v=floats("f4", 32), n=value(32))  # fmt: skip
def float_atomics(m: Model, x, h, b, d, v, n) -> None:
    a = v.copy()
    m.write("h", LANES, h + a.astype(F2))
    m.write("b", LANES, b + a.astype(ml_dtypes.bfloat16))
    m.write("d", LANES, d + a)
    now = x + a
    now[0] += F4(1)
    m.store("v", LANES, now)
    now = np.maximum(now, a)
    m.store("v", LANES, now)
    now = np.minimum(now, a)
    m.store("v", LANES, now)
    m.write("x", LANES, a)


@reference("orders_and_scopes", grid=(4, 1, 1), x=ints("i4", 32), lock=lambda _rng: np.zeros(1, "i4"), n=value(5))
def orders_and_scopes(m: Model, x, lock, n) -> None:
    now = x + np.int32(3)
    now[0] = 1
    m.store("x", LANES, now + np.int32(n))
    m.write("lock", 0, 0)


@reference(
    "atomic_memory",
    x=lambda rng: np.append(0, rng.integers(1, 999, 31)).astype("i4"),
    f=floats("f4", 32),
    out=empty("i4", 32),
    n=value(77),
)
def atomic_memory(m: Model, x, f, out, n) -> None:
    a = x + x[0]
    now = a.copy()
    now[0] = n
    m.store("out", LANES, now)
    now = now + a
    m.store("out", LANES, now)
    m.write("x", LANES, np.where(now == a, a + np.int32(1), now))
    m.store("out", 0, 1)
