"""References of the corpus's kernels with loops, conditions, calls and early returns."""

import numpy as np

from tests.unit.interpreter.stock.running import Expected, Run, nan, reference

F32 = np.float32


def normal(rng: np.random.Generator, *shape: int, dtype=F32) -> np.ndarray:
    return rng.standard_normal(shape).astype(dtype)


@reference("nested_loops_and_conditions")
def nested(rng):
    n, limit, block = 9, F32(2.5), 128
    x, out = normal(rng, n * block), nan(block)
    total, steps = np.zeros(block, F32), 0
    for i in range(n):
        a = x[i * block : (i + 1) * block]
        if i % 2 == 0:
            total = total + a
            while total.max() > limit:
                total = total * F32(0.5)
                steps += 1
        elif i % 3 == 0:
            for j in range(i, 0, -1):
                total = total - a * F32(j)
        else:
            total = np.where(total > 0, total, a)
    return Run({"x": x, "out": out, "n": n, "limit": float(limit)}, {"out": total + F32(steps)})


@reference("collatz")
def collatz(rng):
    x = rng.integers(1, 100, 6).astype(np.int32)
    steps = []
    for value in x.tolist():
        count = 0
        while value != 1 and count < 60:
            value, count = (value // 2 if value % 2 == 0 else 3 * value + 1), count + 1
        steps.append(count)
    return Run({"x": x, "out": np.full(6, -1, np.int32), "n": 60}, {"out": np.array(steps, np.int32)}, (6,))


@reference("early_return")
def early_return(rng):
    x = normal(rng, 6 * 128)
    x[:128] -= 1
    out = nan(6 * 128)
    rows = x.reshape(6, 128)
    expected = np.where(rows.sum(1, keepdims=True) < 0, -rows, rows)
    expected[4:] = np.nan
    return Run({"x": x, "out": out, "n": 500}, {"out": expected.ravel()}, (6,))


@reference("calls")
def calls(rng):
    x, y, out = normal(rng, 128), normal(rng, 128, dtype=np.float16) * np.float16(1e-3), normal(rng, 128)
    total = np.abs(x).sum(dtype=np.float64) * 2
    small = (np.abs(y).astype(np.float64) * total**2).sum()
    return Run({"x": x, "y": y, "out": out}, {"out": Expected(out * (total + x.max() + small), 2e-3)})


@reference("pipelined_loop")
def pipelined_loop(rng):
    n = 7
    x, y = normal(rng, n * 256), normal(rng, n * 256)
    expected = (x.astype(np.float64) * y).reshape(n, 256).sum(0)
    return Run({"x": x, "y": y, "out": nan(256), "n": n}, {"out": Expected(expected, 1e-6, 5)})


@reference("loop_options")
def loop_options(rng):
    n = 5
    x, out = normal(rng, n * 256), nan(n * 256)
    rows = x.reshape(n, 256)
    total = rows.sum(0, dtype=F32)
    for i in range(n):
        total = total * x[i]
    expected = np.empty((n, 256), F32)
    for i in range(n):
        for j in range(i):
            total = total + rows[j]
        expected[i] = total
    expected[0] = total + 3
    return Run({"x": x, "out": out, "n": n}, {"out": Expected(expected.ravel(), 1e-5, 1)})


@reference("wide_loop_bounds")
def wide_loop_bounds(rng):
    low, high, step = -5_000_000_000, 9_000_000_000, 1_000_000_001
    expected = low + sum(range(low, high, step))
    out = np.zeros(1, np.int64)
    return Run({"out": out, "low": low, "high": high, "step": step}, {"out": np.array([expected], np.int64)})


@reference("choices")
def choices(rng):
    x = normal(rng, 128)
    mode = int(rng.integers(0, 12))
    a = x + F32(1)
    scale, bias = (0.5, a) if mode in (0, 3) else (2.0, -a) if 1 < mode < 9 else (1.0, a * a)
    return Run({"x": x, "out": nan(128), "mode": mode}, {"out": a * F32(scale) + bias})


@reference("unsigned_loop_bounds")
def unsigned_loop_bounds(rng):
    x, n, m = normal(rng, 40), 7, 12
    total = F32(0)
    for i in range(n):
        total = total + x[i]
    for i in range(m, m + 8, 2):
        total = total * x[i]
    return Run({"x": x, "out": nan(1), "n": n, "m": m}, {"out": np.array([total])})


@reference("tuples_and_several_returns")
def tuples_and_several_returns(rng):
    n, limit = 12, F32(0.3)
    x = normal(rng, n + 1)
    out = np.zeros(n, F32)
    expected = out.copy()
    for i in range(n):
        a = x[i]
        if a > limit and a > 2 * limit:
            value = a
        else:
            a = a - limit if a > limit else a
            b = x[i + 1] * a
            value = b * F32(2) if b > limit else b
        if value < 0:
            expected[0] = value
        else:
            for j in range(i):
                value = value + x[j]
            expected[i] = value
    return Run({"x": x, "pair": (out, n), "limit": float(limit)}, {"pair": expected})


@reference("flattened_loops")
def flattened_loops(rng):
    n = 4
    x, out = normal(rng, n * 128), nan(n * 128)
    total = np.zeros(128, F32)
    for row in x.reshape(n, 128):
        total = total + row
    return Run({"x": x, "out": out, "n": n}, {"out": np.tile(total, n)})
