"""The kernels of `kernels/`, for clusters and for Blackwell, with small inputs and numpy references."""

import ml_dtypes
import numpy as np

import tlx_xdsl
from tests.gallery.synchronisation import (
    attention,
    clc_gemm,
    cluster_gemm,
    cluster_hand_over,
    cluster_square_gemm,
    layer_norm,
    mx_gemm,
    pair_gemm,
    pair_persistent,
    remote_ring,
)
from tests.gallery.synchronisation.example_runs import Case

TOLERANCE = 1e-3
"""Largest norm of the difference over the norm of the result: one rounding to f16."""


def _poisoned(shape, dtype):
    return np.full(shape, np.nan, dtype)


def _matrices(m, n, k, dtype=np.float16):
    rng = np.random.default_rng(m * 7919 + n * 31 + k)
    return rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)


def _product(a, b, c):
    return lambda: [(c, a.astype(np.float64) @ b.astype(np.float64))]


def multicast(m=200, n=168, k=200, **constexprs) -> Case:
    """The GEMM of pairs of CTAs that share the copies of B."""
    settings = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "NUM_STAGES": 2} | constexprs
    a, b = _matrices(m, n, k)
    c = _poisoned((m, n), np.float16)
    describe = tlx_xdsl.TensorDescriptor.from_tensor
    arguments = [describe(a, [64, 64]), describe(b, [32, 64]), describe(c, [64, 64]), m, n, k]
    grid = -(-m // 128) * 2 * -(-n // 64)
    options = {"cluster": (2, 1, 1), "target": "sm_90a"}
    return Case(cluster_gemm.matmul, (grid,), arguments, settings, options, _product(a, b, c), TOLERANCE)


def norm(m=20, n=500, size=4, **constexprs) -> Case:
    """The layer normalisation of rows that are spread over a cluster."""
    settings = {"BLOCK_M": 8, "BLOCK_N": 128, "SIZE": size} | constexprs
    x = np.random.default_rng(m + n).standard_normal((m, n)).astype(np.float32) * 3 + 1
    y = _poisoned(x.shape, np.float32)

    def results():
        wide = x.astype(np.float64)
        centred = wide - wide.mean(1, keepdims=True)
        return [(y, centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5))]

    options = {"cluster": (size, 1, 1), "target": "sm_90a"}
    return Case(layer_norm.layer_norm, (size, -(-m // 8)), [x, y, m, n, 1e-5], settings, options, results, 1e-5)


def ring(how, size=4, rows=16, columns=64, dtype=np.float16, **constexprs) -> Case:
    """The ring of CTAs, in two clusters; the sums are those of small integers, without rounding."""
    x = np.random.default_rng(size).integers(-8, 9, (2, size, rows, columns)).astype(dtype)
    y = np.zeros_like(x)
    settings = {"ROWS": rows, "COLUMNS": columns, "SIZE": size, "HOW": how} | constexprs
    options = {"cluster": (size, 1, 1), "target": "sm_90a"}

    def results():
        return [(y, np.broadcast_to(x.astype(np.float64).sum(1, keepdims=True), x.shape))]

    return Case(remote_ring.ring, (2 * size,), [x, y], settings, options, results, 1e-6)


def square(m=192, n=256, k=200, **constexprs) -> Case:
    """The GEMM of 2 x 2 CTAs that share the copies of A and B."""
    settings = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "NUM_STAGES": 2} | constexprs
    block_m, block_n, block_k = (settings[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    a, b = _matrices(m, n, k)
    b = np.ascontiguousarray(b.T)
    c = _poisoned((m, n), np.float16)
    describe = tlx_xdsl.TensorDescriptor.from_tensor
    arguments = [
        describe(a, [block_m // 2, block_k]), describe(b, [block_n // 2, block_k]), describe(c, [block_m, block_n]), k,
    ]  # fmt: skip
    grid = (-(-n // block_n // 2) * 2, -(-m // block_m // 2) * 2)
    options = {"cluster": (2, 2, 1), "target": "sm_90a"}
    return Case(cluster_square_gemm.matmul, grid, arguments, settings, options, _product(a, b.T, c), TOLERANCE)


def total(turns=3) -> Case:
    """The sum of tiles that threads read where TMA has put them for both CTAs of a pair."""
    x = np.random.default_rng(0).integers(-8, 9, (turns, 32, 32)).astype(np.float32)
    y = _poisoned((64, 32), np.float32)
    describe = tlx_xdsl.TensorDescriptor.from_tensor
    arguments = [describe(x.reshape(-1, 32), [16, 32]), describe(y, [32, 32])]
    settings = {"ROWS": 32, "COLUMNS": 32, "TURNS": turns}
    options = {"cluster": (2, 1, 1), "target": "sm_90a"}
    return Case(
        cluster_hand_over.total, (2,), arguments, settings, options, lambda: [(y, np.tile(x.sum(0), (2, 1)))], 1e-6
    )


def note(kernel) -> Case:
    """A buffer of numbers that both CTAs of a pair hand over, in the way that the kernel does it."""
    y = np.zeros(256, np.int32)
    options = {"cluster": (2, 1, 1), "target": "sm_90a"}
    return Case(kernel, (2,), [y], {}, options, lambda: [(y, np.tile(np.arange(128), 2))], 1e-6)


def launch_control(m=384, n=200, k=136, **constexprs) -> Case:
    """The GEMM whose programs take over the tiles of those that were not launched; every tile is counted."""
    settings = {"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 64, "NUM_STAGES": 2} | constexprs
    a, b = _matrices(m, n, k)
    c = _poisoned((m, n), np.float16)
    tiles = -(-m // 128) * -(-n // 64)
    count = np.zeros(tiles, np.int32)
    describe = tlx_xdsl.TensorDescriptor.from_tensor
    arguments = [describe(a, [128, 64]), describe(b, [64, 64]), describe(c, [128, 64]), count, m, n, k]

    def results():
        return [(c, a.astype(np.float64) @ b.astype(np.float64)), (count, np.ones(tiles))]

    return Case(clc_gemm.matmul, (tiles,), arguments, settings, {"target": "sm_100a"}, results, TOLERANCE)


def pair(m=300, n=200, k=200, pairs=1, **constexprs) -> Case:
    """The GEMM of pairs of CTAs that work on one product; one or two pairs in a cluster."""
    settings = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "NUM_STAGES": 2, "PAIRS": pairs} | constexprs
    rows = settings["BLOCK_M"]
    a, b = _matrices(m, n, k)
    c = _poisoned((m, n), np.float16)
    describe = tlx_xdsl.TensorDescriptor.from_tensor
    arguments = [describe(a, [rows // pairs, 64]), describe(b, [64, 64]), describe(c, [rows, 128]), m, n, k]
    grid = 2 * pairs * -(-m // (2 * rows)) * -(-n // (128 * pairs))
    options = {"cluster": (2 * pairs, 1, 1), "target": "sm_100a"}
    return Case(pair_gemm.matmul, (grid,), arguments, settings, options, _product(a, b, c), TOLERANCE)


def two_pairs(m=256, n=304, k=264, **constexprs) -> Case:
    """The same with two pairs, which share the copies of A."""
    return pair(m, n, k, 2, **constexprs)


def persistent(m=900, n=296, k=136, **constexprs) -> Case:
    """The same, with cluster launch control and two accumulators."""
    settings = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "NUM_STAGES": 2} | constexprs
    a, b = _matrices(m, n, k)
    c = _poisoned((m, n), np.float16)
    describe = tlx_xdsl.TensorDescriptor.from_tensor
    arguments = [describe(a, [128, 64]), describe(b, [64, 64]), describe(c, [128, 128]), m, n, k]
    grid = 2 * -(-m // 256) * -(-n // 128)
    options = {"cluster": (2, 1, 1), "target": "sm_100a"}
    return Case(pair_persistent.matmul, (grid,), arguments, settings, options, _product(a, b, c), TOLERANCE)


FLOATS = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


def _in_blocks(scales: np.ndarray, block: int) -> np.ndarray:
    """Scales (rows x K/32) in the order of the hardware: for each tile of `block` rows and 4 scales, lines of 16."""
    rows, columns = scales.shape
    tiles = scales.reshape(rows // block, block // 128, 4, 32, columns // 4, 4)
    return np.ascontiguousarray(tiles.transpose(0, 4, 1, 3, 2, 5).reshape(-1, 16))


def mx(m=256, n=128, k=384, a_format="e4m3", b_format="e4m3", **constexprs) -> Case:
    """The GEMM with block scales."""
    pack = 2 if a_format == "e2m1" else 1
    settings = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128, "NUM_STAGES": 2, "A_PACK": pack}
    settings |= {"A_FORMAT": a_format, "B_FORMAT": b_format} | constexprs
    block_n = settings["BLOCK_N"]
    rng = np.random.default_rng(k)
    if pack == 2:
        a = rng.integers(0, 256, (m, k // 2)).astype(np.uint8)
        codes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
        values = np.concatenate([codes, -codes])
        wide_a = np.stack([values[a & 15], values[a >> 4]], -1).reshape(m, k)
    else:
        a = rng.standard_normal((m, k)).astype(FLOATS[a_format])
        wide_a = a.astype(np.float64)
    b = rng.standard_normal((n, k)).astype(FLOATS[b_format])
    a_scale, b_scale = (rng.integers(120, 132, (rows, k // 32)).astype(np.uint8) for rows in (m, n))
    c = _poisoned((m, n), np.float32)

    def results():
        left, right = (
            values * np.exp2(np.repeat(scale, 32, 1).astype(np.float64) - 127)
            for values, scale in ((wide_a, a_scale), (b.astype(np.float64), b_scale))
        )
        return [(c, left @ right.T)]

    describe = tlx_xdsl.TensorDescriptor.from_tensor
    arguments = [
        describe(a, [128, 128 // pack]), describe(b, [block_n, 128]),
        describe(_in_blocks(a_scale, 128), [32, 16]), describe(_in_blocks(b_scale, block_n), [block_n // 4, 16]),
        describe(c, [128, block_n]), m, n, k,
    ]  # fmt: skip
    grid = m // 128 * -(-n // block_n)
    return Case(mx_gemm.matmul, (grid,), arguments, settings, {"target": "sm_100a"}, results, 1e-5)


def softmax(length=256, head_dim=64, block_n=64, **constexprs) -> Case:
    """The attention whose probabilities lie in the memory of the scores."""
    rng = np.random.default_rng(length)
    q, k, v = (rng.standard_normal((length, head_dim)).astype(ml_dtypes.bfloat16) for _ in range(3))
    out = _poisoned(q.shape, np.float32)
    scale = head_dim**-0.5
    describe = tlx_xdsl.TensorDescriptor.from_tensor
    arguments = [describe(q, [128, head_dim]), describe(k, [block_n, head_dim]), describe(v, [block_n, head_dim])]

    def results():
        scores = q.astype(np.float64) @ k.astype(np.float64).T * scale
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return [(out, weights / weights.sum(-1, keepdims=True) @ v.astype(np.float64))]

    settings = {"BLOCK_M": 128, "BLOCK_N": block_n, "HEAD_DIM": head_dim} | constexprs
    return Case(
        attention.attention, (length // 128,), [*arguments, out, scale, length], settings, {"target": "sm_100a"},
        results, 8e-3,
    )  # fmt: skip


CASES = {
    "multicast": multicast,
    "multicast-three-stages": lambda: multicast(128, 64, 512, NUM_STAGES=3),
    "layer-norm": norm,
    "layer-norm-pair": lambda: norm(9, 256, 2),
    "ring-store": lambda: ring("store"),
    "ring-store-f32": lambda: ring("store", 2, 8, 8, np.float32),
    "ring-async": lambda: ring("async"),
    "ring-async-f32": lambda: ring("async", 8, 4, 16, np.float32),
    "ring-store-i8": lambda: ring("store", 2, 8, 64, np.int8),
    "ring-async-i8": lambda: ring("async", 2, 8, 64, np.int8),
    "ring-async-f64": lambda: ring("async", 2, 8, 32, np.float64),
    "ring-copy": lambda: ring("copy"),
    "square": square,
    "square-wide": lambda: square(128, 256, 328, BLOCK_N=128, BLOCK_K=128),
    "hand-over-total": total,
    "hand-over-relayed": lambda: note(cluster_hand_over.relayed),
    "hand-over-stored": lambda: note(cluster_hand_over.stored),
    "hand-over-to-itself": lambda: note(cluster_hand_over.to_itself),
    "launch-control": launch_control,
    "pair": pair,
    "pair-64-rows": lambda: pair(200, 136, 136, BLOCK_M=64),
    "pair-long": lambda: pair(256, 128, 520),
    "two-pairs": two_pairs,
    "pair-persistent": persistent,
    "mxfp8": mx,
    "mxfp8-mixed": lambda: mx(128, 256, 256, "e5m2", "e4m3", BLOCK_N=256, NUM_STAGES=1),
    "mxfp4": lambda: mx(128, 128, 256, "e2m1", "e4m3"),
    "softmax": softmax,
    "softmax-128": lambda: softmax(384, 128, 128),
}
"""Every kernel, with sizes that are no multiples of its tiles where it takes them."""
