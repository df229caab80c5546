"""Two tasks call a function that is not inlined, with a barrier in it."""

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit(noinline=True)
def total(x, i):
    return tl.sum(tl.load(x + i), 0)


@tlx_xdsl.jit
def two_sums(x, y):
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tl.store(y, total(x, tl.arange(0, 256)))
        with tlx.async_task(num_warps=8):
            tl.store(y + 1, total(x, tl.arange(0, 256)))


def run(**options):
    """Add numbers in two tasks."""
    x, y = np.arange(256, dtype=np.int32), np.zeros(2, np.int32)
    tlx_xdsl.interpret(two_sums, 1, x, y, **options)
    np.testing.assert_array_equal(y, x.sum())
