"""Each product of a loop is read from tensor memory before the next one overwrites it."""

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def powers(x, rows, out, K: tl.constexpr):
    m, n, k = tl.arange(0, 128), tl.arange(0, 64), tl.arange(0, 64)
    left = tl.load(x + m[:, None] * 64 + k[None, :])
    total = tl.zeros((128, 64), tl.float32)
    for i in range(K):
        total += tl.exp2(tl.dot(left, rows.load([i * 64, 0])) * 0.125)
    tl.store(out + m[:, None] * 64 + n[None, :], total)


def run(**options):
    """Add powers of products."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((128, 64)).astype(np.float16), rng.standard_normal((256, 64)).astype(np.float16)
    out = np.zeros((128, 64), np.float32)
    tlx_xdsl.interpret(powers, 1, x, tlx_xdsl.TensorDescriptor(y, [256, 64], [64, 1], [64, 64]), out, 4, **options)
    parts = [np.exp2(x.astype(np.float64) @ y[64 * i : 64 * i + 64] * 0.125) for i in range(4)]
    np.testing.assert_allclose(out, sum(parts), rtol=1e-2)
