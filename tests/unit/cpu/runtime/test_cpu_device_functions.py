"""CUDA's device functions natively: those that are compositions, and those that the C library computes."""

# covers: target.cpu

import math

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.language.extra import libdevice


@tlx_xdsl.jit
def of_pairs(x, y, out, n, stride, B: tl.constexpr):
    at = tl.arange(0, B)
    inside = at < n
    a, b = tl.load(x + at, mask=inside), tl.load(y + at, mask=inside)
    tl.store(out + at, libdevice.lgamma(a), mask=inside)
    tl.store(out + stride + at, libdevice.hypot(a, b), mask=inside)
    tl.store(out + 2 * stride + at, libdevice.signbit(a).to(out.dtype.element_ty), mask=inside)
    tl.store(out + 3 * stride + at, libdevice.ldexp(a, libdevice.ilogb(b)), mask=inside)


@tlx_xdsl.jit
def inverse(x, out):
    tl.store(out, libdevice.erfcinv(tl.load(x)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_of_rows_of_any_length(dtype):
    x = np.array([0.5, -0.0, 0.0, -1.5, 3.25, np.inf, -np.inf, 1e-30, -7.75, 2.0, 100.0], dtype)
    y = np.array([1.0, 2.0, -4.0, 0.5, 3e5, 1.0, 8.0, 1.0, 2.5, -1e-3, 7.0], dtype)
    out = np.full((4, 16), 7, dtype)
    of_pairs[(1,)](x, y, out, 11, 16, B=16)
    assert (out[:, 11:] == 7).all()
    expected = np.array([math.inf if each in (0, -math.inf) else math.lgamma(each) for each in x.tolist()])
    np.testing.assert_allclose(out[0, :11], expected, rtol=3 * np.finfo(dtype).eps)
    np.testing.assert_allclose(out[1, :11], np.hypot(x, y), rtol=np.finfo(dtype).eps)
    np.testing.assert_array_equal(out[2, :11], np.signbit(x))
    np.testing.assert_array_equal(out[3, :11], np.ldexp(x, np.frexp(y)[1] - 1))


def test_a_function_that_is_nowhere_is_refused_by_its_name():
    x = np.ones(1, np.float32)
    with pytest.raises(CompilationError, match=r"it calls '__nv_erfcinvf', which is defined nowhere"):
        inverse[(1,)](x, x.copy())
