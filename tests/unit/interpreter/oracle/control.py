"""Loops, conditions, early returns, calls, tuples, compile-time values."""

from __future__ import annotations

import numpy as np

from tests.unit.interpreter.oracle.checking import Model, empty, floats, positive, reference, value
from tests.unit.interpreter.oracle.integers import LANES

F2, F4 = np.float16, np.float32
I64, I128 = np.arange(64), np.arange(128)


@reference("row_walk", x=floats("f4", 500), out=empty("f4", 128), rows=value(4), columns=value(100))
def row_walk(m: Model, x, out, rows, columns) -> None:
    best, sums = np.full(64, F4(-1.0e30)), np.zeros(64, F4)
    for row in range(rows):
        for start in range(0, columns, 64):
            index = start + I64
            a = np.where(index < columns, x[np.minimum(row * columns + index, 499)], F4(0))
            sums = sums + a
            best = np.maximum(best, a)
        best = best - F4(0.5)
    m.store("out", I64, sums)
    m.store("out", 64 + I64, best)


@reference("downward", x=floats("f4", 50), out=empty("f4", 1), n=value(21), step=value(4))
def downward(m: Model, x, out, n, step) -> None:
    total = F4(0)
    for i in range(n, 0, -2):
        total += x[i]
    for i in range(0, n, step):
        total *= x[i]
    for i in range(-4, n):
        total -= x[i + 4]
    m.store("out", 0, total)


@reference("branches", x=floats("f4", 128), out=empty("f4", 256), n=value(5), mode=value(0))
@reference("branches", x=floats("f4", 128), out=empty("f4", 256), n=value(11), mode=value(1))
@reference("branches", x=floats("f4", 128), out=empty("f4", 256), n=value(12), mode=value(7))
@reference("branches", x=floats("f4", 128), out=empty("f4", 256), n=value(3), mode=value(7))
def branches(m: Model, x, out, n, mode) -> None:
    scale, shift = {0: (x * F4(2), 3), 1: (x + F4(1), 1)}.get(mode, (-x, 2) if mode < n else (x, 1))
    if n > 10:
        m.store("out", 128 + I128, x)
    m.store("out", I128, scale + F4(shift))


@reference("loop_with_branches", x=floats("f4", 640), out=empty("f4", 64), n=value(10))
@reference("loop_with_branches", x=floats("f4", 640), out=empty("f4", 64), n=value(0))
def loop_with_branches(m: Model, x, out, n) -> None:
    total, even, last = np.zeros(64, F4), 0, -1
    for i in range(n):
        a = x[i * 64 + I64]
        if i % 2 == 0:
            even, total = even + 1, total + a
        elif i > 5:
            total, last = total - a, i
    m.store("out", I64, total * F4(even) + F4(last))


@reference("guards", grid=(6, 1, 1), x=floats("f4", 640), out=empty("f4", 640), n=value(5))
def guards(m: Model, x, out, n) -> None:
    pid = m.pid[0]
    if pid < n:
        index = pid * 128 + I128
        m.store("out", index, x[index] * F4(1 if pid == 3 else 0.25))


@reference("ternaries", x=floats("f4", 100), out=empty("f4", 64), n=value(200))
@reference("ternaries", x=floats("f4", 100), out=empty("f4", 64), n=value(33))
def ternaries(m: Model, x, out, n) -> None:
    limit = n if n < 64 else 64 if n < 1000 else 128
    m.store("out", I64, x[I64 + (16 if n > 100 else 0)] * F4(2), limit > I64)


@reference("booleans", x=floats("f4", 8), out=empty("f4", 8), n=value(5), m=value(6))
@reference("booleans", x=floats("f4", 8), out=empty("f4", 8), n=value(0), m=value(1))
@reference("booleans", x=floats("f4", 8), out=empty("f4", 8), n=value(9), m=value(-3))
def booleans(m_: Model, x, out, n, m) -> None:
    m_.store("out", 1, 2.0)
    for place, holds in enumerate((n > 3 and m > 4, n == 0 or m != 1, (n > 0 and m > 0) or n == m, 0 < n < 9, True)):
        if holds:
            m_.store("out", place + 2, place + 3.0)


@reference("unrolled", x=floats("f4", 96), out=empty("f4", 400))
def unrolled(m: Model, x, out) -> None:
    total = np.zeros(32, F4)
    for i in range(3):
        total = (total * F4(2) if i % 2 else total) + x[i * 32 + LANES]
    for i in (4, 2):
        m.store("out", 64 * i + np.arange(8 * i), i)
    m.store("out", LANES, total)


