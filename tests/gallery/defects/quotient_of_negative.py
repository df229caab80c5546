"""Quotients round towards zero: those of a range below zero are not equal in aligned groups."""

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def some(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(y + i, tl.load(x + i), mask=(i - N) // 32 < -(N // 32) + 1)
    tl.store(y + N + i, tl.load(x + N // 2 + (i - N) % 32))


def run(**options):
    """Copy the one element with the least quotient, and some by their remainders."""
    x, y = np.arange(1024, dtype=np.float32) + 1, np.zeros(2048, np.float32)
    tlx_xdsl.interpret(some, 1, x, y, 1024, **options)
    np.testing.assert_array_equal(y[:1024], np.where(np.arange(1024) == 0, x, 0))
    np.testing.assert_array_equal(y[1024:], x[512 + np.fmod(np.arange(1024) - 1024, 32)])
