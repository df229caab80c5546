"""`softmax` and `layer_norm` in the interpreter, against numpy."""

import ml_dtypes
import numpy as np
import pytest

from tlx_xdsl.kernels.rows import softmax as softmax_module
from tlx_xdsl.kernels.rows.norm import layer_norm
from tlx_xdsl.kernels.rows.softmax import softmax, softmax_backward

pytestmark = pytest.mark.quick

DTYPES = {np.dtype(np.float32): 1e-6, np.dtype(np.float16): 1e-3, np.dtype(ml_dtypes.bfloat16): 8e-3}
"""Largest difference, next to results of about 1."""


def values(shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def expected_softmax(x):
    x = x.astype(np.float64)
    weights = np.exp(x - x.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def expected_norm(x, weight, bias, eps):
    x = x.astype(np.float64)
    result = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
    result = result if weight is None else result * weight.astype(np.float64)
    return result if bias is None else result + bias.astype(np.float64)


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES.items(), ids=str)
@pytest.mark.parametrize("shape", [(1,), (5, 1), (3, 7, 100), (2, 1000)])
def test_softmax(shape, dtype, tolerance):
    x = values(shape, dtype)
    found = softmax(x)
    assert found.dtype == x.dtype
    assert np.abs(found.astype(np.float64) - expected_softmax(x)).max() < tolerance


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES.items(), ids=str)
@pytest.mark.parametrize("columns", [9000, 9001])
def test_softmax_of_long_rows(columns, dtype, tolerance):
    x = values((3, columns), dtype)
    x[0, :8192] = -np.inf  # threads that meet no number until the last block, and some that meet none at all
    x[1, 0] = 20  # a maximum that the others never reach
    assert np.abs(softmax(x).astype(np.float64) - expected_softmax(x)).max() < tolerance


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES.items(), ids=str)
@pytest.mark.parametrize(("shape", "held"), [((1,), 9), ((5, 100), 999), ((2, 3, 64), 999), ((3, 9001), 1000)])
def test_the_gradient_of_softmax(shape, held, dtype, tolerance, monkeypatch):
    monkeypatch.setattr(softmax_module, "HELD_BACKWARD_COLUMNS", held)
    y, dout = expected_softmax(values(shape)).astype(dtype), values(shape, dtype, 1)
    exact, grad = y.astype(np.float64), dout.astype(np.float64)
    found = softmax_backward(y, dout)
    assert found.dtype == dtype
    expected = exact * (grad - (exact * grad).sum(-1, keepdims=True))
    assert np.abs(found.astype(np.float64) - expected).max() < tolerance


def test_softmax_of_what_is_no_number():
    x = values((5, 40))
    x[1, 3], x[2, 5], x[3] = np.nan, np.inf, -np.inf
    found = softmax(x)
    assert np.isfinite(found[[0, 4]]).all()
    assert np.isnan(found[[1, 3]]).all()
    assert np.isnan(found[2, 5])
    assert softmax(values((0, 8))).shape == softmax_backward(values((0, 8)), values((0, 8))).shape == (0, 8)


def test_rows_may_be_apart():
    x, out = values((6, 40)), np.full((6, 64), np.nan, np.float32)
    softmax(x[:, :30], out[:, 10:40])
    assert np.allclose(out[:, 10:40], expected_softmax(x[:, :30]))
    assert np.isnan(out[:, :10]).all()
    assert np.isnan(out[:, 40:]).all()


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES.items(), ids=str)
@pytest.mark.parametrize(("has_weight", "has_bias"), [(True, True), (True, False), (False, True), (False, False)])
def test_layer_norm(dtype, tolerance, has_weight, has_bias):
    x = values((5, 300), dtype) + 3
    weight = values(300, dtype, 1) if has_weight else None
    bias = values(300, dtype, 2) if has_bias else None
    found = layer_norm(x, weight, bias, eps=1e-3).astype(np.float64)
    expected = expected_norm(x, weight, bias, 1e-3)
    assert np.linalg.norm(found - expected) / np.linalg.norm(expected) < tolerance


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: softmax(values((4, 8)).T), ValueError, "softmax: argument 'x': expected contiguous rows"),
        (lambda: softmax(values((4, 8), np.float64)), TypeError, "expected elements of type fp16 or bf16 or fp32"),
        (lambda: softmax(values((4, 8)), values((4, 9))), ValueError, r"'out': expected the shape \(4, 8\)"),
        (lambda: layer_norm(values((4, 8)), values(9)), ValueError, r"'weight': expected the shape \(8,\)"),
        (lambda: layer_norm(values((4, 8)), bias=values(16)[::2]), ValueError, "'bias': expected contiguous rows"),
        (lambda: layer_norm(values((1, 1048577))), ValueError, "'x': expected rows of at most 1048576 elements, got"),
    ],
)
def test_wrong_operands_are_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()