@reference("range_options", x=positive("f2", 640, 0.5, 1.5), out=empty("f4", 64), n=value(5))
def range_options(m: Model, x, out, n) -> None:
    total = np.zeros(64, F4)
    row = [x[i * 64 + I64].astype(F4) for i in range(n)]
    for i in range(n):
        total = total + row[i]
    for i in range(0, n, 2):
        total = total - row[i]
    for i in range(n):
        total = total + (x[i * 64 + I64] * F2(2)).astype(F4)
    for i in range(n):
        total = total * row[i]
    for i in range(n):
        for j in range(i):
            total = total + row[j]
    for i in range(n):
        total = total - row[i]
    m.store("out", I64, total)


@reference("condition_wrapper", x=floats("f4", 20), out=empty("f4", 1), n=value(19))
def condition_wrapper(m: Model, x, out, n) -> None:
    total = F4(0)
    for i in range(n):
        total += x[i]
    m.store("out", 0, total)


@reference("pointer_walk", x=floats("f4", 100), out=empty("f4", 100), n=value(5))
def pointer_walk(m: Model, x, out, n) -> None:
    index = np.arange(16)
    for i in range(n):
        m.store("out", i * n + index, x[i * 16 + index])
    m.store("x", n * 16 + index, 0)


@reference("deep_nest", x=floats("f4", 400), out=empty("f4", 32), n=value(4), m=value(9))
def deep_nest(m_: Model, x, out, n, m) -> None:
    total, turns = np.zeros(32, F4), 0
    for i in range(n):
        for left in range(m, i, -1):
            if left % 3 == 0:
                for k in range(left):
                    total, turns = total + x[k * 32 + LANES], turns + 1
            else:
                total = total * F4(0.5)
    m_.store("out", LANES, total + F4(turns))


@reference("tuple_in_loop", x=floats("f4", 64), out=empty("f4", 64), n=value(7))
def tuple_in_loop(m: Model, x, out, n) -> None:
    a, b = x[:32].copy(), x[32:].copy()
    low, high, first, second = 0, 0, a, n
    for i in range(n):
        a, b = b, a + b
        low, high = high, i
        first, second = first * F4(2), second - 1
    m.store("out", LANES, a - b + F4(low) + F4(high))
    m.store("out", LANES + 32, first + F4(second))


@reference("exchanged_aliases", x=floats("f4", 1), out=empty("f4", 2), n=value(7))
def exchanged_aliases(m: Model, x, out, n) -> None:
    a = b = x[0]
    for i in range(n):
        b, a = a, a + b + F4(i)
    m.store("out", 0, b)
    m.store("out", 1, a)


# Calls ---------------------------------------------------------------------------------------------------------------


@reference("nested_calls", x=floats("f4", 64), out=empty("f4", 65))
def nested_calls(m: Model, x, out) -> None:
    square = x[0] * x[0]
    m.store("out", I64, x * x + square * square)
    m.store("out", 64, x[1] * x[1] + F4(4))


@reference("defaults_and_keywords", x=floats("f4", 128), out=empty("f4", 128), n=value(70))
def defaults_and_keywords(m: Model, x, out, n) -> None:
    a = np.where(I128 < 100, x, F4(0))
    b = np.where(n > I128, x, F4(1))
    c = np.where((I128 >= 3) & (n > I128), F4(2), x)
    m.store("out", I128, a + b * c)


@reference("tuples", x=floats("f4", 64), out=empty("f4", 192))
def tuples(m: Model, x, out) -> None:
    a, b = x[:32], x[32:]
    low, high = np.minimum(a, b), np.maximum(a, b)
    first, second = np.minimum(low + F4(1), high - F4(1)), np.maximum(low + F4(1), high - F4(1))
    for i, values in enumerate((low, high, second, a)):
        m.store("out", i * 32 + LANES, values)
    m.store("out", 128 + LANES, first + second + b)
    m.store("out", 160 + LANES, b - low)


@reference("spread_arguments", x=floats("f4", 32), out=empty("f4", 65), n=value(6))
def spread_arguments(m: Model, x, out, n) -> None:
    m.store("out", LANES, x + x * F4(2) + F4(n))
    m.store("out", 32 + LANES, x + F4(n) + F4(2) + F4(1))
    m.store("out", 64, n)


