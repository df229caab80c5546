"""`cross_entropy` and its gradient in the interpreter, against numpy in float64."""

import re

import ml_dtypes
import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels.gemm.test_compiled import compiled
from tlx_xdsl.kernels.calls.launching import INTERPRETED_PROGRAMS
from tlx_xdsl.kernels.calls.plans import COUNTERS
from tlx_xdsl.kernels.rows.cross_entropy import (
    CROSS_ENTROPY,
    cross_entropy,
    cross_entropy_backward,
    cross_entropy_backward_launch,
    cross_entropy_launch,
)

DTYPES = {np.dtype(np.float32): 1e-6, np.dtype(np.float16): 1e-3, np.dtype(ml_dtypes.bfloat16): 8e-3}
"""Largest difference of a gradient of a row: that of the roundings of its type. Losses are f32."""

SHAPES = [(5, 100), (1, 1), (2, 3, 64), (2, 2047), (3, 9001)]


def logits(shape, dtype=np.float32, seed=0):
    return (3 * np.random.default_rng(seed).standard_normal(shape)).astype(dtype)


def classes(shape, seed=1, kind=np.int64):
    found = np.random.default_rng(seed).integers(0, shape[-1], shape[:-1]).astype(kind)
    found.flat[0] = -100 if found.size > 2 else found.flat[0]
    return found


def expected(x, target, smoothing, ignored=-100):
    """The loss and its gradient for each row."""
    x = x.astype(np.float64)
    lse = np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1)) + x.max(-1)
    places = np.where(target == ignored, 0, target)[..., None]
    loss = lse - (1 - smoothing) * np.take_along_axis(x, places, -1)[..., 0] - smoothing * x.mean(-1)
    hot = np.arange(x.shape[-1]) == places
    grad = np.exp(x - lse[..., None]) - (1 - smoothing) * hot - smoothing / x.shape[-1]
    counts = target != ignored
    return np.where(counts, loss, 0), np.where(counts[..., None], grad, 0)


def test_the_reference_is_the_slope_of_the_formula():
    x, target, way = logits((3, 7), np.float64), classes((3, 7)), logits((3, 7), np.float64, 2)
    step = 1e-6
    up, down = (expected(x + sign * step * way, target, 0.1)[0].sum() for sign in (1, -1))
    assert (up - down) / (2 * step) == pytest.approx((expected(x, target, 0.1)[1] * way).sum(), rel=1e-6)


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES.items(), ids=str)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("shape", SHAPES)
def test_losses_and_gradients(shape, smoothing, dtype, tolerance):
    x, target = logits(shape, dtype), classes(shape)
    each, slopes = expected(x, target, smoothing)
    found, lse, scale = CROSS_ENTROPY((x, target, None, None, None), (-100, smoothing, "none", True))
    assert (found.dtype, scale) == (np.float32, None)
    assert found == pytest.approx(each, rel=2e-6, abs=2e-6)
    dloss = logits(shape[:-1], seed=3)
    dx = cross_entropy_backward(dloss, x, target, lse, None, label_smoothing=smoothing)
    assert dx.dtype == dtype
    limit = tolerance * max(1, np.abs(dloss).max())
    assert np.abs(dx.astype(np.float64) - slopes * dloss[..., None]).max() < limit


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_sums_and_means(kind):
    x, target = logits((70, 33)), classes((70, 33), kind=kind)
    target[0], target[5:9] = 0, 7
    counted = (target != 7).sum()
    each, slopes = expected(x, target, 0.0, 7)
    assert cross_entropy(x, target, ignore_index=7, reduction="sum") == pytest.approx(each.sum(), rel=1e-6)
    loss, lse, scale = CROSS_ENTROPY((x, target, None, None, None), (7, 0.0, "mean", True))
    assert loss.shape == ()
    assert loss == pytest.approx(each.sum() / counted, rel=1e-6)
    dx = cross_entropy_backward(np.array(2, np.float32), x, target, lse, scale, ignore_index=7)
    assert dx == pytest.approx(slopes * 2 / counted, abs=1e-7)


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_the_last_program_adds_up(reduction):
    """The launch has no race, and leaves the counter as it was: the next call begins with zero."""
    x, target = logits((9, 40)), classes((9, 40))
    tensors = (x, target, None, None, None)
    prepared = CROSS_ENTROPY.prepare(tensors, (-100, 0.0, reduction, True))
    (launch,) = prepared.launches
    for _ in range(2):
        assert launch.interpret(jobs=1).warnings == ()
        assert prepared.tensors[COUNTERS] == [0]
        each = expected(x, target, 0.0)[0].sum()
        assert prepared.tensors["loss"] == pytest.approx(each / 8 if reduction == "mean" else each, rel=1e-6)


