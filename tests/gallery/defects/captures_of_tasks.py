"""Stores of captured values that overwrite what a reduction still reads."""

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def handed_over(x, y, n):
    tile = tl.load(x + tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :])
    total = tl.sum(tl.sum(tile, 0), 0)
    with tlx.async_tasks():
        with tlx.async_task("default"):
            tl.store(y, total)
        with tlx.async_task(num_warps=4):
            tl.store(y + 1, total + n)


def run(**options):
    """Add numbers, and hand the sum to two tasks."""
    x, y = np.arange(1024, dtype=np.int32), np.zeros(2, np.int32)
    tlx_xdsl.interpret(handed_over, 1, x, y, 3, **options)
    np.testing.assert_array_equal(y, [x.sum(), x.sum() + 3])
