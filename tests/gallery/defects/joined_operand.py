"""An operand of a product is unpacked along M, with few elements along K."""

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def product(packed, r, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    half, m, n, k = tl.arange(0, M // 2), tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    pairs = tl.load(packed + k[:, None] * (M // 2) + half[None, :])
    low, high = (pairs << 4).to(tl.int8) >> 4, pairs >> 4
    left = tl.join(low.to(tl.float16), high.to(tl.float16)).reshape(K, M).trans(1, 0)
    tl.store(out + m[:, None] * N + n[None, :], tl.dot(left, tl.load(r + k[:, None] * N + n[None, :])))


def run(**options):
    """Multiply a matrix of int4 and one of fp16."""
    rng = np.random.default_rng(0)
    packed, r = rng.integers(-128, 127, (16, 16)).astype(np.int8), rng.integers(-3, 3, (16, 32)).astype(np.float16)
    out = np.zeros((32, 32), np.float32)
    tlx_xdsl.interpret(product, 1, packed, r, out, 32, 32, 16, **options)
    low, high = (packed.astype(np.int32) << 28) >> 28, packed.astype(np.int32) >> 4
    np.testing.assert_array_equal(out, np.stack([low, high], -1).reshape(16, 32).T.astype(np.float64) @ r)
