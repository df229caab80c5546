"""`rms_norm`, and the gradients of it and of `layer_norm`, in the interpreter, against numpy in float64."""

import ml_dtypes
import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels.gemm.test_compiled import compiled
from tests.unit.kernels.references import poisoned
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.kernels.rows import norm_clusters, norms
from tlx_xdsl.kernels.rows.norm import layer_norm, layer_norm_launch, rms_norm, rms_norm_launch
from tlx_xdsl.kernels.rows.norms import norm_backward, norm_backward_launch

DTYPES = {np.dtype(np.float32): 1e-6, np.dtype(np.float16): 1e-3, np.dtype(ml_dtypes.bfloat16): 8e-3}
"""Norm of the difference over that of the result."""

SHAPES = [(3, 64), (5, 100), (7, 1), (2, 3, 1024), (9, 1000)]
MORE_SHAPES = [(1, 4096), (130, 256), (3, 5000), (40, 2048)]


def values(shape, dtype=np.float32, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) + 0.5).astype(dtype)


def error(found, expected):
    return np.linalg.norm(found.astype(np.float64) - expected) / max(np.linalg.norm(expected), 1e-30)


def normalised(x, eps, centred):
    x = x - x.mean(-1, keepdims=True) if centred else x
    scale = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + eps)
    return x * scale, scale


def gradients(x, weight, dout, eps, centred):
    x, dout = x.astype(np.float64), dout.astype(np.float64)
    h, scale = normalised(x, eps, centred)
    g = dout if weight is None else dout * weight.astype(np.float64)
    dx = scale * (g - h * (g * h).mean(-1, keepdims=True) - (g.mean(-1, keepdims=True) if centred else 0))
    rows = tuple(range(x.ndim - 1))
    return dx, (dout * h).sum(rows), dout.sum(rows)


@pytest.mark.parametrize("centred", [False, True])
def test_the_reference_is_the_slope_of_the_formula(centred):
    x, weight, dout, way = (values((3, 7), np.float64, seed) for seed in range(4))
    weight = weight[0]
    dx, dweight, _ = gradients(x, weight, dout, 1e-3, centred)
    step = 1e-6
    losses = [(normalised(x + sign * step * way, 1e-3, centred)[0] * weight * dout).sum() for sign in (1, -1)]
    assert (losses[0] - losses[1]) / (2 * step) == pytest.approx((dx * way).sum(), rel=1e-6)
    assert dweight == pytest.approx((normalised(x, 1e-3, centred)[0] * dout).sum(0))


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES.items(), ids=str)
@pytest.mark.parametrize("shape", SHAPES + MORE_SHAPES if volume.is_full() else SHAPES)
def test_rms_norm(shape, dtype, tolerance):
    x, weight = values(shape, dtype), values(shape[-1], dtype, 1)
    expected, _ = normalised(x.astype(np.float64), 1e-6, False)
    assert error(rms_norm(x), expected) < tolerance
    out = poisoned(shape, dtype)
    assert rms_norm(x, weight, out=out) is out
    assert error(out, expected * weight.astype(np.float64)) < tolerance


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES.items(), ids=str)
@pytest.mark.parametrize("shape", SHAPES + MORE_SHAPES if volume.is_full() else SHAPES)
@pytest.mark.parametrize("centred", [False, True])
def test_gradients(centred, shape, dtype, tolerance):
    x, dout, weight = values(shape, dtype), values(shape, dtype, 2), values(shape[-1], dtype, 1)
    expected = gradients(x, weight, dout, 1e-3, centred)
    found = norm_backward(x, weight, dout, eps=1e-3, centred=centred, with_bias=True)
    for each, wanted in zip(found, expected, strict=True):
        assert each.dtype == x.dtype
        if np.abs(wanted).max() > 1e-3:  # of a single element what is left are roundings
            assert error(each, wanted) < 2 * tolerance
    dx, dweight, dbias = norm_backward(x, None, dout, eps=1e-3, centred=centred)
    assert (dweight, dbias) == (None, None)
    if shape[-1] > 1:
        assert error(dx, gradients(x, None, dout, 1e-3, centred)[0]) < 2 * tolerance


