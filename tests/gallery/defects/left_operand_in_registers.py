"""The left operand of a pipelined product is converted, and so in registers."""

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def product(a, b, c, K):
    m, n, k = tl.arange(0, 64), tl.arange(0, 64), tl.arange(0, 64)
    acc = tl.zeros((64, 64), tl.float32)
    for first in range(0, K, 64):
        left = tl.load(a + m[:, None] * K + first + k[None, :]).to(tl.float16)
        acc = tl.dot(left, tl.load(b + (first + k)[:, None] * 64 + n[None, :]), acc)
    tl.store(c + m[:, None] * 64 + n[None, :], acc)


def run(**options):
    """Multiply a matrix of int8 and one of fp16."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(-3, 3, (64, 256)).astype(np.int8), rng.integers(-3, 3, (256, 64)).astype(np.float16)
    c = np.zeros((64, 64), np.float32)
    tlx_xdsl.interpret(product, 1, a, b, c, 256, **options)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b)
