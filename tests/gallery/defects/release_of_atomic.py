"""A flag is set after the stores of all threads."""

import re

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl


@tlx_xdsl.jit
def publish(x, y, flag):
    i = tl.arange(0, 256)
    tl.store(y + i, tl.load(x + i))
    tl.atomic_xchg(flag, 1, sem="release")


def run(**options):
    """Copy, and set the flag."""
    x, y, flag = np.arange(256, dtype=np.float32), np.zeros(256, np.float32), np.zeros(1, np.int32)
    tlx_xdsl.interpret(publish, 1, x, y, flag, **options)
    np.testing.assert_array_equal(y, x)


def shows(ptx: str) -> bool:
    """Return whether one thread sets the flag without having met the others."""
    return re.search(r"st\.global(?:(?!bar\.sync)[\s\S])*atom\S*\.release", ptx) is not None
