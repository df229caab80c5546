"""Normalised rows that begin anywhere: bodies by 16 bytes, and edges; against numpy in float64."""

import ml_dtypes
import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels.gemm.test_compiled import compiled
from tests.unit.kernels.rows.test_norms import DTYPES, error, gradients, normalised, values
from tlx_xdsl.kernels.calls import operands
from tlx_xdsl.kernels.rows import norms
from tlx_xdsl.kernels.rows.norm import (
    layer_norm,
    layer_norm_launch,
    layer_norm_residual,
    rms_norm,
    rms_norm_launch,
    rms_norm_residual,
)
from tlx_xdsl.kernels.rows.norms import norm_backward, norm_backward_launch

BF16 = np.dtype(ml_dtypes.bfloat16)
SENTINEL = 77.0

# As many rows as begin at each of eight places, and one more; the last is of more than one step of a program.
SHAPES = [(9, 3), (9, 64 + 1), (9, 130), (41, 103), (300, 67)]
MORE_SHAPES = [*((17, columns) for columns in (*range(1, 9), *range(64, 81))), (9, 1001), (17, 2050), (9, 4099)]


def begins_anywhere(launch):
    return "unaligned" in launch.kernel.source.name


def with_sentinels(shape, dtype):
    """An array of NaN, between others that nothing may write."""
    memory = np.full(shape[0] * shape[1] + 32, SENTINEL, dtype)
    inner = memory[16:-16].reshape(shape)
    inner[...] = np.nan
    return memory, inner


def check_sentinels(memory):
    assert (memory[:16].astype(np.float32) == SENTINEL).all()
    assert (memory[-16:].astype(np.float32) == SENTINEL).all()


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES.items(), ids=str)
@pytest.mark.parametrize("shape", SHAPES + MORE_SHAPES if volume.is_full() else SHAPES, ids=str)
def test_forward(shape, dtype, tolerance):
    x, weight, bias = values(shape, dtype), values(shape[-1], dtype, 1), values(shape[-1], dtype, 2)
    memory, out = with_sentinels(shape, dtype)
    launch = layer_norm_launch(x, weight, bias, out, eps=1e-5)
    assert begins_anywhere(launch) is bool(shape[-1] % 8)
    layer_norm(x, weight, bias, out=out, eps=1e-5)
    expected = normalised(x.astype(np.float64), 1e-5, True)[0] * weight.astype(np.float64) + bias.astype(np.float64)
    assert error(out, expected) < tolerance
    check_sentinels(memory)
    rms_norm(x, weight, out=out, eps=1e-5)
    assert error(out, normalised(x.astype(np.float64), 1e-5, False)[0] * weight.astype(np.float64)) < tolerance


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES.items(), ids=str)
@pytest.mark.parametrize("shape", SHAPES + MORE_SHAPES if volume.is_full() else SHAPES, ids=str)
@pytest.mark.parametrize("centred", [False, True], ids=["rms", "layer"])
def test_backward(centred, shape, dtype, tolerance):
    x, dout, weight = values(shape, dtype), values(shape, dtype, 2), values(shape[-1], dtype, 1)
    memory, dx = with_sentinels(shape, dtype)
    dweight, dbias = np.full_like(weight, np.nan), np.full_like(weight, np.nan)
    launches = norm_backward_launch(x, weight, dout, dx, dweight, dbias, eps=1e-3, centred=centred)
    form = launches.parts[0].constexprs["FORM"]
    assert (form.classes > 1) is bool(shape[-1] % 8)
    launches.interpret(jobs=1)
    for found, wanted in zip((dx, dweight, dbias), gradients(x, weight, dout, 1e-3, centred), strict=True):
        assert error(found, wanted) < 2 * tolerance
    check_sentinels(memory)


def test_residual_and_what_is_added_backward():
    x, residual, dout = (values((19, 203), BF16, seed) for seed in range(3))
    weight, bias = values(203, BF16, 3), values(203, BF16, 4)
    y, h = layer_norm_residual(x, residual, weight, bias)
    assert (h == (x.astype(np.float32) + residual.astype(np.float32)).astype(BF16)).all()
    expected = normalised(h.astype(np.float64), 1e-5, True)[0]
    assert error(y, expected * weight.astype(np.float64) + bias.astype(np.float64)) < 8e-3
    dx, _, _ = norm_backward(h, weight, dout, eps=1e-5, centred=True, dh=residual)
    assert error(dx, gradients(h, weight, dout, 1e-5, True)[0] + residual.astype(np.float64)) < 8e-3


