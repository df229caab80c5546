"""Stochastic rounding, packed arithmetic and votes."""

import ml_dtypes
import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx
from tlx_xdsl.runtime.simulate.interpret import interpret_text

BLACKWELL = {"target": "sm_100a", "jobs": 1}
SMALL = [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]


@tlx_xdsl.jit
def rounded(x_ptr, bits_ptr, y_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    values = tlx.stoch_round(tl.load(x_ptr + at), y_ptr.dtype.element_ty, tl.load(bits_ptr + at))
    tl.store(y_ptr + at, values)


def round_(x, bits, dtype):
    y = np.zeros(x.shape, dtype)
    tlx_xdsl.interpret(rounded, 1, x.astype(np.float32), bits.astype(np.uint32).view(np.int32), y, x.size, **BLACKWELL)
    return y.astype(np.float64)


@pytest.mark.parametrize("dtype", SMALL)
def test_the_mean_is_kept(dtype):
    rng = np.random.default_rng(0)
    for value in (1.03, -2.7, 0.3001):
        found = round_(np.full(1 << 14, value, np.float32), rng.integers(0, 1 << 32, 1 << 14), dtype)
        gap = np.ptp(found)
        assert len(np.unique(found)) == 2
        assert abs(found.mean() - np.float32(value)) < 0.02 * gap
        assert found.min() < value < found.max()


@pytest.mark.parametrize("dtype", SMALL)
def test_the_bits_decide(dtype):
    x = np.array([1.01, -1.01, 1.01, -1.01] * 4, np.float32)
    bits = np.array([0, 0, 0xFFFFFFFF, 0xFFFFFFFF] * 4, np.uint32)
    found = round_(x, bits, dtype)
    up, down = found[0], found[2]
    assert down < 1.01 < up
    np.testing.assert_array_equal(found, [up, -up, down, -down] * 4)


@pytest.mark.parametrize("dtype", SMALL)
def test_what_fits_stays_and_what_is_too_large_saturates(dtype):
    top = float(ml_dtypes.finfo(dtype).max)
    x = np.array([0.0, 1.0, -1.5, 0.25, top, -top, np.inf, np.nan], np.float32)
    found = round_(x, np.zeros(8), dtype)
    np.testing.assert_array_equal(found, [0, 1, -1.5, 0.25, top, -top, top, np.nan])


# --- packed arithmetic ----------------------------------------------------------------------------------------------

PACKED = """
#b = #ttg.blocked<{{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}}>
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:100",
                   "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @f(%x: !tt.ptr<{element}>, %y: !tt.ptr<{element}>) {{
    %r = tt.make_range {{end = 64 : i32, start = 0 : i32}} : tensor<64xi32, #b>
    %xs = tt.splat %x : !tt.ptr<{element}> -> tensor<64x!tt.ptr<{element}>, #b>
    %xp = tt.addptr %xs, %r : tensor<64x!tt.ptr<{element}>, #b>, tensor<64xi32, #b>
    %v = tt.load %xp : tensor<64x!tt.ptr<{element}>, #b>
    %w = ttng.packed_arith {operation} : ({types}) -> tensor<64x{element}, #b>
    %ys = tt.splat %y : !tt.ptr<{element}> -> tensor<64x!tt.ptr<{element}>, #b>
    %yp = tt.addptr %ys, %r : tensor<64x!tt.ptr<{element}>, #b>, tensor<64xi32, #b>
    tt.store %yp, %w : tensor<64x!tt.ptr<{element}>, #b>
    tt.return
  }}
}}
"""


@pytest.mark.parametrize(
    ("operation", "count", "expected"),
    [
        ("add %v, %v", 2, lambda x: x + x),
        ("sub %v, %v", 2, lambda x: x - x),
        ("mul %v, %v", 2, lambda x: x * x),
        ("fma %v, %v, %v", 3, lambda x: (x.astype(np.float64) * x + x).astype(np.float32)),
        ("min %v, %v", 2, lambda x: x),
        ("max %v, %v", 2, lambda x: x),
    ],
)
def test_packed_arithmetic(operation, count, expected):
    # PTX has the packed minimum and maximum of 16-bit floats only.
    element, kind = ("f16", np.float16) if operation.startswith("m") and "mul" not in operation else ("f32", np.float32)
    x, y = np.random.default_rng(0).standard_normal(64).astype(kind), np.zeros(64, kind)
    text = PACKED.format(operation=operation, element=element, types=", ".join([f"tensor<64x{element}, #b>"] * count))
    interpret_text(text, 1, [x, y], jobs=1)
    np.testing.assert_array_equal(y, expected(x))
