"""The inner loop of a flattened one ends before it begins."""

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def count(y, end):
    total = 0
    for _ in tl.range(0, 4, flatten=True):
        for _ in tl.range(5, end):
            total += 1
    tl.store(y, total)


def run(**options):
    """Count iterations."""
    for end in (3, 5, 7):
        y = np.zeros(1, np.int32)
        tlx_xdsl.interpret(count, 1, y, end, **options)
        assert y[0] == 4 * max(0, end - 5)
