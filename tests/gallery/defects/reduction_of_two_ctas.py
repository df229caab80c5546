"""The CTAs of a program reduce together."""

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def kernel(x, y, N: tl.constexpr):
    rows = tl.load(x + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :])
    tl.store(y + tl.arange(0, 16), tl.sum(rows, 0))


def run(**options):
    """Compare with a kernel of one CTA, in the interpreter."""
    x = np.random.default_rng(0).integers(0, 16, 256).astype(np.int32)
    y, expected = np.zeros(256, np.int32), np.zeros(256, np.int32)
    tlx_xdsl.interpret(kernel, 1, x.copy(), expected, 256)
    tlx_xdsl.interpret(kernel, 1, x.copy(), y, 256, num_ctas=2, **options)
    np.testing.assert_array_equal(y, expected)
