"""`linear_cross_entropy` and its gradients in the interpreter, against numpy in float64."""

import re

import ml_dtypes
import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels.gemm.test_compiled import compiled
from tlx_xdsl.kernels.calls.launching import Launches
from tlx_xdsl.kernels.calls.operands import operand
from tlx_xdsl.kernels.gemm.division import whole
from tlx_xdsl.kernels.gemm.launches import ADDED, Problem
from tlx_xdsl.kernels.linear_cross_entropy.call import (
    LINEAR_CROSS_ENTROPY,
    SCALING,
    linear_cross_entropy,
    linear_cross_entropy_backward,
)
from tlx_xdsl.kernels.linear_cross_entropy.launches import ADDING

BF16 = np.dtype(ml_dtypes.bfloat16)

GRADIENT = 4e-3
"""Norm of a gradient's difference over that of the gradient: logits, their gradients and the result are bf16."""

SHAPE = (150, 64, 203)
"""Two chunks of rows, and classes that fill no tile and no 16 bytes."""

ONE_TILE = 1
"""Bytes of logits: chunks have the rows of a tile at least."""


def layer(shape, seed=0, kind=np.int64):
    rows, depth, classes = shape
    random = np.random.default_rng(seed)
    x = random.standard_normal((rows, depth)).astype(BF16)
    w = (random.standard_normal((classes, depth)) * depth**-0.5).astype(BF16)
    target = random.integers(0, classes, rows).astype(kind)
    target[rows // 3] = -100
    return x, w, target


def expected(x, w, target, smoothing):
    """The loss of each row, and the gradient of its logits."""
    logits = x.astype(np.float64) @ w.astype(np.float64).T
    lse = np.log(np.exp(logits - logits.max(-1, keepdims=True)).sum(-1)) + logits.max(-1)
    counts = target != -100
    hot = np.arange(len(w)) == np.where(counts, target, 0)[:, None]
    loss = lse - (1 - smoothing) * logits[hot] - smoothing * logits.mean(-1)
    gradient = np.exp(logits - lse[:, None]) - (1 - smoothing) * hot - smoothing / len(w)
    return np.where(counts, loss, 0), np.where(counts[:, None], gradient, 0), lse


def difference(found, wanted):
    return np.linalg.norm(np.asarray(found, np.float64) - wanted) / np.linalg.norm(wanted)


def with_gradients(x, w, target, reduction="mean", smoothing=0.0, sums="fp32", logits_bytes=ONE_TILE):
    options = (-100, smoothing, reduction, True, True, logits_bytes, sums)
    return LINEAR_CROSS_ENTROPY((x, w, target, *(None,) * 8), options)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("sums", ["fp32", "bf16"])
def test_a_loss_and_its_gradients(reduction, smoothing, sums):
    x, w, target = layer(SHAPE)
    losses, of_logits, _ = expected(x, w, target, smoothing)
    factor = 1 / np.count_nonzero(target != -100) if reduction == "mean" else 1
    loss, dx, dw, _ = with_gradients(x, w, target, reduction, smoothing, sums)
    # Of logits that were rounded to bf16.
    assert loss == pytest.approx(losses.sum() * factor, rel=1e-4)
    assert difference(dx, factor * of_logits @ w.astype(np.float64)) < GRADIENT
    assert difference(dw, factor * of_logits.T @ x.astype(np.float64)) < GRADIENT


@pytest.mark.parametrize(
    "shape", [SHAPE, (3, 8, 5), (129, 72, 256), *([(40, 512, 1000)] if volume.is_full() else [])], ids=str
)
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_losses_without_logits_in_memory(shape, smoothing):
    x, w, target = layer(shape)
    losses = expected(x, w, target, smoothing)[0]
    found = linear_cross_entropy(x, w, target, label_smoothing=smoothing, reduction="none")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, losses, rtol=2e-6, atol=2e-6)
    mean = linear_cross_entropy(x, w, target, label_smoothing=smoothing)
    assert mean == pytest.approx(losses.sum() / np.count_nonzero(target != -100), rel=2e-6)


def test_gradients_of_the_loss_of_each_row():
    x, w, target = layer(SHAPE, kind=np.int32)
    _, of_logits, lse = expected(x, w, target, 0.1)
    _, dx, dw, found = with_gradients(x, w, target, "none", 0.1)
    assert dx is None
    assert dw is None
    np.testing.assert_allclose(found, lse, rtol=1e-6)
    dloss = np.random.default_rng(1).standard_normal(len(x)).astype(np.float32)
    dx, dw = linear_cross_entropy_backward(dloss, x, w, target, found, label_smoothing=0.1, logits_bytes=ONE_TILE)
    assert difference(dx, dloss[:, None] * of_logits @ w.astype(np.float64)) < GRADIENT
    assert difference(dw, (dloss[:, None] * of_logits).T @ x.astype(np.float64)) < GRADIENT


def test_rows_of_more_dimensions_in_one_chunk():
    x, w, target = layer((24, 16, 40))
    flat = with_gradients(x, w, target, logits_bytes=1 << 20)
    loss, dx, dw, _ = with_gradients(x.reshape(2, 3, 4, 16), w, target.reshape(2, 3, 4), logits_bytes=1 << 20)
    assert loss == flat[0]
    assert dx.shape == (2, 3, 4, 16)
    assert (dx.reshape(24, 16) == flat[1]).all()
    assert (dw == flat[2]).all()


