"""Plain kernels for the tests of specialised launches: a product with small blocks, and one without a loop."""

from __future__ import annotations

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl


def product(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        at = k + inner
        a = tl.load(
            a_ptr + rows[:, None] * stride_am + at[None, :], mask=(rows[:, None] < M) & (at[None, :] < K), other=0.0
        )
        b = tl.load(
            b_ptr + at[:, None] * stride_bk + columns[None, :], mask=(at[:, None] < K) & (columns[None, :] < N),
            other=0.0,
        )  # fmt: skip
        acc = tl.dot(a, b, acc)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * stride_cm + columns[None, :], acc.to(tl.float16), mask=mask)


BLOCKS = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}
TYPES = {
    **dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*fp16:16"),
    **dict.fromkeys(("M", "N", "K", "stride_am", "stride_bk", "stride_cm"), "i32:16"),
}


def grid(named):
    return -(-named["M"] // named["BLOCK_M"]), -(-named["N"] // named["BLOCK_N"])


def arguments(m=96, n=80, k=112):
    """The arguments of a product of random matrices, and what it must give."""
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c = np.full((m, n), np.nan, np.float16)
    return (a, b, c, m, n, k, k, n, n), (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)


@tlx_xdsl.jit
def add_one(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at, mask=at < n) + 1, mask=at < n)