def test_without_a_gradient_nothing_is_kept_for_one():
    x, target = logits((9, 40)), classes((9, 40))
    loss, lse, scale = CROSS_ENTROPY((x, target, None, None, None), (-100, 0.0, "mean", False))
    assert (lse, scale) == (None, None)
    assert loss == CROSS_ENTROPY((x, target, None, None, None), (-100, 0.0, "mean", True))[0]


def test_what_is_not_there():
    x, target = logits((4, 8)), np.array([1, 8, -1, 3])
    found = cross_entropy(x, target, reduction="none")
    assert (np.isnan(found) == [False, True, True, False]).all()
    assert np.isnan(cross_entropy(x, np.full(4, -100)))
    assert np.isnan(cross_entropy(logits((0, 8)), np.zeros(0, np.int64)))
    assert cross_entropy(logits((0, 8)), np.zeros(0, np.int64), reduction="sum") == 0
    x[0, 1], x[3, 0] = -np.inf, np.nan
    found = cross_entropy(x, np.array([1, 0, 0, 3]), reduction="none")
    assert found[0] == np.inf
    assert np.isfinite(found[1:3]).all()
    assert np.isnan(found[3])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_far_from_zero(dtype):
    """Sums neither overflow nor vanish in rows that rise, that fall, and that begin with minus infinity."""
    x = np.stack([np.linspace(-300, 300, 5000), np.linspace(200, -400, 5000), np.full(5000, -np.inf)])
    x[2, 4990:] = 1000
    x, target = x.astype(dtype), np.array([4000, 20, 4995])
    exact = x.astype(np.float64)
    lse = np.log(np.exp(exact - exact.max(-1, keepdims=True)).sum(-1)) + exact.max(-1)
    found = cross_entropy(x, target, reduction="none")
    assert found == pytest.approx(lse - exact[[0, 1, 2], target], abs=1e-4)  # what f32 has of 1000
    if dtype != np.float16:
        x[0] = np.finfo(np.float32).min / 2  # what masks are made of; a logarithm is nothing beside it
        assert np.isfinite(cross_entropy(x, target, reduction="none")).all()


@pytest.mark.parametrize("rows", [1, 100, 300, 700])
@pytest.mark.parametrize(("columns", "together", "resident"), [(64, 32, 8), (1001, 2, 8), (4104, 1, 16)])
def test_programs_have_as_many_rows_each(columns, together, resident, rows):
    """Programs may have one group of rows less: none is left with one when the others are done."""
    x, target = np.empty((rows, columns), np.float32), np.zeros(rows, np.int64)
    (launch,) = CROSS_ENTROPY.prepare((x, target, None, None, None), (-100, 0.0, "sum", False)).launches
    groups = -(-rows // together)
    most = -(-groups // (INTERPRETED_PROGRAMS * resident))
    assert groups / most <= launch.grid[0] < groups / most + 1


def test_rows_may_be_apart():
    beside = logits((6, 48))
    x = beside[:, :40]
    beside[:, 40:] = np.nan
    target = classes((6, 40))
    assert cross_entropy(x, target, reduction="none") == pytest.approx(expected(x, target, 0.0)[0], rel=1e-6)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: cross_entropy(logits((4, 8)), np.zeros(5, np.int64)), ValueError, "'target': expected the shape"),
        (lambda: cross_entropy(logits((4, 8)), logits(4)), TypeError, "'target': expected elements of type i32 or i64"),
        (lambda: cross_entropy(logits((4, 8)).T, np.zeros(8, np.int64)), ValueError, "'x': expected contiguous rows"),
        (
            lambda: cross_entropy(logits((4, 8)), np.zeros(4, np.int64), reduction="max"),
            ValueError, "'reduction': expected mean or sum or none, got 'max'",
        ),
        (
            lambda: cross_entropy(logits((4, 8)), np.zeros(4, np.int64), label_smoothing=2),
            ValueError, "'label_smoothing': expected 0 to 1, got 2",
        ),
        (
            lambda: cross_entropy(logits((4, 8)), np.zeros(8, np.int64)[::2]),
            ValueError, "'target': expected contiguous",
        ),
    ],
)  # fmt: skip
def test_wrong_operands_are_refused(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.backend
@pytest.mark.parametrize("columns", [1000, 32000, 128256] if volume.is_full() else [32000])
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float32])
def test_compiled(columns, dtype):
    """16 bytes are moved at a time, and nothing is spilled."""
    x, rows = np.empty((64, columns), dtype), np.empty(64, np.float32)
    target = np.zeros(64, np.int64)
    for smoothing in (0.0, 0.1):
        (added,) = CROSS_ENTROPY.prepare((x, target, None, None, None), (-100, smoothing, "mean", True)).launches
        backward = cross_entropy_backward_launch(rows, x, target, rows, None, x, smoothing=smoothing)
        for launch in (added, cross_entropy_launch(x, target, rows, rows, smoothing), backward):
            result = compiled(launch)
            assert result.resources.spill_store_bytes == 0
            assert re.search(r"ld\.global\.\S*v4", result.ptx)
        assert "st.global.v4" in result.ptx