def test_a_class_that_is_not_there_and_rows_that_do_not_count():
    x, w, target = layer((5, 8, 24))
    target[0] = 24
    with_absent = linear_cross_entropy(x, w, target, reduction="none")
    assert np.isnan(with_absent[0])
    assert np.isfinite(with_absent[1:]).all()
    assert np.isnan(with_gradients(x, w, target, "sum")[0])
    target[:] = -100
    assert np.isnan(linear_cross_entropy(x, w, target))
    loss, dx, dw, _ = with_gradients(x, w, target, "sum")
    assert loss == 0
    assert not dx.any()
    assert not dw.any()


def test_no_rows():
    x, w, target = np.zeros((0, 8), BF16), np.zeros((24, 8), BF16), np.zeros(0, np.int64)
    assert np.isnan(linear_cross_entropy(x, w, target))
    loss, dx, dw, _ = with_gradients(x, w, target, "sum")
    assert loss == 0
    assert dx.shape == (0, 8)
    assert not dw.any()


X, W, TARGET = np.zeros((4, 16), BF16), np.zeros((24, 16), BF16), np.zeros(4, np.int64)


@pytest.mark.parametrize(
    ("tensors", "options", "error", "message"),
    [
        ((X.astype(np.float32), W, TARGET), {}, TypeError, "argument 'x': expected elements of type bf16, got float32"),
        ((X, W.astype(np.float16), TARGET), {}, TypeError, "argument 'w': expected elements of type bf16, got float16"),
        ((X, W, TARGET.astype(np.int16)), {}, TypeError, "argument 'target': expected elements of type i32 or i64"),
        ((X, W[0], TARGET), {}, ValueError, "argument 'w': expected 2 dimensions, classes and elements, got the shape"),
        ((X[:, :8], W, TARGET), {}, ValueError, "argument 'x': expected rows of 16 elements, as 'w' has, got the"),
        ((X, W, TARGET[:3]), {}, ValueError, "argument 'target': expected the shape (4,) (that of 'x' without its"),
        ((X[:, :12], W[:, :12], TARGET), {}, ValueError, "argument 'x': expected rows of a multiple of 8 elements"),
        ((X, np.zeros((16, 24), BF16).T, TARGET), {}, ValueError, "argument 'w': expected contiguous rows that begin"),
        ((X, W, np.zeros(8, np.int64)[::2]), {}, ValueError, "argument 'target': expected contiguous elements"),
        ((X, W, TARGET), {"reduction": "max"}, ValueError, "argument 'reduction': expected mean or sum or none"),
        ((X, W, TARGET), {"label_smoothing": 2}, ValueError, "argument 'label_smoothing': expected 0 to 1, got 2.0"),
        ((X, W, TARGET), {"logits_bytes": 0}, ValueError, "argument 'logits_bytes': expected a positive number, got"),
        ((X, W, TARGET), {"sum_dtype": "fp64"}, ValueError, "argument 'sum_dtype': expected fp32 or bf16, got 'fp64'"),
    ],
)  # fmt: skip
def test_refusals(tensors, options, error, message):
    with pytest.raises(error, match=f"^linear_cross_entropy: {re.escape(message)}") as found:
        linear_cross_entropy(*tensors, **options)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("factor", [1, 0.3, np.nan], ids=str)
def test_gradients_are_multiplied_in_their_place(factor):
    random = np.random.default_rng(0)
    dx, dw = random.standard_normal((9, 16)).astype(BF16), random.standard_normal((1003, 16)).astype(BF16)
    wanted = [(each.astype(np.float32) * np.float32(factor)).astype(BF16).astype(np.float32) for each in (dx, dw)]
    found = SCALING((np.array(factor, np.float32), dx, dw))
    assert found[0] is dx
    assert found[1] is dw
    for each, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(each.astype(np.float32), other)
    assert SCALING((np.array(factor, np.float32), None, np.zeros((0, 8), BF16)))[0] is None


@pytest.mark.parametrize("dtype", [np.float32, BF16], ids=str)
def test_a_product_is_added_to_what_is_there(dtype):
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(BF16) for shape in ((150, 72), (72, 264)))
    before = random.integers(-4, 5, (150, 264)).astype(dtype)
    c = before.copy()
    operands = [operand("test", name, value) for name, value in (("a", a), ("b", b), ("c", c))]
    problem = Problem(
        *operands, ADDED, whole(ADDING["fp32" if dtype == np.float32 else "bf16"], 150, 264, 4), turned=False
    )
    Launches(problem.launches(None, 0)).interpret()
    wanted = before.astype(np.float64) + a.astype(np.float64) @ b.astype(np.float64)
    assert difference(c, wanted) < (1e-6 if dtype == np.float32 else 4e-3)


@pytest.mark.backend
def test_what_hopper_runs_spills_nothing():
    x, w, target = layer((256, 64, 1000))
    forward = LINEAR_CROSS_ENTROPY.prepare((x, w, target, *(None,) * 8), (-100, 0.1, "none", False, False, 1, "fp32"))
    both = LINEAR_CROSS_ENTROPY.prepare((x, w, target, *(None,) * 8), (-100, 0.0, "sum", True, True, 1, "fp32"))
    added = next(each for each in both.launches if getattr(each.constexprs.get("FORM"), "reduce", ""))
    for launch in (forward.launches[0], added):
        result = compiled(launch)
        assert result.resources.registers == 168
        assert max(result.resources.spill_store_bytes, result.resources.stack_bytes) == 0
        assert result.warnings == ()
    assert "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add" in result.ptx
