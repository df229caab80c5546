"""The result of a product, changed, is the left operand of the next one."""

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def twice(a, b, c):
    m, n = tl.arange(0, 64), tl.arange(0, 64)
    place = m[:, None] * 64 + n[None, :]
    left, right = tl.load(a + place), tl.load(b + place)
    first = tl.where(m[:, None] > n[None, :], tl.dot(left, right), 0.0)
    tl.store(c + place, tl.dot(first.to(tl.float16), right))


def run(**options):
    """Multiply what lies below the diagonal of a product."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(-2, 3, (2, 64, 64)).astype(np.float16)
    c = np.zeros((64, 64), np.float32)
    tlx_xdsl.interpret(twice, 1, a, b, c, **options)
    np.testing.assert_allclose(c, np.tril(a.astype(np.float64) @ b, -1) @ b)
