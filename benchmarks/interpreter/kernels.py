"""Plain kernels that stock Triton's interpreter runs, too: a GEMM and an attention of the tiles of `speed.py`."""

import tlx_xdsl as triton
import tlx_xdsl.language as tl

# Kernels are read by the frontend, not run by Python.
# pyright: basic


@triton.jit
def matmul(a, b, c, K, N: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """C = A B for A of M x K and B of K x N, by rows."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    steps = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        left = tl.load(a + rows[:, None] * K + (k + steps)[None, :])
        right = tl.load(b + (k + steps)[:, None] * N + columns[None, :])
        acc = tl.dot(left, right, acc)
    tl.store(c + rows[:, None] * N + columns[None, :], acc.to(tl.float16))


@triton.jit
def attention(q, k, v, o, scale, LENGTH, DIM: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """O = softmax(scale Q K^T) V for a head of LENGTH rows."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, DIM)
    queries = tl.load(q + rows[:, None] * DIM + dims[None, :])
    most = tl.full((BLOCK_M,), -1e30, tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, DIM), tl.float32)
    for start in range(0, LENGTH, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        scores = tl.dot(queries, tl.load(k + keys[None, :] * DIM + dims[:, None])) * scale
        higher = tl.maximum(most, tl.max(scores, 1))
        weights = tl.exp(scores - higher[:, None])
        shrink = tl.exp(most - higher)
        total = total * shrink + tl.sum(weights, 1)
        values = tl.load(v + keys[:, None] * DIM + dims[None, :])
        acc = tl.dot(weights.to(tl.float16), values, acc * shrink[:, None])
        most = higher
    tl.store(o + rows[:, None] * DIM + dims[None, :], (acc / total[:, None]).to(tl.float16))
