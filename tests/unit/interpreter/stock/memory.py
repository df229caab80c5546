"""References of the corpus's loads, stores and atomics."""

import numpy as np

from tests.unit.interpreter.stock.control import normal
from tests.unit.interpreter.stock.running import Expected, Run, nan, reference

F32 = np.float32


@reference("cache_modifiers")
def cache_modifiers(rng):
    n = 2048
    x, y = normal(rng, n), normal(rng, n, dtype=np.float16)
    total = x + y.astype(F32) + x + y.astype(F32)
    total[0] = 1
    return Run({"x": x, "y": y, "out": nan(n), "n": n}, {"out": total}, (2,))


@reference("masked_tile_with_wide_offsets")
def masked_tile_with_wide_offsets(rng):
    rows, cols, stride = 70, 150, 160
    x, out = normal(rng, rows, stride), nan((rows, stride))
    expected = out.copy()
    expected[:, :cols] = x[:, :cols]
    arguments = {"x": x, "out": out, "rows": rows, "cols": cols, "stride": stride}
    return Run(arguments, {"out": expected}, (2, 2))


@reference("compiler_hints")
def compiler_hints(rng):
    x = normal(rng, 32, 64)
    n = np.arange(64) // 16
    return Run({"x": x, "out": nan((32, 64)), "stride": 64}, {"out": x[:, n]})


@reference("program_ids")
def program_ids(rng):
    grid = (2, 3, 4)
    return Run({"out": np.zeros(24 * 128, np.int32)}, {"out": np.full(24 * 128, 4, np.int32)}, grid)


@reference("scalars_and_booleans")
def scalars_and_booleans(rng):
    x, flag, y = normal(rng, 128), rng.integers(0, 2, 128).astype(np.bool_), normal(rng, 1)
    on, scale, half = bool(rng.integers(0, 2)), F32(0.7), F32(0.5)
    out = nan(128)
    a = np.where(flag, x, scale) * half
    expected = out.copy()
    if on:
        expected[0] = y[0] * scale
        expected = np.where(flag, a, expected)
    arguments = {"x": x, "flag": flag, "out": out, "y": y, "scale": float(scale), "half": float(half), "on": on}
    return Run(arguments, {"out": Expected(expected, 1e-3), "flag": a > y[0]})


@reference("atomic_updates")
def atomic_updates(rng):
    index = np.arange(256, dtype=np.int32)
    inside = index < 200
    x, h = normal(rng, 256), normal(rng, 256, dtype=np.float16)
    i, u = rng.integers(-1000, 1000, 256).astype(np.int32), rng.integers(0, 2**32, 256).astype(np.uint32)
    w = rng.integers(-(10**12), 10**12, 256)
    # What is masked off gives back 0: there the result does not depend on it.
    u[~inside] = 0xFFFFFFFF
    out_i, old = i + index, i.copy()
    old = old + np.where(inside, out_i, 0)
    out_i = np.where(inside, out_i & 255, out_i)
    old, out_i = old + out_i, out_i | 1
    old, out_i = old + out_i, out_i ^ 2
    exchanged = np.where(inside, old, out_i)
    old = old + np.where(inside, out_i, 0)
    out_i = exchanged
    old, out_i = old + out_i, np.maximum(out_i, 3)
    old, out_i = old + out_i, np.minimum(out_i, -3)
    before = u.copy()
    raised = np.maximum(u, old.astype(np.uint32))
    unsigned = before + raised
    expected = {
        "x": np.where(inside, x + F32(1.5), x),
        "h": h + np.float16(0.5),
        "i": out_i,
        "u": np.minimum(raised, 5),
        "w": w + unsigned.astype(np.int64),
    }
    return Run({"x": x.copy(), "h": h.copy(), "i": i, "u": u, "w": w.copy()}, expected)


@reference("atomic_float_extremes")
def atomic_float_extremes(rng):
    x = normal(rng, 128)
    raised = np.where(np.arange(128) < 100, np.maximum(x, x * 2), x)
    return Run({"x": x}, {"x": np.minimum(raised, x)})


@reference("spin_lock")
def spin_lock(rng):
    x = normal(rng, 128)
    slots = np.arange(128, dtype=np.int64) % 7
    expected = np.where(slots == np.arange(128), -1, slots)
    return Run(
        {"lock": np.zeros(1, np.int32), "total": np.zeros(1, F32), "x": x, "slots": slots},
        {"lock": np.zeros(1, np.int32), "total": Expected(np.array([5 * x.sum(dtype=np.float64)]), 1e-5, 1)}
        | {"slots": expected},
        (5,),
    )


@reference("gather_columns")
def gather_columns(rng):
    m, n = 32, 64
    x, order = normal(rng, m, n), rng.integers(0, n, (m, n)).astype(np.int32)
    expected = np.take_along_axis(x, order, 1) + np.take_along_axis(x, order % m, 0)
    return Run({"x": x, "order": order, "out": nan((m, n))}, {"out": expected})


@reference("embedding_lookup")
def embedding_lookup(rng):
    table, index = normal(rng, 100, 64, dtype=np.float16), rng.integers(0, 100, 96).astype(np.int32)
    return Run({"index": index, "table": table, "out": nan((96, 64), np.float16)}, {"out": table[index]}, (3,))


@reference("block_pointers")
def block_pointers(rng):
    rows, cols = 100, 80
    x = normal(rng, rows, cols, dtype=np.float16)
    return Run({"x": x, "out": nan((rows, cols), np.float16), "rows": rows, "cols": cols}, {"out": x * 2}, (2,))


@reference("dependent_launch")
def dependent_launch(rng):
    x = normal(rng, 512)
    return Run({"x": x, "out": nan(512)}, {"out": x * x}, (2,))