def in_small_pieces(monkeypatch, warps=1):
    """Let clusters have rows of up to 2048 elements in fp32 for each warp of a task: 512 bytes for each of a CTA."""
    monkeypatch.setattr(norms, "HELD_COLUMNS", 64)
    monkeypatch.setattr(norms, "HELD_BACKWARD_COLUMNS", 64)
    monkeypatch.setattr(norm_clusters, "PIECE_BYTES", {False: (512 * warps,), True: (512 * warps,)})
    monkeypatch.setattr(norm_clusters, "WARPS", warps)
    monkeypatch.setattr(norm_clusters, "SUM_WARPS", {False: warps, True: warps})


@pytest.mark.parametrize("columns", [136, 200, 256, 512, 1000, 1024, 3 * 128 + 1])
@pytest.mark.parametrize("centred", [False, True])
def test_rows_that_clusters_hold(monkeypatch, centred, columns):
    in_small_pieces(monkeypatch)
    check_rows_of_clusters(centred, columns)


def check_rows_of_clusters(centred, columns):
    # Each cluster has more rows than there are places for sums, and gives back some twice.
    count = 70 if columns == 512 else 20
    x, dout, weight = values((count, columns)), values((count, columns), seed=2), values(columns, seed=1)
    x += 30  # the mean is far from 0: squares of what is not centred would lose the variance
    expected, _ = normalised(x.astype(np.float64), 1e-5, centred)
    assert error((layer_norm if centred else rms_norm)(x, eps=1e-5), expected) < 3e-6
    found = norm_backward(x, weight, dout, eps=1e-5, centred=centred, with_bias=True)
    for each, wanted in zip(found, gradients(x, weight, dout, 1e-5, centred), strict=True):
        assert error(each, wanted) < 2e-5


@pytest.mark.parametrize("schedule", POLICIES)
def test_clusters_in_any_order(monkeypatch, schedule):
    in_small_pieces(monkeypatch)
    x, dout, weight = values((40, 1000)), values((40, 1000), seed=2), values(1000, seed=1)
    dx, dweight, dbias = np.empty_like(x), np.empty_like(weight), np.empty_like(weight)
    launches = norm_backward_launch(x, weight, dout, dx, dweight, dbias, eps=1e-5, centred=True)
    launches.interpret(schedule=schedule)
    for each, wanted in zip((dx, dweight, dbias), gradients(x, weight, dout, 1e-5, True), strict=True):
        assert error(each, wanted) < 2e-6


@pytest.mark.backend
@pytest.mark.parametrize("columns", [65536, 131072] if volume.is_full() else [131072])
def test_clusters_compiled(columns):
    """The code spills nothing: the task that writes has the registers that the others give up."""
    kind = np.dtype(ml_dtypes.bfloat16)
    x, weight = np.empty((4, columns), kind), np.empty(columns, kind)
    backward = norm_backward_launch(x, weight, x, x.copy(), weight.copy(), weight.copy(), eps=1e-5, centred=True)
    for launch in (backward.parts[0], layer_norm_launch(x, weight, weight, x.copy())):
        result = compiled(launch)
        assert result.resources.spill_store_bytes == 0
        assert "ld.shared.v4" in result.ptx
        assert "st.global.v4" in result.ptx


@pytest.mark.backend
def test_ptx_of_clusters(monkeypatch):
    """The PTX gives the numbers, and its machine has nothing to report; one of four CTAs has a ragged end."""
    in_small_pieces(monkeypatch)
    monkeypatch.setattr(norm_clusters, "PIECE_BYTES", {False: (2048,), True: (2048,)})
    monkeypatch.setattr(norm_clusters, "WARPS", 4)
    x, dout, weight = (values(shape, np.float16, seed) for seed, shape in enumerate([(34, 3008), (34, 3008), 3008]))
    out, dx, dweight, dbias = (poisoned(each.shape, np.float16) for each in (x, x, weight, weight))
    layer_norm_launch(x, weight, weight, out, eps=1e-5).interpret(stage="ptx")
    expected = normalised(x.astype(np.float64), 1e-5, True)[0] * weight.astype(np.float64) + weight.astype(np.float64)
    assert error(out, expected) < 1e-3
    main, sums = norm_backward_launch(x, weight, dout, dx, dweight, dbias, eps=1e-5, centred=True).parts
    main.interpret(stage="ptx")
    sums.interpret()
    for each, wanted in zip((dx, dweight, dbias), gradients(x, weight, dout, 1e-5, True), strict=True):
        assert error(each, wanted) < 1e-3


