"""A sum of products of fp32 that is a matrix product."""

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def summed(x, y, z):
    i, j = tl.arange(0, 32), tl.arange(0, 32)
    place = i[:, None] * 32 + j[None, :]
    tl.store(z + place, tl.sum(tl.load(x + place)[:, :, None] * tl.load(y + place)[None, :, :], 1))


def run(**options):
    """Multiply two matrices."""
    x, y = np.random.default_rng(0).standard_normal((2, 32, 32)).astype(np.float32)
    z = np.zeros_like(x)
    tlx_xdsl.interpret(summed, 1, x, y, z, **options)
    np.testing.assert_allclose(z, x.astype(np.float64) @ y, atol=1e-5)
