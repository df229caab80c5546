"""The result of a product, changed, is the left operand of the next one, and its result that of a third."""

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def three_products(a, b, c):
    m, n = tl.arange(0, 64), tl.arange(0, 64)
    place = m[:, None] * 64 + n[None, :]
    right = tl.load(b + n[None, :] * 64 + m[:, None])
    below = m[:, None] > n[None, :]
    first = tl.where(below, tl.dot(tl.load(a + place), right) * 2, 0.0)
    second = tl.where(below, -tl.dot(first.to(tl.float16), right), 0.0)
    tl.store(c + place, tl.dot(second.to(tl.float16), right))


def run(**options):
    """Multiply what lies below the diagonals of products."""
    a, b = np.random.default_rng(0).integers(-1, 2, (2, 64, 64)).astype(np.float16)
    c = np.zeros((64, 64), np.float32)
    tlx_xdsl.interpret(three_products, 1, a, b, c, **options)
    right = b.T.astype(np.float32)
    first = np.tril(2 * (a.astype(np.float32) @ right), -1)
    second = np.tril(-(first @ right), -1).astype(np.float16)
    np.testing.assert_array_equal(c, second.astype(np.float32) @ right)
