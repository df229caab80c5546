"""References of the corpus's kernels with tensor descriptors."""

import ml_dtypes
import numpy as np

from tests.unit.interpreter.stock.control import normal
from tests.unit.interpreter.stock.running import Expected, Run, nan, reference
from tlx_xdsl import TensorDescriptor

describe = TensorDescriptor.from_tensor


@reference("host_descriptor_copy")
def host_descriptor_copy(rng):
    source = normal(rng, 100, 264, dtype=np.float16)
    target = nan(source.shape, np.float16)
    block = [64, 128]
    return Run({"source": describe(source, block), "target": describe(target, block)}, {"target": source * 2}, (2, 3))


@reference("device_descriptor_copy")
def device_descriptor_copy(rng):
    rows, cols = 50, 144
    x, out = normal(rng, rows, cols), nan((rows, cols))
    expected = Expected(np.exp(x.astype(np.float64)), 1e-6)
    return Run({"x": x, "out": out, "rows": rows, "cols": cols}, {"out": expected}, (2,))


@reference("descriptor_reductions")
def descriptor_reductions(rng):
    shape, block = (40, 64), [16, 32]
    f, h = normal(rng, *shape), normal(rng, *shape, dtype=ml_dtypes.bfloat16)
    i = rng.integers(-8, 8, shape).astype(np.int32)
    u = rng.integers(0, 4, shape).astype(np.uint32)
    expected = [array.copy() for array in (f, h, i, u)]
    one = ml_dtypes.bfloat16(1)
    expected[0][:, :32] += 1
    expected[1][:, :32] += one
    expected[1][:, 32:] = np.minimum(expected[1][:, 32:], one)
    expected[2][:, :32] = np.maximum(expected[2][:, :32], 1) & 1
    expected[2][:, 32:] = (expected[2][:, 32:] | 1) ^ 1
    expected[3][:, :32] = np.minimum(expected[3][:, :32], 1)
    names = ("f", "h", "i", "u")
    arguments = {name: describe(array, block) for name, array in zip(names, (f, h, i, u), strict=True)}
    return Run(arguments, dict(zip(names, expected, strict=True)), (3,))


@reference("descriptor_gather_and_scatter")
def descriptor_gather_and_scatter(rng):
    source, target = normal(rng, 100, 128, dtype=np.float16), nan((100, 128), np.float16)
    rows = rng.permutation(100)[:32].astype(np.int32)
    expected = target.copy()
    expected[rows] = source[rows] + np.float16(1)
    arguments = {"source": describe(source, [1, 64]), "target": describe(target, [1, 64]), "rows": rows}
    return Run(arguments, {"target": expected}, (2,))


@reference("descriptor_matmul", "descriptor_matmul_warp_specialized", "descriptor_matmul_warp_specialized_small")
def descriptor_matmul(name, rng):
    dtype = ml_dtypes.bfloat16 if name == "descriptor_matmul_warp_specialized" else np.float16
    tile = 64 if name.endswith("small") else 128
    m, n, k = tile + 40, 2 * tile - 24, 328
    a, b, c = normal(rng, m, k, dtype=dtype), normal(rng, n, k, dtype=dtype), nan((m, n), dtype)
    expected = a.astype(np.float64) @ b.astype(np.float64).T
    arguments = {"a": describe(a, [tile, 64]), "b": describe(b, [tile, 64]), "c": describe(c, [tile, tile]), "K": k}
    tolerance = 4e-3 if dtype == ml_dtypes.bfloat16 else 6e-4
    return Run(arguments, {"c": Expected(expected, tolerance, 1)}, (-(-m // tile), -(-n // tile)))


@reference("persistent_matmul")
def persistent_matmul(rng):
    """Run the first two of 132 programs: each has a second tile of the 144, 132 tiles further on."""
    m, n, k = 1504, 1488, 208
    a, b = normal(rng, m, k, dtype=np.float16), normal(rng, n, k, dtype=np.float16)
    product = a.astype(np.float64) @ b.astype(np.float64).T
    expected = np.full((m, n), np.nan)
    for tile in (0, 1, 132, 133):
        rows, columns = (slice(128 * at, 128 * at + 128) for at in divmod(tile, 12))
        expected[rows, columns] = product[rows, columns]
    arguments = {"a": a, "b": b, "c": nan((m, n), np.float16), "M": m, "N": n, "K": k}
    return Run(arguments, {"c": Expected(expected, 6e-4, 1)}, (2,))


@reference("descriptor_of_rank_four")
def descriptor_of_rank_four(rng):
    shape, block = (5, 4, 8, 16), [2, 4, 8, 16]
    source = normal(rng, *shape, dtype=ml_dtypes.float8_e4m3fn)
    target = np.zeros(shape, ml_dtypes.float8_e4m3fn)
    # Program 4 copies one row that is inside and one that is not.
    arguments = {"source": describe(source, block), "target": describe(target, block)}
    return Run(arguments, {"target": source.copy()}, (4,))


@reference("descriptor_in_a_loop")
def descriptor_in_a_loop(rng):
    n = 6
    source, other = normal(rng, 40, 32), normal(rng, n, 32)
    # 16 rows of the result: the descriptor made in the loop reads the first n of what it is given.
    out = normal(rng, 16, 32)
    padded = [np.concatenate([array[:n], np.zeros((40, 32), np.float32)]) for array in (other, out)]
    total = np.zeros((16, 32), np.float32)
    for i in range(n):
        rows = padded[0] if i <= 3 else padded[1]
        total = total + (rows[i : i + 16] + rows[i + 16 : i + 32])
    tail = np.concatenate([source, np.zeros((40, 32), np.float32)])
    total = total + (tail[n : n + 16] + tail[n + 16 : n + 32])
    arguments = {"source": describe(source, [16, 32]), "other": other, "out": out, "n": n}
    return Run(arguments, {"out": Expected(total, 1e-6, 1)})