@pytest.mark.parametrize(
    ("columns", "dtype", "centred", "ahead", "stages"),
    [
        (67, BF16, False, False, 2),
        (203, np.float16, False, False, 2),
        (67, BF16, True, True, 3),
        (67, np.float32, False, True, 3),
        (259, BF16, False, True, 4),
    ],
)
def test_edges_of_short_rows_with_a_residual(columns, dtype, centred, ahead, stages):
    """Edges are loaded with their block where that was faster; a program has several blocks, the last not full."""
    shape, dtype = (600, columns), np.dtype(dtype)
    x, residual, weight = values(shape, dtype), values(shape, dtype, 1), values(columns, dtype, 2)
    memory, out = with_sentinels(shape, dtype)
    sums, h = with_sentinels(shape, dtype)
    launch = norms.norm_launch("norm", x, weight, None, out, 1e-5, centred=centred, residual=residual, h=h)
    assert (launch.constexprs["AHEAD"], launch.constexprs["STAGES"]) == (ahead, stages)
    launch.interpret(jobs=1)
    assert (h == (x.astype(np.float32) + residual.astype(np.float32)).astype(dtype)).all()
    expected = normalised(h.astype(np.float64), 1e-5, centred)[0] * weight.astype(np.float64)
    assert error(out, expected) < DTYPES[dtype]
    check_sentinels(memory)
    check_sentinels(sums)


@pytest.mark.parametrize("centred", [False, True], ids=["rms", "layer"])
def test_rows_that_registers_do_not_hold(monkeypatch, centred):
    monkeypatch.setattr(norms, "_HELD_UNALIGNED", 64)
    monkeypatch.setattr(norms, "_LONG_BLOCK", 64)
    monkeypatch.setattr(norms, "_LONG_WARPS", 1)
    x, residual, weight = values((9, 211), BF16), values((9, 211), BF16, 1), values(211, BF16, 2)
    memory, out = with_sentinels(x.shape, BF16)
    launch = layer_norm_launch(x, weight, None, out) if centred else rms_norm_launch(x, weight, out)
    assert (launch.kernel.source.name, launch.constexprs["WIDTH"]) == ("norm_long_rows", 8)
    launch.interpret(jobs=1)
    assert error(out, normalised(x.astype(np.float64), 1e-5, centred)[0] * weight.astype(np.float64)) < 8e-3
    check_sentinels(memory)
    y, h = (layer_norm_residual if centred else rms_norm_residual)(x, residual, weight)
    assert (h == (x.astype(np.float32) + residual.astype(np.float32)).astype(BF16)).all()
    assert error(y, normalised(h.astype(np.float64), 1e-5, centred)[0] * weight.astype(np.float64)) < 8e-3


def test_rows_that_are_not_there():
    """The scale of a row that is not there, infinite without an `eps`, does not get into sums."""
    x, dout = values((11, 99), BF16), values((11, 99), BF16, 1)
    weight = values(99, BF16, 2)
    found = norm_backward(x, weight, dout, eps=0.0, centred=True, with_bias=True)
    for each, wanted in zip(found, gradients(x, weight, dout, 0.0, True), strict=True):
        assert error(each, wanted) < 16e-3


@pytest.mark.parametrize("centred", [False, True], ids=["rms", "layer"])
def test_gradients_of_rows_that_registers_do_not_hold(monkeypatch, centred):
    """Rows of `rms_norm` are held no further than others, also with a gradient of the sum."""
    monkeypatch.setattr(norms, "_HELD_BACKWARD_UNALIGNED", 64)
    monkeypatch.setattr(norms, "_LONG_BLOCK", 64)
    monkeypatch.setattr(norms, "_LONG_WARPS", 1)
    x, dout, dh = (values((9, 211), BF16, seed) for seed in range(3))
    weight = values(211, BF16, 3)
    memory, dx = with_sentinels(x.shape, BF16)
    dweight, dbias = np.full_like(weight, np.nan), np.full_like(weight, np.nan)
    launches = norm_backward_launch(x, weight, dout, dx, dweight, dbias, eps=1e-3, centred=centred, dh=dh)
    first = launches.parts[0]
    assert (first.kernel.source.name, first.constexprs["WIDTH"]) == ("norm_backward_long_rows", 8)
    launches.interpret(jobs=1)
    wanted = gradients(x, weight, dout, 1e-3, centred)
    for found, each in zip((dx, dweight, dbias), (wanted[0] + dh.astype(np.float64), *wanted[1:]), strict=True):
        assert error(found, each) < 16e-3
    check_sentinels(memory)


