"""The least scale of the MX formats, 2**-127, is that of byte 0."""

import ml_dtypes
import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def scaled(a, a_scale, b, b_scale, c):
    m, n, k, group = tl.arange(0, 64), tl.arange(0, 64), tl.arange(0, 64), tl.arange(0, 2)
    left = tl.load(a + m[:, None] * 64 + k[None, :])
    right = tl.load(b + k[:, None] * 64 + n[None, :])
    left_scale = tl.load(a_scale + m[:, None] * 2 + group[None, :])
    right_scale = tl.load(b_scale + n[:, None] * 2 + group[None, :])
    product = tl.dot_scaled(left, left_scale, "e5m2", right, right_scale, "e5m2")
    tl.store(c + m[:, None] * 64 + n[None, :], product)


def run(**options):
    """Multiply by the least scale and its inverse."""
    quarter = np.full((64, 64), 0.25).astype(ml_dtypes.float8_e5m2)
    least, most = np.zeros((64, 2), np.uint8), np.full((64, 2), 254, np.uint8)
    c = np.zeros((64, 64), np.float32)
    tlx_xdsl.interpret(scaled, 1, quarter, least, quarter, most, c, **options)
    np.testing.assert_array_equal(c, 4.0)
