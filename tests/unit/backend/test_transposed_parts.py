"""The transposed part of a buffer: its type as the installed Triton compares it with the source, and by value."""

import numpy as np
import pytest
from backend_kernels import needs_triton

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.runtime.build import compile_kernel
from tlx_xdsl.runtime.driver.compilation import Specialization


@tlx_xdsl.jit
def product(x_ptr, y_ptr, out_ptr, FIRST: tl.constexpr):
    """X Y^T for 64 rows, where Y^T is a transposed part of a buffer: its columns from FIRST on."""
    rows = tl.arange(0, 64)
    columns = tl.arange(0, 128)
    x = tlx.local_alloc((64, 64), tl.float16, 1)
    y = tlx.local_alloc((64, 128), tl.float16, 2)
    tlx.local_store(x[0], tl.load(x_ptr + rows[:, None] * 64 + rows[None, :]))
    tlx.local_store(y[1], tl.load(y_ptr + rows[:, None] * 128 + columns[None, :]))
    tlx.fence_async_shared()
    part = tlx.local_trans(tlx.local_slice(y[1], [0, FIRST], [64, 64]))
    sums = tlx.async_dot_wait(0, tlx.async_dot(x[0], part))
    tl.store(out_ptr + rows[:, None] * 64 + rows[None, :], sums)


@needs_triton
@pytest.mark.parametrize("first", [0, 64])
def test_stock_triton_takes_it(first):
    signature = {"x_ptr": "*fp16", "y_ptr": "*fp16", "out_ptr": "*fp32"}
    found = compile_kernel(product, Specialization(signature, {"FIRST": first}, "sm_90a", 4))
    assert "64x64xf16, #shared1, #smem, mutable, 128x64>" in found.ttgir


@pytest.mark.parametrize("first", [0, 64])
def test_its_values(first):
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(shape).astype(np.float16) for shape in ((64, 64), (64, 128)))
    out = np.full((64, 64), np.nan, np.float32)
    product.interpret((1,), x, y, out, FIRST=first)
    expected = x.astype(np.float64) @ y[:, first : first + 64].astype(np.float64).T
    assert np.allclose(out, expected, atol=1e-4)
