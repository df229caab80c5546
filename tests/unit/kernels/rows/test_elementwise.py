"""`swiglu` and `rope` in the interpreter, against numpy in float64."""

import ml_dtypes
import numpy as np
import pytest

from tests.unit.kernels.gemm.test_compiled import compiled
from tlx_xdsl.kernels.rows.rope import ROPE, rope
from tlx_xdsl.kernels.rows.swiglu import SWIGLU, SWIGLU_BACKWARD, swiglu, swiglu_backward

DTYPES = {np.dtype(np.float32): 1e-6, np.dtype(np.float16): 1e-3, np.dtype(ml_dtypes.bfloat16): 8e-3}
"""Norm of the difference over that of the result."""


def values(shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def error(found, expected):
    return np.linalg.norm(found.astype(np.float64) - expected) / np.linalg.norm(expected)


def gated(gate, up):
    return gate / (1 + np.exp(-gate)) * up


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES.items(), ids=str)
@pytest.mark.parametrize("shape", [(5, 100), (3,), (2, 3, 64), (2, 5000), (70, 40)])
def test_swiglu(shape, dtype, tolerance):
    gate, up, dout = (values(shape, dtype, seed) for seed in range(3))
    g, u, d = (each.astype(np.float64) for each in (gate, up, dout))
    found = swiglu(gate, up)
    assert found.dtype == dtype
    assert error(found, gated(g, u)) < tolerance
    step = 1e-5
    slopes = (gated(g + step, u) - gated(g - step, u)) / (2 * step) * d, gated(g, np.ones_like(u)) * d
    for each, expected in zip(swiglu_backward(gate, up, dout), slopes, strict=True):
        assert each.dtype == dtype
        assert error(each, expected) < tolerance


def test_halves_of_one_tensor():
    both, out = values((6, 80)), np.full((6, 64), np.nan, np.float32)
    swiglu(both[:, :40], both[:, 40:], out[:, 8:48])
    assert np.allclose(out[:, 8:48], gated(both[:, :40], both[:, 40:]), rtol=1e-5)
    assert np.isnan(out[:, :8]).all()
    assert np.isnan(out[:, 48:]).all()
    assert swiglu(both[:0], both[:0]).shape == (0, 80)
    assert swiglu(np.array([-1e4, np.nan], np.float32), np.ones(2, np.float32))[0] == 0


def turned(x, cos, sin, interleaved):
    places = np.arange(x.shape[-1])
    half = x.shape[-1] // 2
    first, second = (places[::2], places[1::2]) if interleaved else (places[:half], places[half:])
    result = np.empty(x.shape)
    result[..., first] = x[..., first] * cos - x[..., second] * sin
    result[..., second] = x[..., second] * cos + x[..., first] * sin
    return result


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES.items(), ids=str)
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 70, 64), (9, 20), (3, 33, 128), (1, 2, 5, 6)])
def test_rope(shape, interleaved, dtype, tolerance):
    x, angles = values(shape, dtype), values((shape[-2], shape[-1] // 2), seed=1)
    cos, sin = np.cos(angles), np.sin(angles)
    found = rope(x, cos, sin, interleaved=interleaved)
    assert found.dtype == dtype
    assert error(found, turned(x.astype(np.float64), cos, sin, interleaved)) < tolerance
    back = rope(found, cos, sin, interleaved=interleaved, inverse=True)
    assert error(back, x.astype(np.float64)) < 2 * tolerance


def test_heads_in_any_order_of_memory():
    x, angles = values((2, 30, 4, 32)), values((30, 16), seed=1)
    cos, sin = np.cos(angles), np.sin(angles)
    heads = x.transpose(0, 2, 1, 3)
    assert error(rope(heads, cos, sin), turned(heads.astype(np.float64), cos, sin, False)) < 1e-6


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: swiglu(values((4, 8)), values((4, 9))), ValueError, "swiglu: argument 'up': expected the shape"),
        (lambda: swiglu(values((4, 8)), values((4, 8), np.float16)), TypeError, "'up': expected float32 as 'gate' has"),
        (lambda: rope(values((4, 7)), values((4, 3)), values((4, 3))), ValueError, "an even head dimension"),
        (lambda: rope(values((4, 8)), values((4, 8)), values((4, 4))), ValueError, "'cos': expected the shape"),
        (
            lambda: rope(values((4, 8)), values((4, 4)), values((4, 4), np.float16)),
            TypeError, "'sin': expected fp32 or float32 as 'x' has, got float16",
        ),
        (lambda: rope(values((8, 4)).T, values((4, 4)), values((4, 4))), ValueError, "a contiguous last dimension"),
    ],
)  # fmt: skip
def test_wrong_operands_are_refused(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.backend
def test_compiled():
    """16 bytes are moved at a time, 8 of two halves of a head, which was faster; and nothing is spilled."""
    kind = ml_dtypes.bfloat16
    x, heads, angles = np.empty((64, 4096), kind), np.empty((2, 4, 64, 128), kind), np.empty((64, 64), np.float32)
    prepared = [
        SWIGLU.prepare((x, x, None), ()),
        SWIGLU_BACKWARD.prepare((x, x, x, None, None), ()),
        ROPE.prepare((heads, angles, angles, None), (False, False)),
        ROPE.prepare((heads, angles, angles, None), (True, False)),
    ]
    for each, words in zip(prepared, (4, 4, 2, 4), strict=True):
        result = compiled(each.launches[0])
        assert result.resources.spill_store_bytes == 0
        assert "ld.global.v4" in result.ptx
        assert f"st.global.v{words}" in result.ptx
