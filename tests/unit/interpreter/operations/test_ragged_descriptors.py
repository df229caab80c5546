"""Descriptors whose strides and coordinates add up to more than 64 bits: addresses wrap around, as on a GPU."""

# covers: tlx.copies

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx

FAR = tl.constexpr(1 << 30)


@tlx_xdsl.jit
def through(x_desc, y_desc, START, END):
    """Rows START to END, in blocks of 32 that are cut at END, as `kernels/gemm/grouped/parts.py` explains."""
    buffer = tlx.local_alloc((1, 1, 32, 64), tl.float16, 1)
    full = tlx.alloc_barriers(1)
    phase = 0
    for row in range(START, END, 32):
        rest = min(END - row, 32)
        where = (FAR, row + rest, FAR - rest, 0)
        tlx.barrier_expect_bytes(full[0], 4096)
        tlx.async_descriptor_load(x_desc, buffer[0], where, full[0])
        tlx.barrier_wait(full[0], phase)
        tlx.async_descriptor_store(y_desc, buffer[0], where)
        tlx.async_descriptor_store_wait(0)
        phase ^= 1


def test_blocks_end_with_their_group():
    x = np.random.default_rng(0).standard_normal((100, 56)).astype(np.float16)
    y = np.zeros_like(x)
    x_desc, y_desc = (
        tlx_xdsl.TensorDescriptor(each, [2**31 - 1, 2**31 - 1, 2**30, 50], [2**34 - 56, 56, 56, 1], [1, 1, 32, 64])
        for each in (x, y)
    )
    tlx_xdsl.interpret(through, 1, x_desc, y_desc, 3, 72, target="sm_90a", jobs=1)
    expected = np.zeros_like(x)
    expected[3:72, :50] = x[3:72, :50]
    np.testing.assert_array_equal(y, expected)
