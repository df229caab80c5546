"""A loop adds up products in fp16, two sums to a register."""

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def product(a, b, c, K):
    m, n, k = tl.arange(0, 64), tl.arange(0, 64), tl.arange(0, 64)
    acc = tl.zeros((64, 64), tl.float16)
    for first in range(0, K, 64):
        left = tl.load(a + m[:, None] * K + first + k[None, :])
        right = tl.load(b + (first + k)[:, None] * 64 + n[None, :])
        acc = tl.dot(left, right, acc, out_dtype=tl.float16)
    tl.store(c + m[:, None] * 64 + n[None, :], acc)


def run(**options):
    """Multiply matrices of small integers."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 3, shape).astype(np.float16) for shape in ((64, 256), (256, 64)))
    c = np.zeros((64, 64), np.float16)
    tlx_xdsl.interpret(product, 1, a, b, c, 256, **options)
    np.testing.assert_array_equal(c, (a.astype(np.float64) @ b).astype(np.float16))
