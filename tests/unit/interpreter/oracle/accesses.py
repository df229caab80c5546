"""Loads, stores, masks, pointers, shapes and subscripts."""

# covers: tl.memory, tt.memory, tt.descriptor

from __future__ import annotations

import numpy as np

from tests.unit.interpreter.oracle.checking import Model, bools, empty, floats, ints, reference, value
from tests.unit.interpreter.oracle.integers import LANES

F2, F4 = np.float16, np.float32
I64 = np.arange(64)
TILE = np.arange(8)[:, None] * 64 + I64[None, :]


@reference("masks", x=floats("f2", 600), out=empty("f2", 600), n=value(8))
@reference("masks", x=floats("f2", 600), out=empty("f2", 600), n=value(2))
def masks(m: Model, x, out, n) -> None:
    inside = n > I64
    a = x[:64]
    f = x[0] if n > 3 else F2(1)
    e = a if n > 3 else np.zeros_like(a)
    d = np.where(np.arange(8)[:, None] < n, x[TILE], F2(2.5))
    m.store("out", I64, a + a + a + e + f + x[1], inside)
    m.store("out", TILE, d, (np.arange(8)[:, None] < n) & inside)
    m.store("out", 5, f, n > 5)
    m.store("out", I64, 1.0, n > 7)
    m.store("out", I64, f)
    m.store("out", TILE, np.arange(8)[:, None])


@reference("cache_hints", x=floats("f4", 64), out=empty("f4", 64))
def cache_hints(m: Model, x, out) -> None:
    a = x + x + x + x + x + x[3]
    for more in range(4):
        m.store("out", I64, a + F4(more))
    m.store("out", 0, 1.0)


@reference("booleans_in_memory", flags=bools(32), x=ints("u1", 32, 0, 2), out=lambda _rng: np.zeros(32, np.bool_))
def booleans_in_memory(m: Model, flags, x, out) -> None:
    m.store("out", LANES, flags ^ np.where(LANES < 7, flags, True))
    m.store("out", LANES, x != 0)
    m.store("out", 0, flags[0])
    m.store("out", 1, True)


@reference("methods_of_pointers", x=floats("f4", 32), y=floats("f4", 32), n=value(9), m=value(-3))
def methods_of_pointers(m_: Model, x, y, n, m) -> None:
    a = x.copy()
    m_.store("y", LANES, a)
    m_.store("x", LANES, y + a)
    m_.store("y", LANES, x, n > LANES)
    m_.store("y", LANES, y * F4(m))


# Shapes --------------------------------------------------------------------------------------------------------------


@reference("transposes", x=floats("f4", 512), out=empty("f4", 512))
def transposes(m: Model, x, out) -> None:
    flat, cube = np.arange(32).reshape(4, 8), np.arange(512).reshape(4, 8, 16)
    m.store("out", flat.T, x[flat].T)
    m.store("out", flat.T, x[flat].T)
    m.store("out", cube.transpose(2, 0, 1), x[cube].transpose(2, 0, 1))
    m.store("out", cube.transpose(0, 2, 1), x[cube].transpose(0, 2, 1))


@reference("reshapes", x=floats("f4", 64), out=empty("f4", 256))
def reshapes(m: Model, x, out) -> None:
    m.store("out", I64, x + x)
    m.store("out", I64, (x + x) + x)
    m.store("out", I64[:, None] * 4 + np.arange(4), x[:, None])
    m.store("out", I64, x)


@reference("subscripts", x=floats("f4", 16), out=empty("f4", 300))
def subscripts(m: Model, x, out) -> None:
    i = np.arange(16)
    b = x[None, :] + x[:, None]
    m.store("out", i[:, None, None] * 16 + i[None, None, :], b[:, None, :])
    m.store("out", i[None, :, None] * 16 + i[None, None, :], b[None])


@reference("pieces", x=floats("f4", 64), out=empty("f4", 64))
def pieces(m: Model, x, out) -> None:
    a, b = x[:32], x[32:]
    m.store("out", LANES, a * F4(2) - b * F4(2))
    m.store("out", I64, np.stack((a, b), 1).ravel())
    m.store("out", I64, x)
    m.store("out", np.arange(16), a[0::2] * a[1::2])