@reference("tuple_argument", pair=lambda rng: (rng.standard_normal(64).astype("f4"), 40), out=empty("f4", 64))
def tuple_argument(m: Model, pair, out) -> None:
    m.store("out", I64, np.where(pair[1] > I64, pair[0], F4(0)))


@reference("named_tuples", x=floats("f4", 300), out=empty("f4", 65), low=value(5), high=value(50), stride=value(3))
def named_tuples(m: Model, x, out, low, high, stride) -> None:
    start, end = low - 2, high + 2
    m.store("out", I64, x[I64 * stride] * F4(start) + F4(end), (start <= I64) & (end > I64))
    m.store("out", 64, end)


@reference("separate_functions", x=floats("f4", 128), y=floats("f2", 128), out=floats("f4", 128))
def separate_functions(m: Model, x, y, out) -> None:
    total = np.abs(x.astype("f8")).sum() * 2
    small = np.abs(y.astype("f8")).sum() * total * total
    m.store("out", I128, out.astype("f8") * (total + x.max() + small), ulp=16)


@reference("separate_function_with_branches", x=floats("f4", 20, 3.0), out=empty("f4", 1), n=value(20))
def separate_function_with_branches(m: Model, x, out, n) -> None:
    total = F4(0)
    for i in range(n):
        total += F4(4) if x[i] > 4 else x[i] * F4(2)
    m.store("out", 0, total)


@reference("functions_as_values", x=floats("f4", 32), out=empty("f4", 32))
def functions_as_values(m: Model, x, out) -> None:
    other = x + F4(1)
    m.store("out", LANES, x * x + other * other + (x + F4(1)))


@reference("shadowing", x=floats("f4", 32), out=empty("f4", 64), n=value(3))
def shadowing(m: Model, x, out, n) -> None:
    b = (x + F4(n)) * F4(n + 1)
    m.store("out", LANES, (x + b).astype(F2) + F2(n))
    m.store("out", 32 + LANES, 3)


@reference("order_of_arguments", x=lambda _rng: np.array([10], "i4"), out=empty("i4", 3))
def order_of_arguments(m: Model, x, out) -> None:
    # Additions from left to right; each gives what was there before.
    m.store("out", 0, 10 - 11)
    m.store("out", 1, 13 - 16)
    m.store("out", 2, 20 - 25)
    m.write("x", 0, 31)


# Compile-time values -------------------------------------------------------------------------------------------------


@reference("activation_relu", x=floats("f4", 64), out=empty("f4", 64))
def activation_relu(m: Model, x, out) -> None:
    m.store("out", I64, np.where(x > 0, x * F4(0.125), F4(0)))


@reference("activation_square", x=floats("f4", 64), out=empty("f4", 64))
def activation_square(m: Model, x, out) -> None:
    m.store("out", I64, (x * F4(0.125)) * (x * F4(0.125)))


@reference("activation_none", x=floats("f4", 64), out=empty("f4", 64))
def activation_none(m: Model, x, out) -> None:
    m.store("out", I64, x * F4(0.125))


@reference("compile_time_arithmetic", x=floats("f4", 64), out=empty("f4", 64))
def compile_time_arithmetic(m: Model, x, out) -> None:
    m.store("out", I64, x * F4(1.5) + F4(35) + F4(3), I64 < 48)


@reference("compile_time_words", x=floats("f4", 32), out=empty("f4", 32))
def compile_time_words(m: Model, x, out) -> None:
    m.store("out", LANES, x)


@reference("types_and_shapes_as_values", x=floats("f4", 32), out=empty("f4", 32))
def types_and_shapes_as_values(m: Model, x, out) -> None:
    m.store("out", LANES.reshape(4, 8), ((x + F4(0)) + x.astype(F2).astype(F4)).reshape(4, 8))


@reference("constant_then_changed", x=positive("f4", 20, 0, 6), out=empty("f4", 3), n=value(20))
def constant_then_changed(m: Model, x, out, n) -> None:
    above = int((x > 3).sum())
    m.store("out", 0, F4(3 * above) * F4(1.5 * 2.0**above))
    m.store("out", 1, above > 0)
    m.store("out", 2, (1 << 40) + 3 * above)


@reference("constants_from_functions", grid=(2, 1, 1), out=empty("f4", 16))
def constants_from_functions(m: Model, out) -> None:
    m.store("out", 0, 16)
    m.store("out", 1, 32.5)
    m.store("out", np.arange(16), 32 * m.pid[0])
