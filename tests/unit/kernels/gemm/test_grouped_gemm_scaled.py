"""`scaled_grouped_gemm` in the interpreter: 8-bit floats with scales of rows and columns."""

import ml_dtypes
import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels.references import DTYPES, TOLERANCE, poisoned, relative_error
from tlx_xdsl.kernels.gemm.grouped.config import CONFIGS
from tlx_xdsl.kernels.gemm.grouped.scaled import scaled_grouped_gemm, scaled_grouped_gemm_launch

E4M3, E5M2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)


def inputs(sizes, k, n, dtype, spare=9):
    """Operands whose rows of no group, and matrices and scales of empty groups, are NaN."""
    rng = np.random.default_rng(0)
    ends = np.cumsum(sizes).astype(np.int32)
    rows, step = int(ends[-1]) + spare, -(-k // 16) * 16
    x = poisoned((rows, step), dtype)[:, :k]
    x[: ends[-1]] = rng.standard_normal((ends[-1], k)).astype(dtype)
    w = poisoned((len(sizes), n, step), dtype)[..., :k].swapaxes(1, 2)
    scale_x, scale_w = poisoned((rows,), np.float32), poisoned((len(sizes), n), np.float32)
    scale_x[: ends[-1]] = rng.random(ends[-1]) + 0.5
    used = np.asarray(sizes) > 0
    w[used] = rng.standard_normal((used.sum(), k, n)).astype(dtype)
    scale_w[used] = rng.random((used.sum(), n)) + 0.5
    return x, w, ends, scale_x, scale_w


def expected(x, w, ends, scale_x, scale_w):
    x = x.astype(np.float64) * scale_x[:, None]
    w = w.astype(np.float64) * scale_w[:, None]
    return np.concatenate([rows @ each for rows, each in zip(np.split(x, ends)[:-1], w, strict=True)])


ALL = [(name, dtype, out) for name in CONFIGS for dtype in (E4M3, E5M2) for out in DTYPES]
SOME = [("large", E4M3, "bf16"), ("tiny", E5M2, "fp16")]


@pytest.mark.parametrize(("name", "dtype", "out_dtype"), ALL if volume.is_full() else SOME)
def test_against_float64(name, dtype, out_dtype):
    operands = inputs((0, 5, 130, 0, 64, 70), 208, 203, dtype)
    ends = operands[2]
    out = poisoned((operands[0].shape[0], 208), DTYPES[out_dtype])[:, :203]
    launch = scaled_grouped_gemm_launch(*operands, out, config=CONFIGS[name].of_step(2), programs=3)
    result = launch.interpret(jobs=1)
    assert [each for each in result.warnings if each.severity != "remark"] == []
    assert relative_error(out[: ends[-1]], expected(*operands)) < TOLERANCE[out_dtype]
    assert np.isnan(out[ends[-1] :].astype(np.float32)).all(), "rows of no group are written"


def test_result_is_made():
    operands = inputs((3, 0, 17), 16, 8, E4M3, spare=0)
    found = scaled_grouped_gemm(*operands)
    assert found.dtype == DTYPES["bf16"]
    assert relative_error(found, expected(*operands)) < TOLERANCE["bf16"]
    assert scaled_grouped_gemm(*operands, out_dtype="fp16").dtype == np.float16


def operands_with(**changes):
    names = ("x", "w", "offsets", "scale_x", "scale_w")
    return {**dict(zip(names, inputs((4, 4), 16, 8, E4M3, spare=0), strict=True)), **changes}


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"x": np.ones((8, 16), np.float16)}, TypeError, "'x': expected elements of type fp8e4nv or fp8e5"),
        ({"w": np.ones((2, 16, 16), E5M2)}, TypeError, "'w': expected float8_e4m3fn as 'x' has"),
        ({"w": np.ones((2, 16, 8), E4M3)}, ValueError, "'w': expected columns that are contiguous"),
        ({"x": np.ones((16, 8), E4M3).T}, ValueError, "'x': expected rows that are contiguous"),
        ({"w": np.ones((16, 8), E4M3)}, ValueError, "'w': expected 3 dimensions"),
        ({"scale_x": np.ones(8)}, TypeError, "'scale_x': expected elements of type fp32"),
        ({"scale_x": np.ones(9, np.float32)}, ValueError, r"'scale_x': expected the shape \(8,\) \(rows of 'x'\)"),
        ({"scale_w": np.ones((8, 2), np.float32).T}, ValueError, "'scale_w': expected contiguous elements"),
        ({"out": np.ones((8, 8), np.float32)}, TypeError, "'out': expected elements of type bf16 or fp16"),
        ({"out_dtype": "fp32"}, ValueError, "'out_dtype': expected bf16 or fp16, got 'fp32'"),
    ],
)
def test_wrong_operands_are_refused(changes, error, text):
    with pytest.raises(error, match=text):
        scaled_grouped_gemm(**operands_with(**changes))
