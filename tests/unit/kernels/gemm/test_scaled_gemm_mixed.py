"""`scaled_gemm` with 16-bit activations and 8-bit weights, in the interpreter."""

import ml_dtypes
import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels.gemm.test_scaled_gemm import E4M3, E5M2, ONE, TOLERANCE, matrix as eight_bits, result_memory
from tests.unit.kernels.references import DTYPES, matrix, relative_error
from tlx_xdsl.kernels.gemm.scaled.call import scaled_gemm, scaled_gemm_launch
from tlx_xdsl.kernels.gemm.scaled.config import CONFIGS, mixed_config

SCALES = {"one": (1, 1), "columns": (1, 200), "block columns": (3, 200), "blocks": (3, 2)}


def run(m, scales, *, dtype="bf16", weights=E4M3, **options):
    n, k = 200, 300
    a, b = matrix(m, k, DTYPES[dtype], seed=1), eight_bits(n, k, weights, 2).T
    scale = np.random.default_rng(3).uniform(0.5, 2, SCALES[scales]).astype(np.float32)
    c = result_memory(m, n, DTYPES[dtype])
    result = scaled_gemm_launch(a, b, None, scale, c, programs=2).interpret(jobs=1, **options)
    assert [each for each in result.warnings if each.severity != "remark"] == []
    spread = np.repeat(scale, 128, 0)[:k] if scale.shape[0] > 1 else scale
    spread = np.repeat(spread, 128, 1)[:, :n] if scale.shape[1] == 2 else spread
    assert relative_error(c, a.astype(np.float64) @ (b.astype(np.float64) * spread)) < TOLERANCE[dtype]


@pytest.mark.parametrize("scales", SCALES)
def test_scales(scales):
    run(40, scales)


@pytest.mark.parametrize("m", [1, 17, 150])
def test_rows(m):
    run(m, "columns", dtype="fp16")


def test_text_for_stock_triton():
    run(20, "blocks", weights=E5M2, stage="ttgir", schedule="adversarial")


@pytest.mark.skipif(not volume.is_full(), reason="through the same launch as above")
def test_a_call_allocates():
    a, b = matrix(8, 64, DTYPES["bf16"], seed=1), eight_bits(32, 64, E4M3, 2).T
    c = scaled_gemm(a, b, None, ONE, out_dtype=ml_dtypes.bfloat16)
    assert relative_error(c, a.astype(np.float64) @ b.astype(np.float64)) < TOLERANCE["bf16"]


def test_the_tile_holds_the_rows():
    assert [mixed_config(m, 2).block_m for m in (1, 16, 17, 128, 5000)] == [16, 16, 32, 128, 128]
    assert mixed_config(5000, 4).stages == 2


A, B = np.ones((32, 256), np.float16), np.ones((144, 256), E4M3).T


@pytest.mark.parametrize(
    ("scale_a", "scale_b", "options", "error", "text"),
    [
        (ONE, ONE, {}, ValueError, "'scale_a': expected None where 'a' has 16 bits"),
        (None, None, {}, TypeError, "'scale_b': expected a tensor, got NoneType"),
        (None, np.ones((2, 3), np.float32), {}, ValueError, r"\(1, 144\), \(2, 144\) or \(2, 2\), got \(2, 3\)"),
        (None, ONE, {"config": CONFIGS["large"]}, ValueError, "'config': expected split columns and 128 of them"),
    ],
)
def test_wrong_operands_are_refused(scale_a, scale_b, options, error, text):
    with pytest.raises(error, match=text):
        scaled_gemm(A, B, scale_a, scale_b, **options)