@pytest.mark.parametrize("columns", [70000, 65544, 9000] if volume.is_full() else [65544, 9000])
@pytest.mark.parametrize("centred", [False, True])
def test_rows_that_registers_do_not_hold(monkeypatch, centred, columns):
    monkeypatch.setattr(norm_clusters, "CLUSTERS", {})
    x, dout, weight = values((19, columns)), values((19, columns), seed=2), values(columns, seed=1)
    expected, _ = normalised(x.astype(np.float64), 1e-5, centred)
    assert error((layer_norm if centred else rms_norm)(x, eps=1e-5), expected) < 1e-6
    found = norm_backward(x, weight, dout, eps=1e-5, centred=centred, with_bias=True)
    for each, wanted in zip(found, gradients(x, weight, dout, 1e-5, centred), strict=True):
        assert error(each, wanted) < 2e-6


def test_rows_may_be_apart():
    beside = values((6, 48))
    x = beside[:, :40]
    beside[:, 40:] = np.nan
    expected, _ = normalised(x.astype(np.float64), 1e-6, False)
    assert error(rms_norm(x), expected) < 1e-6
    dx, _, _ = norm_backward(x, None, values((6, 40), seed=3), eps=1e-6, centred=False)
    assert error(dx, gradients(x, None, values((6, 40), seed=3), 1e-6, False)[0]) < 1e-6


def test_nothing_and_what_is_no_number():
    assert rms_norm(values((0, 8))).shape == (0, 8)
    dx, dweight, dbias = norm_backward(
        values((0, 8)), values(8), values((0, 8)), eps=1e-5, centred=True, with_bias=True
    )
    assert dx.shape == (0, 8)
    assert not dweight.any()
    assert not dbias.any()
    x = values((3, 16))
    x[1, 3], x[2, 5] = np.nan, np.inf
    for each in (rms_norm(x), layer_norm(x)):
        assert np.isfinite(each[0]).all()
        assert np.isnan(each[1]).all()
        assert np.isnan(each[2, 5])


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: rms_norm(values((4, 8)).T), ValueError, "rms_norm: argument 'x': expected contiguous rows"),
        (lambda: rms_norm(values((4, 8)), values(9)), ValueError, r"'weight': expected the shape \(8,\)"),
        (lambda: rms_norm(values((1, 1048577))), ValueError, "of at most 1048576 elements, got 1048577"),
        (
            lambda: norm_backward(values((4, 8)), None, values((4, 9)), eps=1e-5, centred=True),
            ValueError, r"'dout': expected the shape \(4, 8\)",
        ),
    ],
)  # fmt: skip
def test_wrong_operands_are_refused(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.backend
@pytest.mark.parametrize("columns", [1024, 2048, 4096, 8192, 131072] if volume.is_full() else [8192])
def test_compiled(columns):
    """16 bytes are moved at a time, or pieces of rows by bulk copies, and nothing is spilled."""
    kind = ml_dtypes.bfloat16
    x, weight = np.empty((512, columns), kind), np.empty(columns, kind)
    launches = [
        layer_norm_launch(x, weight, weight, x),
        rms_norm_launch(x, weight, x),
        norm_backward_launch(x, weight, x, x, weight, weight, eps=1e-5, centred=True).parts[0],
    ]
    for launch in launches:
        result = compiled(launch)
        # The gradients have 128 registers: ptxas 13.3, which Triton 3.8 brings, keeps one of them in memory.
        assert result.resources.spill_store_bytes <= 4 * result.assembler.startswith("ptxas 13.3")
        assert ("ld.global.v4" if columns <= norms.HELD_BACKWARD_COLUMNS else "cp.async.bulk") in result.ptx
        assert "st.global.v4" in result.ptx
