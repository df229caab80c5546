"""Two warp groups multiply the same tile, which is overwritten after their wait."""

import numpy as np

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def two_products(a, b, c, s, COPY: tl.constexpr):
    m, k, i = tl.arange(0, 128), tl.arange(0, 64), tl.arange(0, 256)
    left = tlx.local_alloc((128, 64), tl.float16, 1)
    right = tlx.local_alloc((64, 64), tl.float16, 1)
    note = tlx.local_alloc((256,), tl.float32, 1)
    tlx.local_store(left[0], tl.load(a + m[:, None] * 64 + k[None, :]))
    tlx.local_store(right[0], tl.load(b + k[:, None] * 64 + k[None, :]))
    tlx.fence_async_shared()
    acc = tlx.async_dot(left[0], right[0])
    # Here all threads meet, which makes the analysis of stock Triton forget that the product reads.
    tlx.local_store(note[0], tl.load(s + i))
    tl.store(s + i, tlx.local_load(tlx.local_reshape(note[0], (128, 2))).reshape(256) + 1)
    acc = tlx.async_dot_wait(0, acc)
    second = b + 64 * 64 + k[:, None] * 64 + k[None, :]
    if COPY:
        tlx.async_load(second, right[0])
        tlx.async_load_commit_group()
        tlx.async_load_wait_group(0)
    else:
        tlx.local_store(right[0], tl.load(second))
    tlx.fence_async_shared()
    acc = tlx.async_dot(left[0], right[0], acc)
    acc = tlx.async_dot_wait(0, acc)
    tl.store(c + m[:, None] * 64 + k[None, :], acc)


def run(**options):
    """Add two products."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 128, 64)).astype(np.float16)
    for copy in (True, False):
        c, s = np.zeros((128, 64), np.float32), np.zeros(256, np.float32)
        tlx_xdsl.interpret(two_products, 1, a, b, c, s, copy, num_warps=8, **options)
        np.testing.assert_allclose(c, a.astype(np.float64) @ (b[:64].astype(np.float64) + b[64:]), atol=1e-3)
