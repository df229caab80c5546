"""`attention_forward` of e4m3 tensors in the interpreter: masks, lengths, grouped heads, scales; its refusals."""

import ml_dtypes
import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels import references
from tests.unit.kernels.references import DTYPES, heads, poisoned, relative_error
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.kernels.attention.config import AttentionConfig, AttentionFp8Config, choose_fp8_config
from tlx_xdsl.kernels.attention.forward import attention_forward, attention_fp8_launch
from tlx_xdsl.kernels.attention.fp8.values import attention_fp8_values
from tlx_xdsl.kernels.attention.varlen import attention_varlen

E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)

TOLERANCE = 0.03
"""Of probabilities with three bits after the first; without them it would be that of the result's type."""


def rounded_weights(q, k, v, scale, causal, block_n):
    """The output in float64, of probabilities that are rounded as the kernel does: in units of the maximum so far."""
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(each.astype(np.float64), group, 1) for each in (k, v))
    scores = q.astype(np.float64) @ k.swapaxes(-1, -2) * scale
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    total, acc, top = 0.0, 0.0, np.full((*scores.shape[:3], 1), -np.inf)
    for start in reversed(range(0, scores.shape[-1], block_n)):
        block = scores[..., start : start + block_n]
        new = np.maximum(top, block.max(-1, keepdims=True))
        seen = np.isfinite(new)
        p = np.where(seen, np.exp(block - np.where(seen, new, 0)), 0) * 256
        alpha = np.where(seen, np.exp(top - np.where(seen, new, 0)), 0)
        total = total * alpha + p.sum(-1, keepdims=True)
        acc = acc * alpha + p.astype(E4M3).astype(np.float64) @ v[..., start : start + block_n, :]
        top = new
    return acc / total


def run(q_heads, kv_heads, queries, keys, *, dim=64, causal=False, out="bf16", batch=2, config=None,
        scales=(None, None, None), **options):  # fmt: skip
    q = heads(batch, q_heads, queries, dim, E4M3, 1)
    k, v = (heads(batch, kv_heads, keys, dim, E4M3, seed) for seed in (2, 3))
    result, lse = poisoned(q.shape, DTYPES[out]), poisoned(q.shape[:3], np.float32)
    scale = 0.7 * dim**-0.5
    given = dict(zip(("q_scale", "k_scale", "v_scale"), scales, strict=True))
    launch = attention_fp8_launch(
        q, k, v, result, lse, **given, causal=causal, scale=scale, config=config, programs=2
    )  # fmt: skip
    found = launch.interpret(jobs=1, **options)
    assert [each for each in found.warnings if each.severity != "remark"] == []
    q, k, v = (spread(each, of) for each, of in zip((q, k, v), scales, strict=True))
    expected, sums = references.attention(q, k, v, scale, causal)
    assert relative_error(result, expected) < TOLERANCE
    assert relative_error(lse, sums) < 1e-6
    block_n = (config or choose_fp8_config(dim, causal)).block_n
    # Probabilities between two numbers of e4m3 go to either, depending on the last bits of scores and exponentials.
    assert relative_error(result, rounded_weights(q, k, v, scale, causal, block_n)) < 4e-3


def spread(values, scale):
    """Values times their scales, in float64."""
    values = values.astype(np.float64)
    if scale is None:
        return values
    by_head = np.broadcast_to(scale.reshape(scale.shape if scale.size > 1 else (1,)), values.shape[:2])
    return values * by_head[..., None, None]


@pytest.mark.parametrize(
    ("queries", "keys"),
    [(256, 256), (70, 150), (391, 100), (333, 333), (1, 1)] if volume.is_full() else [(300, 150)],
)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dim", [64, 128])
def test_lengths(dim, causal, queries, keys):
    """Tails of queries and of keys, more queries than keys and fewer; with a mask, all ends of a tile's consumers."""
    run(2, 1, queries, keys, dim=dim, causal=causal, batch=1)


def numbers(*shape):
    return np.random.default_rng(5).uniform(0.5, 2, shape).astype(np.float32)


@pytest.mark.parametrize(
    "scales",
    [
        (numbers(1), numbers(), numbers(1, 1)),
        (numbers(4), numbers(2), numbers(2)),
        (numbers(2, 4), None, numbers(2, 2)),
        (None, numbers(2, 2), numbers(2, 2).T),
    ],
)
def test_scales(scales):
    """Scales for all, for each head, for each head of each batch; in fp16 and for grouped heads."""
    run(4, 2, 100, 150, out="fp16", scales=scales)


CONFIGS = [
    AttentionFp8Config(2, 240, exact=False),
    AttentionFp8Config(3, 160, 64),
    AttentionFp8Config(2, 240, 256, overlap=False),
    AttentionFp8Config(3, 160, exact=False, overlap=False),
]
MORE_CONFIGS = [
    AttentionFp8Config(consumers, 160, block_n, exact=exact, overlap=overlap, all_heads=True)
    for consumers in (2, 3)
    for block_n in (64, 128, 256)
    for exact in (False, True)
    for overlap in (False, True)
]


@pytest.mark.parametrize("config", CONFIGS + (MORE_CONFIGS if volume.is_full() else []), ids=str)
def test_configurations(config):
    run(1, 1, 400, 400, causal=True, config=config, stage="ttgir")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("dim", [64, 128] if volume.is_full() else [128])
