"""Minimal kernels that single versions of Triton miscompile, a file each, by the names of `backend/defects.py`.

`run(**options)` runs one and raises where its numbers are wrong; `shows(ptx)` says it where only the text can.
"""

from typing import Any

import numpy as np

import tlx_xdsl


def as_one_cta(kernel: Any, **options: Any) -> None:
    """Compare two CTAs of a program with one, in the interpreter: `kernel(x, y, N)` on 256 numbers."""
    x = np.random.default_rng(0).integers(0, 16, 256).astype(np.int32)
    y, expected = np.zeros(256, np.int32), np.zeros(256, np.int32)
    tlx_xdsl.interpret(kernel, 1, x.copy(), expected, 256)
    tlx_xdsl.interpret(kernel, 1, x.copy(), y, 256, num_ctas=2, **options)
    np.testing.assert_array_equal(y, expected)
