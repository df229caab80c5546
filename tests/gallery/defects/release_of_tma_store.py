"""A flag is set after a store by TMA."""

import re

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def publish(x, tile, flag):
    i, j = tl.arange(0, 64), tl.arange(0, 64)
    tile.store([0, 0], tl.load(x + i[:, None] * 64 + j[None, :]))
    tl.atomic_xchg(flag, 1, sem="release")


def run(**options):
    """Copy, and set the flag."""
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    y, flag = np.zeros_like(x), np.zeros(1, np.int32)
    tlx_xdsl.interpret(publish, 1, x, tlx_xdsl.TensorDescriptor(y, [64, 64], [64, 1], [64, 64]), flag, **options)
    np.testing.assert_array_equal(y, x)


def shows(ptx: str) -> bool:
    """Return whether nothing has waited for the writes of the store."""
    return re.search(r"cp\.async\.bulk\.wait_group\s+0", ptx) is None
