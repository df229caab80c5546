"""A sum of products along another axis than that of a matrix product."""

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def summed(x, y, z, AXIS: tl.constexpr):
    i, j = tl.arange(0, 32), tl.arange(0, 32)
    place = i[:, None] * 32 + j[None, :]
    tl.store(z + place, tl.sum(tl.load(x + place)[:, :, None] * tl.load(y + place)[None, :, :], AXIS))


def run(**options):
    """Add along each axis."""
    x, y = np.random.default_rng(0).integers(-3, 3, (2, 32, 32)).astype(np.float32)
    for axis in (0, 2):
        z = np.zeros_like(x)
        tlx_xdsl.interpret(summed, 1, x, y, z, axis, **options)
        np.testing.assert_array_equal(z, (x[:, :, None] * y[None]).sum(axis))
