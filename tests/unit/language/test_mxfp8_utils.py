"""Blocks in MXFP8 against the definition of the format, in float64."""

# covers: tl.dtypes

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.language.extra.mxfp8_utils import (
    _to_mxfp8_32x32_block,
    _to_mxfp8_block,
    _to_mxfp8_block_with_block_amax,
)


@tlx_xdsl.jit
def quantize(x_ptr, data_ptr, scales_ptr, KIND: tl.constexpr, E5: tl.constexpr, ROWS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS)[:, None], tl.arange(0, 128)[None, :]
    x = tl.load(x_ptr + rows * 128 + columns)
    dtype: tl.constexpr = tl.float8e5 if E5 else tl.float8e4nv
    if KIND == "square":
        data, scales = _to_mxfp8_32x32_block(x, 32, dtype)
    elif KIND == "amax":
        amax = tl.max(tl.abs(tl.reshape(x, (ROWS, 4, 32))), axis=2)
        data, scales = _to_mxfp8_block_with_block_amax(x, amax, 32, dtype)
    else:
        data, scales = _to_mxfp8_block(x, 32, dtype)
    tl.store(data_ptr + rows * 128 + columns, data)
    tl.store(scales_ptr + rows * 4 + tl.arange(0, 4)[None, :], scales)


@pytest.mark.parametrize("kind", ["rows", "amax", "square"])
@pytest.mark.parametrize("e5", [False, True])
def test_scales_are_the_least_that_fit_and_elements_the_nearest(kind, e5):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((64, 128)) * np.exp2(rng.integers(-60, 60, (64, 1)))).astype(np.float32)
    x[3, :32], x[4, :32] = 0, 448 * 2.0**-127
    x[5, :32] = 448 * 2.0**10
    dtype, largest = (ml_dtypes.float8_e5m2, 57344) if e5 else (ml_dtypes.float8_e4m3fn, 448)
    data, scales = np.zeros((64, 128), np.uint8), np.zeros((64, 4), np.uint8)
    tlx_xdsl.interpret(quantize, 1, x, data.view(dtype), scales, kind, e5, 64)
    amax = np.abs(x.astype(np.float64)).reshape(64, 4, 32).max(2)
    if kind == "square":
        amax = np.repeat(amax.reshape(2, 32, 4).max(1), 32, axis=0)
    # The product with the rounded reciprocal, as the instruction gets it.
    wanted = (amax.astype(np.float32) * np.float32(1 / largest)).astype(np.float64)
    with np.errstate(divide="ignore"):
        exponent = np.clip(np.ceil(np.log2(wanted)), -127, 127)
    np.testing.assert_array_equal(scales, exponent + 127)
    scaled = x.astype(np.float64).reshape(64, 4, 32) / np.exp2(exponent)[:, :, None]
    expected = np.clip(scaled.reshape(64, 128), -largest, largest).astype(np.float32).astype(dtype)
    np.testing.assert_array_equal(data.view(dtype).astype(np.float32), expected.astype(np.float32))
