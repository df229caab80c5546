"""Regions of several blocks in the body of a loop nest: what `tl.map_elementwise` calls may return early."""

# covers: target.cpu

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def compare(x, y):
    if x < y:
        return -1, x
    if x == y:
        return 0, x * 2
    return 1, y


@tlx_xdsl.jit
def compare_all(x, y, order, least, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    found, number = tl.map_elementwise(compare, tl.load(x + at), tl.load(y + at))
    tl.store(order + at, found)
    tl.store(least + at, number)


def test_the_ends_of_a_function_that_returns_early():
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-3, 4, 128).astype(np.int32) for _ in range(2))
    order, least = np.zeros(128, np.int32), np.zeros(128, np.int32)
    compare_all[(1,)](x, y, order, least, BLOCK=128)
    np.testing.assert_array_equal(order, np.sign(x - y))
    np.testing.assert_array_equal(least, np.where(x == y, 2 * x, np.minimum(x, y)))
