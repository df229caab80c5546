"""References of the corpus's matrix products and attention."""

import ml_dtypes
import numpy as np

from tests.unit.interpreter.stock.control import normal
from tests.unit.interpreter.stock.running import Expected, Run, nan, reference

BF16 = ml_dtypes.bfloat16
E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
MATMULS = {
    # Types of the operands and the result, the tile, and the tolerance: rounding of the result, or of the operands.
    "matmul_fp16": (np.float16, np.float16, np.float16, (128, 128, 64), 6e-4),
    "matmul_bf16": (BF16, BF16, np.float32, (128, 128, 64), 1e-5),
    "matmul_fp8": (E4M3, E5M2, np.float16, (128, 128, 64), 6e-4),
    "matmul_tf32": (np.float32, np.float32, np.float32, (128, 128, 32), 3e-3),
    "matmul_tf32x3": (np.float32, np.float32, np.float32, (128, 128, 32), 1e-5),
    "matmul_bf16x3": (np.float32, np.float32, np.float32, (128, 128, 32), 1e-4),
    "matmul_ieee": (np.float32, np.float32, np.float32, (32, 32, 16), 1e-5),
    "matmul_small_tile": (np.float16, np.float16, np.float32, (16, 32, 32), 1e-5),
}


def wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64)


@reference(*MATMULS)
def matmul(name, rng):
    left, right, result, (bm, bn, bk), tolerance = MATMULS[name]
    m, n, k = bm + bm // 2, 2 * bn - 16, 4 * bk + 16
    # Only K is masked in the loads.
    a, b = normal(rng, 2 * bm, k, dtype=left), normal(rng, k, 2 * bn, dtype=right)
    c = nan((m, n), result)
    expected = (wide(a) @ wide(b))[:m, :n]
    arguments = {"a": a, "b": b, "c": c, "M": m, "N": n, "K": k, "stride_am": k, "stride_bk": 2 * bn}
    return Run(arguments, {"c": Expected(expected, tolerance, np.sqrt(k))}, (2, 2))


@reference("matmul_int8")
def matmul_int8(rng):
    k = 192
    a, b = (rng.integers(-128, 128, (64, k)).astype(np.int8) for _ in range(2))
    expected = a.astype(np.int32) @ b.astype(np.int32).T
    return Run({"a": a, "b": b, "c": np.zeros((64, 64), np.int32), "K": k}, {"c": expected})


@reference("matmul_batched")
def matmul_batched(rng):
    a, b = normal(rng, 4, 32, 32, dtype=np.float16), normal(rng, 4, 32, 32, dtype=np.float16)
    return Run({"a": a, "b": b, "c": nan(a.shape, np.float16)}, {"c": Expected(wide(a) @ wide(b), 1e-3, 6)})


@reference("matmul_fp64")
def matmul_fp64(rng):
    a, b = rng.standard_normal((32, 32)), rng.standard_normal((32, 32))
    return Run({"a": a, "b": b, "c": nan((32, 32), np.float64)}, {"c": Expected(a @ b, 1e-14, 6)})


@reference("matmul_weights", "matmul_weights_warp_specialized")
def matmul_weights(name, rng):
    k = 256
    x, w = normal(rng, 64, k, dtype=np.float16), rng.integers(-9, 9, (k, 64)).astype(np.int8)
    expected = np.tile(wide(x) @ wide(w), (4, 1))
    return Run({"x": x, "w": w, "out": nan((256, 64), np.float16), "K": k}, {"out": Expected(expected, 6e-4, 10)})


@reference("matmul_chain")
def matmul_chain(rng):
    a, b = normal(rng, 64, 64, dtype=np.float16), normal(rng, 64, 64, dtype=np.float16)
    bias = normal(rng, 64)
    first = np.maximum(wide(a) @ wide(b).T + bias, 0).astype(np.float16)
    arguments = {"a": a, "b": b, "c": nan((64, 64)), "bias": bias}
    return Run(arguments, {"c": Expected(wide(first) @ wide(b), 1e-3, 60)})


FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def unpacked(array: np.ndarray, axis: int) -> np.ndarray:
    """Numbers of type e2m1 that lie in pairs along an axis, the low half first."""
    pairs = np.stack([FP4[array & 15], FP4[array >> 4]], axis + 1)
    shape = list(array.shape)
    shape[axis] *= 2
    return pairs.reshape(shape)