@reference("creation", grid=(2, 3, 2), x=floats("f4", 64), out=empty("f4", 700), n=value(-40))
def creation(m: Model, x, out, n) -> None:
    index = np.arange(16, 48)
    pid = m.pid[0] + m.pid[1] * m.grid[0] + m.pid[2] * m.grid[1]
    b = F2(n) + F2(2.5)
    m.store("out", pid * 32 + index, x[index] + F4(b) + (F4(0) + F4(0)) + F4(3))
    m.store("out", 0, m.grid[2])


@reference("explicit_broadcast", x=floats("f4", 8), y=floats("f4", 16), out=empty("f4", 128))
def explicit_broadcast(m: Model, x, y, out) -> None:
    m.store("out", np.arange(128).reshape(8, 16), x[:, None] * y[None, :] + x[0])


@reference("gathers", x=floats("f4", 128), i=ints("i4", 128, 0, 7), out=empty("f4", 128), counts=empty("i4", 32))
def gathers(m: Model, x, i, out, counts) -> None:
    index, a = np.arange(128).reshape(8, 16), x.reshape(8, 16)
    where = i[index]
    m.store("out", index, [[a[row, where[row, column]] for column in range(16)] for row in range(8)])
    m.store("out", index, [[a[where[row, column], column] for column in range(16)] for row in range(8)])
    m.store("counts", LANES, [int((i == number).sum()) for number in range(32)])
    m.store("counts", np.arange(16), [int((i == number).sum()) * (number > 3) for number in range(16)])


@reference("hints", x=floats("f4", 600), out=empty("f4", 600), n=value(3), stride=value(16))
def hints(m: Model, x, out, n, stride) -> None:
    index = (np.arange(16) * n % stride)[:, None] + (np.arange(32) // 4)[None, :]
    m.store("out", index, x[index])


# Aggregates ----------------------------------------------------------------------------------------------------------


@reference("aggregate_methods", grid=(3, 1, 1), x=floats("f4", 1200), out=empty("f4", 1200), n=value(13))
def aggregate_methods(m: Model, x, out, n) -> None:
    index = m.pid[0] * 64 + I64
    other = index + n * 64
    a = np.where(index < 1000, x[index], F4(0))
    b = np.where(other < 1000, x[np.minimum(other, 1199)], F4(-1))
    m.store("out", index, a + b)


@reference("nested_aggregates", x=floats("f4", 400), y=floats("f4", 400), out=empty("f4", 32), n=value(5))
@reference("nested_aggregates", x=floats("f4", 400), y=floats("f4", 400), out=empty("f4", 32), n=value(2))
def nested_aggregates(m: Model, x, y, out, n) -> None:
    total, position = np.zeros(32, F4), 0
    for _ in range(n):
        total = total + x[position * 32 + LANES] * y[n * 32 + LANES]
        position += 1
    if n > 3:
        position -= 2
    m.store("out", LANES, total + x[position * 32 + LANES])


# Addresses in memory -------------------------------------------------------------------------------------------------


def _point_into_x(starts: dict[str, int], arrays: dict[str, np.ndarray]) -> None:
    arrays["p"][0] = starts["x"] + 40 * 4


@reference("pointers", prepare=_point_into_x, x=floats("f4", 200), y=floats("f2", 32), p=empty("i8", 2), n=value(7),
           u=value(3), out=empty("f4", 300))  # fmt: skip
def pointers(m: Model, x, y, p, n, u, out) -> None:
    for row, values in enumerate((x[:32], x[:32], x[n:], x[u:], x[64:32:-1], y, x[40:])):
        m.store("out", row * 32 + LANES, values[:32])
    m.store("p", 1, m.starts["x"])


def _point_after_the_table(starts: dict[str, int], arrays: dict[str, np.ndarray]) -> None:
    # The last numbers of the table itself are what is pointed to: 32 halves in 8 words for each group.
    arrays["table"][:3] = [starts["table"] + 8 * (4 + 8 * group) for group in (2, 0, 1)]


@reference("pointers_from_memory", prepare=_point_after_the_table,
           table=lambda rng: np.append(np.zeros(4, "i8"), rng.standard_normal(96).astype("f2").view("i8")),
           out=empty("f4", 96), n=value(3))  # fmt: skip
def pointers_from_memory(m: Model, table, out, n) -> None:
    for group, place in enumerate((2, 0, 1)):
        first = 4 + 8 * place
        m.store("out", group * 32 + LANES, table[first : first + 8].view(F2))


@reference("debugging", x=floats("f4", 32), out=empty("f4", 32), n=value(2))
def debugging(m: Model, x, out, n) -> None:
    m.store("out", LANES, x)
