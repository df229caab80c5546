"""`attention_backward` in the interpreter: masks, lengths, grouped heads, types, orders of memory; its refusals."""

import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels import references
from tests.unit.kernels.references import DTYPES, TOLERANCE, heads, poisoned, relative_error
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.kernels.attention.backward.call import attention_backward, attention_backward_launch
from tlx_xdsl.kernels.attention.backward.config import WideBackwardConfig, choose_config, choose_wide_config, is_wide
from tlx_xdsl.kernels.attention.forward import attention_forward


def gradients(q, k, v, dout, scale, causal, dlse=0.0):
    """(out, lse, dq, dk, dv) in float64; `dlse` is a gradient of `lse`."""
    group = q.shape[1] // k.shape[1]
    out, lse = references.attention(q, k, v, scale, causal)
    q, dout = (each.astype(np.float64) for each in (q, dout))
    k, v = (np.repeat(each.astype(np.float64), group, 1) for each in (k, v))
    scores = q @ k.swapaxes(-1, -2) * scale
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    p = np.exp(scores - lse[..., None])
    dp = dout @ v.swapaxes(-1, -2)
    ds = p * (dp - ((dout * out).sum(-1) - dlse)[..., None]) * scale
    by_group = (k.shape[0], k.shape[1] // group, group, k.shape[2], -1)
    dk, dv = (each.reshape(by_group).sum(2) for each in (ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ dout))
    return out, lse, ds @ k, dk, dv


def run(q_heads, kv_heads, queries, keys, *, dim=64, v_dim=None, causal=False, dtype="fp16", batch=2,
        deterministic=False, **options):  # fmt: skip
    kind = DTYPES[dtype]
    v_dim = v_dim or dim
    q, dout = (heads(batch, q_heads, queries, each, kind, seed) for each, seed in ((dim, 1), (v_dim, 4)))
    k, v = (heads(batch, kv_heads, keys, each, kind, seed) for each, seed in ((dim, 2), (v_dim, 3)))
    scale = 0.7 * dim**-0.5
    out, lse, *expected = gradients(q, k, v, dout, scale, causal)
    found = [poisoned(each.shape, kind) for each in (q, k, v)]
    launch = attention_backward_launch(
        q, k, v, out.astype(kind), lse.astype(np.float32), dout, *found,
        causal=causal, scale=scale, deterministic=deterministic, programs=3,
    )  # fmt: skip
    result = launch.interpret(jobs=1, **options)
    assert [each for each in result.warnings if each.severity != "remark"] == []
    for each, wanted in zip(found, expected, strict=True):
        if wanted.any():
            assert relative_error(each, wanted) < TOLERANCE[dtype]
        else:  # of a single key: what is left of dP - delta are roundings
            assert np.abs(each).max() < 0.02
    return found


@pytest.mark.parametrize("causal", [False, True])
def test_the_reference_is_the_slope_of_the_forward_pass(causal):
    """Central differences of the loss sum(out * dout) + sum(lse * dlse) along random directions."""
    rng = np.random.default_rng(0)
    tensors = [rng.standard_normal(shape) for shape in ((1, 2, 3, 4), (1, 1, 5, 4), (1, 1, 5, 4))]
    dout, dlse = rng.standard_normal((1, 2, 3, 4)), rng.standard_normal((1, 2, 3))
    _, _, *found = gradients(*tensors, dout, 0.6, causal, dlse)
    step = 1e-5
    for at, gradient in enumerate(found):
        direction = rng.standard_normal(gradient.shape)
        losses = []
        for sign in (1, -1):
            moved = [*tensors[:at], tensors[at] + sign * step * direction, *tensors[at + 1 :]]
            out, lse = references.attention(*moved, 0.6, causal)
            losses.append((out * dout).sum() + (lse * dlse).sum())
        assert (losses[0] - losses[1]) / (2 * step) == pytest.approx((gradient * direction).sum(), rel=1e-7)


LENGTHS = [(128, 256), (70, 150), (300, 100), (333, 333), (1, 1), (1, 200), (200, 1), (130, 513)]


@pytest.mark.parametrize(("queries", "keys"), LENGTHS if volume.is_full() else [(70, 150), (200, 100)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize("deterministic", [False, True])
def test_lengths(deterministic, dim, causal, queries, keys):
    """Tails of queries and of keys, more queries than keys and fewer, also keys that no query sees."""
    run(2, 1, queries, keys, dim=dim, causal=causal, deterministic=deterministic, batch=1)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dim", [64, 128])
def test_bf16_and_grouped_heads(dim, causal):
    for deterministic in (False, True):
        run(6, 2, 150, 200, dim=dim, causal=causal, dtype="bf16", deterministic=deterministic)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("dim", [64, 128])
def test_text_for_stock_triton(dim, policy):
    """The text that a GPU's code is made of runs under every order of tasks."""
    for seed in range(5 if volume.is_full() else 1):
        for causal in (False, True) if volume.is_full() else (True,):
            run(2, 1, 330, 150, dim=dim, causal=causal, batch=1, stage="ttgir", schedule=policy, seed=seed)
    run(1, 1, 200, 300, dim=dim, causal=True, batch=1, deterministic=True, stage="ttgir", schedule=policy)


def test_deterministic_bits_do_not_depend_on_the_order_of_tasks():
    found = [
        run(1, 1, 130, 400, batch=1, deterministic=True, schedule="random", seed=seed)[0].tobytes() for seed in range(3)
    ]
    assert len(set(found)) == 1


@pytest.mark.parametrize("deterministic", [False, True])
def test_a_gradient_of_the_logarithms(deterministic):
    q, k, v, dout = (heads(1, 2, 70, 64, np.float16, seed) for seed in (1, 2, 3, 4))
    dlse = np.random.default_rng(5).standard_normal((1, 2, 70)).astype(np.float32)
    out, lse, *expected = gradients(q, k, v, dout, 0.125, True, dlse)
    given = (q, k, v, out.astype(np.float16), lse.astype(np.float32), dout)
    found = attention_backward(*given, dlse=dlse, causal=True, deterministic=deterministic)
    for each, wanted in zip(found, expected, strict=True):
        assert relative_error(each, wanted) < TOLERANCE["fp16"]


def test_what_lies_after_a_head_plays_no_part():
    """Blocks that reach beyond the end of a head meet the next one, whose NaN must not be multiplied by zero."""
    q, k, v, dout = (heads(1, 2, 100, 64, np.float16, seed) for seed in (1, 2, 3, 4))
    q, k, v, dout = (np.ascontiguousarray(each) for each in (q, k, v, dout))
    out, lse, *expected = gradients(q[:, :1], k[:, :1], v[:, :1], dout[:, :1], 0.125, False)
    for each in (q, k, v, dout):
        each[:, 1] = np.nan
    out, lse = (np.concatenate([each, np.full_like(each, np.nan)], 1) for each in (out, lse))
    found = attention_backward(q, k, v, out.astype(np.float16), lse.astype(np.float32), dout)
    for each, wanted in zip(found, expected, strict=True):
        assert relative_error(each[:, :1], wanted) < TOLERANCE["fp16"]


@pytest.mark.parametrize("deterministic", [False, True])
def test_keys_after_the_end_have_no_probability(deterministic):
    """A key of zeros would have an infinite probability where all scores are far below 0."""
    q, k, v, dout = (0.3 * heads(1, 1, 70, 64, np.float16, seed) for seed in (1, 2, 3, 4))
    q[..., 0], k[..., 0] = 30, -20
    out, lse, *expected = gradients(q, k, v, dout, 1.0, False)
    assert lse.max() < -500
    found = attention_backward(
        q, k, v, out.astype(np.float16), lse.astype(np.float32), dout, scale=1.0, deterministic=deterministic
    )
    # In the first column of dQ and dK large numbers cancel out.
    for each, wanted in zip(found, expected, strict=True):
        assert relative_error(each[..., 1:], wanted[..., 1:]) < TOLERANCE["fp16"]


def test_results():
    q, k, v, dout = (heads(1, 2, 64, 64, np.float16, seed) for seed in (1, 2, 3, 4))
    out, lse = attention_forward(q, k, v, causal=True, return_lse=True)
    given = [poisoned(q.shape, np.float16) for _ in range(3)]
    found = attention_backward(q, k, v, out, lse, dout, causal=True, dq=given[0], dk=given[1], dv=given[2])
    assert all(each is wanted for each, wanted in zip(found, given, strict=True))
    for each, wanted in zip(found, gradients(q, k, v, dout, 0.125, True)[2:], strict=True):
        assert relative_error(each, wanted) < TOLERANCE["fp16"]
    none, dk, dv = attention_backward(q[:, :, :0], k, v, out[:, :, :0], lse[0, 0, :0].reshape(1, 2, 0), dout[:, :, :0])
    assert none.shape == (1, 2, 0, 64)
    assert not dk.any()
    assert not dv.any()


def test_the_configuration_follows_the_head():
    assert choose_config(128).block_m == 64
    assert choose_config(64).block_m == 128
    assert choose_config(96) == choose_config(72, 128) == choose_config(128)
    assert choose_config(8) == choose_config(64)


def test_a_configuration_for_heads_of_another_length():
    q = np.ones((1, 1, 8, 192), np.float16)
    lse = np.ones((1, 1, 8), np.float32)
    with pytest.raises(TypeError, match=r"'config': expected a WideBackwardConfig for heads of 192 and 192 elements"):
        attention_backward(q, q, q, q, lse, q, config=choose_config(128))
    q = q[..., :64]
    with pytest.raises(TypeError, match=r"'config': expected a BackwardConfig for heads of 64 and 64 elements, got W"):
        attention_backward(q, q, q, q, lse, q, config=WideBackwardConfig())


def test_buffers_of_long_heads_fit_into_shared_memory():
    for dim in range(8, 257, 8):
        for v_dim in range(8, 257, 8):
            if is_wide(dim, v_dim):
                config = choose_wide_config(dim, v_dim)
                assert config.stages >= 2
                assert config.slots >= 3


def changed(**others):
    """Arguments, with some that do not fit."""
    names = ("q", "k", "v", "out", "lse", "dout")
    given = {name: np.ones((1, 4, 8, 64), np.float16) for name in names} | {"lse": np.ones((1, 4, 8), np.float32)}
    return given | others


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (changed(q=np.ones((1, 4, 8, 32), np.float16)), ValueError, "'k': expected the shape"),
        (
            changed(q=np.ones((1, 4, 8, 36), np.float16)),
            ValueError,
            "'q': expected heads of a multiple of 8 elements, up to 256",
        ),
        (
            changed(v=np.ones((1, 4, 8, 264), np.float16)),
            ValueError,
            "'v': expected heads of a multiple of 8 elements, up to 256",
        ),
        (changed(q=np.ones((4, 8, 64), np.float16)), ValueError, r"'q': expected \(batch, heads, length, "),
        (changed(k=np.ones((1, 3, 8, 64), np.float16)), ValueError, "'v': expected the shape"),
        (changed(out=np.ones((1, 4, 9, 64), np.float16)), ValueError, "'out': expected the shape"),
        (changed(dout=np.ones((1, 4, 9, 64), np.float16)), ValueError, "'dout': expected the shape"),
        (changed(dk=np.ones((1, 4, 9, 64), np.float16)), ValueError, "'dk': expected the shape"),
        (changed(dv=np.ones((1, 4, 8, 64), np.float32)), TypeError, "'dv': expected elements of type fp16 or bf16"),
        (changed(lse=np.ones((1, 4, 8), np.float16)), TypeError, "'lse': expected elements of type fp32"),
        (changed(lse=np.ones((1, 8, 4), np.float32).swapaxes(1, 2)), ValueError, "'lse': expected contiguous elements"),
        (changed(dlse=np.ones((1, 4, 8), np.float16)), TypeError, "'dlse': expected elements of type fp32"),
        (changed(dlse=np.ones((1, 4, 9), np.float32)), ValueError, "'dlse': expected the shape"),
        (changed(scale=0.0), ValueError, "'scale': expected a positive number, got 0.0"),
        (changed(dout=np.ones((1, 4, 64, 8), np.float16).swapaxes(2, 3)), ValueError, "'dout': expected heads that"),
    ],
)
def test_wrong_operands_are_refused(arguments, error, text):
    with pytest.raises(error, match=f"attention_backward: argument {text}"):
        attention_backward(**arguments)
