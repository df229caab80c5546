"""`rms_norm_residual` and `layer_norm_residual` in the interpreter, and what gradients add to dx."""

import numpy as np
import pytest

from tests.unit.kernels.gemm.test_compiled import compiled
from tests.unit.kernels.rows.test_norms import DTYPES, error, gradients, in_small_pieces, normalised, values
from tlx_xdsl.kernels.rows import norm_clusters, norms
from tlx_xdsl.kernels.rows.norm import layer_norm, layer_norm_residual, rms_norm, rms_norm_residual
from tlx_xdsl.kernels.rows.norms import norm_backward, norm_backward_launch, norm_launch


def in_one_cta(monkeypatch):
    """Leave the choice as it is."""


def block_by_block(monkeypatch):
    """Let registers hold no row, and no cluster."""
    monkeypatch.setattr(norm_clusters, "CLUSTERS", {})
    for name, value in {
        "HELD_COLUMNS": 64, "HELD_BACKWARD_COLUMNS": 64, "_LONG_BLOCK": 128, "_LONG_WARPS": 4
    }.items():  # fmt: skip
        monkeypatch.setattr(norms, name, value)


WAYS = [in_one_cta, in_small_pieces, block_by_block]
SHAPES = [(5, 200), (2, 3, 500), (9, 1000)]


def both(centred):
    """The function, and the norm by itself."""
    return (layer_norm_residual, layer_norm) if centred else (rms_norm_residual, rms_norm)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("centred", [False, True], ids=["rms", "layer"])
def test_it_is_the_norm_of_the_rounded_sum(monkeypatch, centred, dtype, way):
    way(monkeypatch)
    fused, norm = both(centred)
    for shape in SHAPES:
        x, residual, weight = values(shape, dtype), values(shape, dtype, 1), values(shape[-1], dtype, 2)
        y, h = fused(x, residual, weight, eps=1e-5)
        assert h.dtype == y.dtype == dtype
        assert np.array_equal(h, (x.astype(np.float32) + residual.astype(np.float32)).astype(dtype))
        assert np.array_equal(y, norm(h, weight, eps=1e-5))
        expected, _ = normalised(h.astype(np.float64), 1e-5, centred)
        assert error(y, expected * weight.astype(np.float64)) < 2 * DTYPES[np.dtype(dtype)]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES.items(), ids=str)
@pytest.mark.parametrize("centred", [False, True], ids=["rms", "layer"])
def test_gradient_of_the_sum(monkeypatch, centred, dtype, tolerance, way):
    way(monkeypatch)
    shape = (9, 1000)
    h, dout, dh = (values(shape, dtype, seed) for seed in range(3))
    weight = values(shape[-1], dtype, 3)
    dx, dweight, dbias = norm_backward(h, weight, dout, eps=1e-3, centred=centred, with_bias=True, dh=dh)
    wanted = gradients(h, weight, dout, 1e-3, centred)
    assert error(dx, wanted[0] + dh.astype(np.float64)) < tolerance
    without = norm_backward(h, weight, dout, eps=1e-3, centred=centred, with_bias=True)
    assert np.array_equal(dweight, without[1])
    assert np.array_equal(dbias, without[2])


def test_rows_may_be_apart():
    beside = values((6, 96))
    x, residual = beside[:, :40], beside[:, 48:88]
    beside[:, 40:48] = beside[:, 88:] = np.nan
    y, h = rms_norm_residual(x, residual)
    assert np.array_equal(h, x + residual)
    assert np.array_equal(y, rms_norm(h))
    dx, _, _ = norm_backward(h, None, y, eps=1e-6, centred=False, dh=residual)
    plain, _, _ = norm_backward(h, None, y, eps=1e-6, centred=False)
    assert error(dx, plain.astype(np.float64) + residual) < 1e-6


def test_nothing():
    y, h = layer_norm_residual(values((0, 8)), values((0, 8)), values(8), values(8))
    assert y.shape == h.shape == (0, 8)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: rms_norm_residual(values((4, 8)), values((4, 9))), ValueError, r"rms_norm_residual.*'residual': exp"),
        (lambda: layer_norm_residual(values((4, 8)), values((4, 8), np.float16)), TypeError, "'residual'"),
        (lambda: rms_norm_residual(values((4, 8)), values((4, 8)), values(9)), ValueError, "'weight': expected"),
        (lambda: rms_norm_residual(values((4, 8)), values((8, 4)).T), ValueError, "'residual': expected contiguous"),
        (
            lambda: norm_backward(
                values((4, 8)), None, values((4, 8)), eps=1e-5, centred=True, dh=values((4, 9))
            ),
            ValueError, "'dh': expected the shape",
        ),
    ],
)  # fmt: skip
def test_wrong_operands_are_refused(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.backend
@pytest.mark.parametrize("columns", [8192, 65536])
def test_compiled(columns):
    """Held, and by clusters: 16 bytes are moved at a time, and nothing is spilled."""
    kind = next(each for each in DTYPES if each.name == "bfloat16")
    x, weight = np.empty((4, columns), kind), np.empty(columns, kind)
    forward = norm_launch("", x, weight, None, x.copy(), 1e-6, centred=False, residual=x.copy(), h=x.copy())
    backward = norm_backward_launch(
        x, weight, x.copy(), x.copy(), weight.copy(), None, eps=1e-6, centred=False, dh=x.copy()
    )
    for launch in (forward, backward.parts[0]):
        result = compiled(launch)
        assert result.resources.spill_store_bytes == 0
        assert ("ld.global.v4" if columns == 8192 else "ld.shared.v4") in result.ptx
        assert "st.global.v4" in result.ptx