@pytest.mark.parametrize("centred", [False, True], ids=["rms", "layer"])
def test_rows_whose_weights_registers_do_not_hold(monkeypatch, centred):
    monkeypatch.setattr(norms, "_HELD_FACTORS", 64)
    x, weight, bias = values((9, 211), BF16), values(211, BF16, 2), values(211, BF16, 3)
    memory, out = with_sentinels(x.shape, BF16)
    launch = layer_norm_launch(x, weight, bias, out) if centred else rms_norm_launch(x, weight, out)
    assert launch.constexprs["HELD"] is False
    launch.run_on_cpu()
    expected = normalised(x.astype(np.float64), 1e-5, centred)[0] * weight.astype(np.float64)
    assert error(out, expected + centred * bias.astype(np.float64)) < 8e-3
    check_sentinels(memory)


def test_numbers_that_are_none_stay_in_their_row():
    x, weight = values((20, 21), BF16), values(21, BF16, 1)
    x[3, 0], x[11, -1], x[12, 9] = np.nan, np.inf, np.nan
    out = rms_norm(x, weight)
    bad = [3, 11, 12]
    assert np.isnan(out[bad].astype(np.float32)).any(-1).all()
    good = np.delete(x, bad, 0).astype(np.float64)
    assert error(np.delete(out, bad, 0), normalised(good, 1e-6, False)[0] * weight.astype(np.float64)) < 8e-3


@pytest.mark.parametrize("why", ["memory", "distance"])
def test_other_rows_go_one_by_one(monkeypatch, why):
    x = values((9, 99), BF16)
    out = np.full((9, 120), np.nan, BF16)[:, :99] if why == "distance" else np.empty_like(x)
    if why == "memory":
        monkeypatch.setattr(operands, "is_aligned", lambda each: each.name != "out")
    launch = rms_norm_launch(x, None, out)
    assert not begins_anywhere(launch)
    launch.interpret(jobs=1)
    assert error(out, normalised(x.astype(np.float64), 1e-6, False)[0]) < 8e-3


def test_rows_apart():
    x = values((20, 200), BF16)[:, :101]
    out = np.full((20, 200), SENTINEL, BF16)
    launch = rms_norm_launch(x, None, out[:, :101])
    assert begins_anywhere(launch)
    launch.interpret(jobs=1)
    assert error(out[:, :101], normalised(x.astype(np.float64), 1e-6, False)[0]) < 8e-3
    assert (out[:, 101:].astype(np.float32) == SENTINEL).all()


@pytest.mark.backend
@pytest.mark.parametrize("columns", [81, 258, 811, 2702, 6005, 11485, 24057] if volume.is_full() else [811])
def test_compiled(columns):
    """Bodies are moved by 16 bytes, edges one by one."""
    x, weight = np.empty((512, columns), BF16), np.empty(columns, BF16)
    launches = [rms_norm_launch(x, weight, x.copy())]
    if columns <= norms._HELD_FACTORS:
        launches.append(layer_norm_launch(x, weight, weight, x.copy()))
    if columns <= norms.HELD_BACKWARD_COLUMNS:
        launches.append(
            norm_backward_launch(x, weight, x, x.copy(), weight.copy(), None, eps=1e-5, centred=False).parts[0]
        )
    for launch in launches:
        result = compiled(launch)
        # Weights, biases and their sums are in registers: of 811 columns 12 bytes are spilled with Triton 3.9.0.
        assert result.resources.spill_store_bytes <= (64 if "backward" in launch.kernel.source.name else 16)
        assert "st.global.v4" in result.ptx
        assert "ld.global.v4" in result.ptx or "cp.async.cg.shared.global" in result.ptx
