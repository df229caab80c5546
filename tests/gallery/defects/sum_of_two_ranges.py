"""Rows begin at the sum of two ranges."""

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def rows(x, y, s, R: tl.constexpr, C: tl.constexpr):
    i, j = tl.arange(0, R), tl.arange(0, C)
    row = i + i
    tl.store(y + i[:, None] * C + j[None, :], tl.load(x + row[:, None] + j[None, :]))


def run(**options):
    """Load rows that begin anywhere."""
    x, y = np.arange(128, dtype=np.float32), np.zeros((32, 16), np.float32)
    tlx_xdsl.interpret(rows, 1, x, y, 0, 32, 16, **options)
    i = np.arange(32)
    np.testing.assert_array_equal(y, x[(i + i)[:, None] + np.arange(16)])
