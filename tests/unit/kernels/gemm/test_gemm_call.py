"""`gemm(a, b)` on arrays of the CPU: what it returns, dimensions of no elements, infinities, and its refusals."""

import ml_dtypes
import numpy as np
import pytest

from tests.unit.kernels.references import DTYPES, TOLERANCE, matrix, poisoned, relative_error
from tlx_xdsl.kernels.gemm.config import TINY, Choice, GemmConfig
from tlx_xdsl.kernels.gemm.dense import gemm, gemm_launch

F16 = np.float16


def pair(m=40, n=48, k=72):
    return matrix(m, k, F16, seed=1), matrix(k, n, F16, seed=2)


@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 33, 1000), (130, 3, 7)])
def test_arrays_of_the_cpu_are_interpreted(shape):
    """Rows need not begin at multiples of 16 bytes."""
    aligned = pair(*shape)
    for a, b in (aligned, [np.ascontiguousarray(each) for each in aligned]):
        c = gemm(a, b)
        assert (c.shape, c.dtype) == (shape[:2], F16)
        assert relative_error(c, a.astype(np.float64) @ b.astype(np.float64)) < TOLERANCE["fp16"]


def test_out_by_columns():
    """C^T = B^T A^T: nothing is copied."""
    a, b = pair()
    c = poisoned((48, 40), F16).T
    assert gemm(a, b, c) is c
    assert np.array_equal(c, gemm(a, b))


@pytest.mark.parametrize("dtype", ["fp32", np.dtype(np.float32), "bf16"])
def test_the_type_of_the_result(dtype):
    a, b = pair()
    c = gemm(a, b, out_dtype=dtype)
    assert c.dtype == (ml_dtypes.bfloat16 if dtype == "bf16" else np.float32)
    assert relative_error(c, a.astype(np.float64) @ b.astype(np.float64)) < (
        TOLERANCE["bf16"] if dtype == "bf16" else 1e-6
    )


@pytest.mark.parametrize("config", [None, Choice(TINY, 2)])
def test_a_matrix_times_itself(config):
    a = matrix(72, 72, F16, seed=1)
    assert np.array_equal(gemm(a, a, config=config), gemm(a, a.copy(), config=config))
    expected = a.astype(np.float64) @ a.T.astype(np.float64)
    assert relative_error(gemm(a, a.T, config=config), expected) < TOLERANCE["fp16"]


def test_dimensions_without_elements():
    c = gemm(np.ones((3, 0), F16), np.ones((0, 8), F16), poisoned((3, 8), F16))
    assert np.array_equal(c, np.zeros((3, 8)))
    assert gemm(np.ones((0, 8), F16), np.ones((8, 8), F16)).shape == (0, 8)
    assert gemm(np.ones((8, 8), F16), np.ones((8, 0), F16), epilogue="gelu").shape == (8, 0)
    with pytest.raises(ValueError, match=r"expected matrices with elements, got \(3, 0\) and \(0, 8\)"):
        gemm_launch(np.ones((3, 0), F16), np.ones((0, 8), F16), c)


STRIPS = GemmConfig("cooperative", 64, 32, 64, stages=2, subtiles=2, buffers=2, tail_n=16, consumers=1)
CHOICES = {
    "whole": Choice(STRIPS, 2),
    "swapped": Choice(STRIPS, 2, swapped=True),
    "pieces": Choice(STRIPS, 8, share=2),
    "ping-pong": Choice(TINY, 2),
}


@pytest.mark.parametrize("name", CHOICES)
def test_infinities_and_nans_go_where_they_should(name):
    a, b = pair(70, 56, 200)
    a[3, 5], a[4, 6], b[199, 7], b[100, 8] = np.nan, np.inf, -np.inf, np.nan
    b[6, 9] = 0
    c = gemm(a, b, config=CHOICES[name])
    with np.errstate(invalid="ignore"):
        expected = a.astype(np.float64) @ b.astype(np.float64)
    assert np.array_equal(np.isnan(c), np.isnan(expected))
    assert np.array_equal(c[np.isinf(expected)], expected[np.isinf(expected)])
    assert np.isfinite(expected).sum() == np.isfinite(c).sum() == 68 * 54


@pytest.mark.parametrize(("columns", "by_pointer"), [(203, True), (200, False)])
def test_padding_of_the_result_is_not_written(columns, by_pointer):
    """TMA writes units of 16 bytes: where a row ends within one, threads write it."""
    a, b = pair(70, columns, 56)
    out = np.full((70, 208), np.nan, F16)
    launch = gemm_launch(a, b, out[:, :columns]).parts[-1]
    assert (launch.arguments["target"].desc is None) == by_pointer
    gemm(a, b, out[:, :columns])
    assert np.isnan(out[:, columns:]).all()
    assert not np.isnan(out[:, :columns]).any()


EYE = np.eye(8, dtype=F16)


@pytest.mark.parametrize(
    ("a", "b", "out", "error", "text"),
    [
        ([[1.0]], EYE, None, TypeError, "argument 'a': expected a tensor, got list"),
        (np.eye(8), EYE, None, TypeError, "argument 'a': expected elements of type fp16 or bf16, got float64"),
        (EYE, np.eye(8, dtype=DTYPES["bf16"]), None, TypeError, "argument 'b': expected float16 as 'a' has"),
        (EYE, np.ones(8, F16), None, ValueError, r"argument 'b': expected 2 dimensions, got the shape \(8,\)"),
        (EYE, np.ones((16, 8), F16), None, ValueError, "argument 'b': expected 8 rows, as 'a' has columns, got 16"),
        (EYE[::-1], EYE, None, ValueError, r"argument 'a': expected strides that are not negative, got \(-8, 1\)"),
        (EYE, EYE, EYE[:, ::-1], ValueError, r"argument 'out': expected strides that are not negative, got \(8, -1\)"),
        (EYE, EYE, np.ones((8, 16), F16), ValueError, r"argument 'out': expected the shape \(8, 8\) .*, got \(8, 16\)"),
        (EYE, EYE, np.eye(8), TypeError, "argument 'out': expected elements of type fp16 or bf16 or fp32, got float64"),
    ],
)  # fmt: skip
def test_wrong_operands_are_refused(a, b, out, error, text):
    with pytest.raises(error, match=f"^gemm: {text}"):
        gemm(a, b, out)


@pytest.mark.parametrize("dtype", ["fp64", np.dtype(np.float64), 3])
def test_wrong_types_of_the_result_are_refused(dtype):
    with pytest.raises(TypeError, match=r"^gemm: argument 'out_dtype': expected fp16 or bf16 or fp32, got "):
        gemm(EYE, EYE, out_dtype=dtype)