def test_text_for_stock_triton(dim, policy):
    """The text that a GPU's code is made of runs under every order of tasks."""
    other = AttentionFp8Config(2, 240, exact=False)
    for seed in range(5 if volume.is_full() else 1):
        for config in (None, other) if volume.is_full() or policy == POLICIES[-1] else (None,):
            run(1, 1, 400, 200, dim=dim, causal=True, config=config, stage="ttgir", schedule=policy, seed=seed)


def test_values_are_transposed_and_permuted():
    v = heads(1, 2, 40, 64, E4M3, 0)
    words = np.full((2, 64, 32), -1, np.int32)
    strides = tuple(each // 16 for each in v.strides[:3])
    attention_fp8_values.interpret((2, 1), v, words, strides, KV_HEADS=2, KV_LENGTH=40, BLOCKS=1, HEAD_DIM=64, KEYS=128)
    order = [0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15]
    padded = np.zeros((2, 128, 64), E4M3)
    padded[:, :40] = v[0]
    expected = padded.reshape(2, 8, 16, 64)[:, :, order].reshape(2, 128, 64).swapaxes(1, 2)
    assert np.array_equal(words.view(np.uint8), np.ascontiguousarray(expected).view(np.uint8))


def test_what_lies_after_a_head_plays_no_part():
    """Blocks that reach beyond the end of a head meet the next one, whose NaN must not be multiplied by zero."""
    q, k, v = (np.ascontiguousarray(heads(1, 2, 100, 64, E4M3, seed)) for seed in (1, 2, 3))
    for each in (k, v):
        each[:, 1] = np.nan
    out = attention_forward(q, k, v)
    expected, _ = references.attention(q[:, :1], k[:, :1], v[:, :1], 0.125, False)
    assert relative_error(out[:, :1], expected) < TOLERANCE


def test_results():
    q, k, v = (heads(1, 1, 64, 64, E4M3, seed) for seed in (1, 2, 3))
    out = poisoned(q.shape, DTYPES["fp16"])
    found, lse = attention_forward(q, k, v, out=out, return_lse=True, out_dtype="fp16")
    assert found is out
    assert lse.shape == (1, 1, 64)
    assert attention_forward(q, k, v).dtype == DTYPES["bf16"]
    assert np.array_equal(attention_forward(q, k, v, out_dtype=np.float16), out)
    assert attention_forward(q[:, :, :0], k, v).shape == (1, 1, 0, 64)


def test_the_configuration_follows_the_head():
    assert choose_fp8_config(128, True).all_heads
    assert not choose_fp8_config(64, False).all_heads
    with pytest.raises(ValueError, match="expected heads of 64 or 128 elements, got 96"):
        choose_fp8_config(96, False)


def test_a_configuration_for_tensors_of_other_bits():
    q, half = np.ones((1, 1, 8, 64), E4M3), np.ones((1, 1, 8, 64), np.float16)
    with pytest.raises(TypeError, match=r"'config': expected an AttentionFp8Config for tensors of fp8e4nv, got Att"):
        attention_forward(q, q, q, config=AttentionConfig(2, 240))
    text = r"argument 'config': expected an AttentionConfig for tensors of fp16, got AttentionFp8Config\("
    with pytest.raises(TypeError, match=f"attention_forward: {text}"):
        attention_forward(half, half, half, config=choose_fp8_config(64, False))
    with pytest.raises(TypeError, match=f"attention_varlen: {text}"):
        attention_varlen(half[0], half[0], half[0], np.array([0, 1], np.int32), config=choose_fp8_config(64, False))


def changed(dtype=E4M3, **others):
    """Arguments, with some that do not fit."""
    return {name: np.ones((1, 4, 8, 64), dtype) for name in ("q", "k", "v")} | others


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (changed(v=np.ones((1, 4, 8, 64), np.float16)), TypeError, "'v': expected elements of type fp8e4nv"),
        (changed(q=np.ones((1, 4, 8, 32), E4M3)), ValueError, "'q': expected heads of 64 or 128"),
        (changed(q_scale=np.ones(4)), TypeError, "'q_scale': expected a tensor of type fp32"),
        (changed(q_scale=np.float32(1)), TypeError, "'q_scale': expected a tensor of type fp32"),
        (changed(q_scale=2.0), TypeError, "'q_scale': expected a tensor, got float"),
        (changed(k_scale=np.ones(3, np.float32)), ValueError, r"'k_scale': expected one element, the shape \(4,\) or"),
        (changed(out_dtype="fp32"), TypeError, "'out_dtype': expected bf16 or fp16"),
        (changed(out=np.ones((1, 4, 8, 64), np.float32)), TypeError, "'out': expected elements of type bf16 or fp16"),
        (changed(scale=-1.0), ValueError, "'scale': expected a positive number"),
        (changed(v=np.ones((1, 4, 64, 8), E4M3).swapaxes(2, 3)), ValueError, "'v': expected heads that are contiguous"),
        (changed(np.float16, v_scale=np.ones(1, np.float32)), TypeError, "'v_scale': expected None where 'q' is not"),
        (changed(np.float16, out_dtype="bf16"), TypeError, "'out_dtype': expected None where 'q' is not float8_e4m3fn"),
    ],
)  # fmt: skip
def test_wrong_operands_are_refused(arguments, error, text):
    with pytest.raises(error, match=f"attention_forward: argument {text}"):
        attention_forward(**arguments)