def scales(rng, rows: int, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Exponents of type e8m0, and the factors for 32 numbers each."""
    exponents = rng.integers(120, 134, (rows, groups)).astype(np.uint8)
    return exponents, np.repeat(2.0 ** (exponents.astype(np.float64) - 127), 32, 1)


@reference("dot_scaled_fp4", "dot_scaled_fp8", "dot_scaled_one_side")
def dot_scaled(name, rng):
    block, k = 128, 64 if name == "dot_scaled_one_side" else 128
    b_scale, right = scales(rng, block, k // 32)
    left = np.ones((block, k))
    arguments = {}
    if name == "dot_scaled_fp4":
        a = rng.integers(0, 256, (block, k // 2)).astype(np.uint8)
        x = unpacked(a, 1)
    else:
        a = normal(rng, block, k, dtype=E4M3 if name == "dot_scaled_fp8" else BF16)
        x = wide(a)
    arguments["a"] = a
    if name != "dot_scaled_one_side":
        arguments["a_scale"], left = scales(rng, block, k // 32)
    if name == "dot_scaled_fp8":
        b = normal(rng, k, block, dtype=E5M2)
        y = wide(b)
    else:
        b = rng.integers(0, 256, (k // 2, block)).astype(np.uint8)
        y = unpacked(b, 0)
    expected = (x * left) @ (y * right.T)
    arguments |= {"b": b, "b_scale": b_scale, "c": nan((block, block))}
    return Run(arguments, {"c": Expected(expected, 1e-5, np.abs(expected).max())})


@reference("dot_scaled_packed_along_rows")
def dot_scaled_packed_along_rows(rng):
    block = 128
    a = rng.integers(0, 256, (block // 2, block)).astype(np.uint8)
    b = rng.integers(0, 256, (block, block // 2)).astype(np.uint8)
    scale = np.zeros(8192, np.uint8)
    (x_scale, left), (y_scale, right) = scales(rng, block, 4), scales(rng, block, 4)
    scale[:512], scale[4096:4608] = x_scale.ravel(), y_scale.ravel()
    expected = (unpacked(a, 0) * left) @ (unpacked(b, 1) * right.T)
    arguments = {"a": a, "b": b, "scale": scale, "c": nan((block, block), BF16)}
    return Run(arguments, {"c": Expected(expected, 4e-3, np.abs(expected).max() * 1e-3)})


@reference("attention", "attention_causal")
def attention(name, rng):
    causal = name == "attention_causal"
    d, heads, n = (128, 1, 640) if causal else (64, 2, 512)
    dtype = BF16 if causal else np.float16
    q, k, v = (normal(rng, heads, n, d, dtype=dtype) for _ in range(3))
    scale = 0.125
    logits = wide(q) @ wide(k).transpose(0, 2, 1) * scale
    if causal:
        logits = np.where(np.tri(n, dtype=np.bool_), logits, -np.inf)
    p = np.exp2(logits - logits.max(-1, keepdims=True))
    expected = p / p.sum(-1, keepdims=True) @ wide(v)
    arguments = {"q": q, "k": k, "v": v, "out": nan(q.shape, dtype), "scale": scale, "n": n}
    return Run(arguments, {"out": Expected(expected, 1e-2 if causal else 2e-3, 1)}, (n // 128, heads))


@reference("matmul_two_ctas")
def matmul_two_ctas(rng):
    k = 256
    a, b = normal(rng, 128, k, dtype=np.float16), normal(rng, k, 128, dtype=np.float16)
    arguments = {"a": a, "b": b, "c": nan((128, 128), np.float16), "K": k}
    return Run(arguments, {"c": Expected(wide(a) @ wide(b), 6e-4, 10)})


@reference("matmul_dynamic")
def matmul_dynamic(rng):
    a, b = normal(rng, 3, 64, 64, dtype=np.float16), normal(rng, 3, 64, 64, dtype=np.float16)
    arguments = {"a": a, "b": b, "c": nan(a.shape, np.float16), "tiles": a.size}
    return Run(arguments, {"c": Expected(wide(a) @ wide(b), 6e-4, 8)}, (3,))
