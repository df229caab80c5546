"""A pipelined product reads what cp.async has written."""

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def product(a, b, c, K, DEPTH: tl.constexpr):
    m, n, k = tl.arange(0, 64), tl.arange(0, 64), tl.arange(0, DEPTH)
    total = tl.zeros((64, 64), tl.float32)
    for first in range(0, K, DEPTH):
        left = tl.load(a + m[:, None] * K + first + k[None, :])
        right = tl.load(b + (first + k)[:, None] * 64 + n[None, :])
        total += tl.dot(left, right)
    tl.store(c + m[:, None] * 64 + n[None, :], total)


def run(**options):
    """Multiply two matrices."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((64, 128)).astype(np.float16), rng.standard_normal((128, 64)).astype(np.float16)
    c = np.zeros((64, 64), np.float32)
    tlx_xdsl.interpret(product, 1, a, b, c, 128, 32, **options)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, atol=1e-3)
