"""`attention_varlen` in the interpreter: lengths, limits, what lies after a sequence; what it refuses."""

import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels import references
from tests.unit.kernels.attention.test_attention_options import SINKS, SLOPES, alibi, finite
from tests.unit.kernels.references import DTYPES, TOLERANCE, poisoned, relative_error
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.kernels.attention.varlen import attention_varlen, attention_varlen_launch, heads_together


def sums_of(lengths):
    return np.cumsum([0, *lengths], dtype=np.int32)


def random(rows, heads, dim, kind, seed):
    return np.random.default_rng(seed).standard_normal((rows, heads, dim)).astype(kind)


def expected(q, k, v, q_sums, k_sums, scale, **options):
    """Sequence by sequence; NaN in rows of none."""
    out = np.full((*q.shape[:2], v.shape[2]), np.nan)
    lse = np.full((q.shape[1], q.shape[0]), np.nan)
    bounds = zip(q_sums, q_sums[1:], k_sums, k_sums[1:], strict=False)
    for first, end, first_key, end_key in bounds:
        if end == first:
            continue
        parts = (each[None].swapaxes(1, 2) for each in (q[first:end], k[first_key:end_key], v[first_key:end_key]))
        result, sums = references.attention(*parts, scale, **options)
        out[first:end], lse[:, first:end] = result[0].swapaxes(0, 1), sums[0]
    return out, lse


def run(
    q_lengths, k_lengths=None, *, q_heads=2, kv_heads=1, dim=64, dtype="fp16", rest=0, sinks=None, score_args=(),
    by_numpy=None, asked=None, **options,
):  # fmt: skip
    """`rest` are rows after the last sequence."""
    kind = DTYPES[dtype]
    q_sums, k_sums = sums_of(q_lengths), sums_of(k_lengths or q_lengths)
    q = random(q_sums[-1] + rest, q_heads, dim, kind, 1)
    k, v = (random(k_sums[-1] + rest, kv_heads, dim, kind, seed) for seed in (2, 3))
    out, lse = poisoned(q.shape, kind), poisoned((q_heads, q.shape[0]), np.float32)
    given = {"causal": False, "sinks": None if sinks is None else sinks[:q_heads], **options}
    launch = attention_varlen_launch(
        q, k, v, q_sums, k_sums, out, lse, scale=0.1, score_args=score_args, programs=2, **given
    )  # fmt: skip
    result = launch.interpret(jobs=1, **(asked or {}))
    assert [each for each in result.warnings if each.severity != "remark"] == []
    given |= {} if by_numpy is None else {"score_mod": by_numpy}
    wanted, sums = expected(q, k, v, q_sums, k_sums, 0.1, **given)
    end = q_sums[-1]
    assert np.isnan(out[end:]).all()
    assert np.isnan(lse[:, end:]).all()
    assert relative_error(out[:end], wanted[:end]) < TOLERANCE[dtype]
    assert np.array_equal(np.isneginf(lse), np.isneginf(sums))
    assert relative_error(finite(lse), finite(sums)) < 1e-6


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dim", [64, 128])
def test_lengths(dim, causal):
    """Empty sequences lie at both ends and in between, and rows belong to no sequence."""
    run([0, 70, 200, 0, 1, 130, 0], dim=dim, causal=causal, rest=5)


def test_grouped_heads_in_bf16():
    run([100, 40], q_heads=4, kv_heads=2, dtype="bf16", causal=True)


@pytest.mark.parametrize(
    "options",
    [
        {"causal": True, "align": "bottom-right"},
        {"window": (60, 20)},
        {"window": (30, 0), "align": "bottom-right", "causal": True},
    ],
)
def test_limits_in_sequences_of_other_keys(options):
    """Sequences without queries, without keys, and with fewer keys than queries: rows that see nothing give 0."""
    run([100, 0, 50, 150, 30], [200, 40, 0, 70, 33], **options)


def test_caps_sinks_and_functions():
    run([70, 90], [100, 50], softcap=2.0, sinks=SINKS, causal=True)

    def biased(scores):
        distance = np.arange(scores.shape[-1])[None, :] - np.arange(scores.shape[-2])[:, None]
        return scores + SLOPES[: scores.shape[1], None, None] * 0.5 * distance

    run([70, 90], [100, 50], score_mod=alibi, score_args=(SLOPES, 0.5), by_numpy=biased)


@pytest.mark.parametrize("policy", POLICIES)
def test_text_for_stock_triton(policy):
    """The text that a GPU's code is made of runs under every order of tasks."""
    for seed in range(5 if volume.is_full() else 1):
        run([300, 20], causal=True, asked={"stage": "ttgir", "schedule": policy, "seed": seed})


def test_what_lies_after_a_sequence_plays_no_part():
    q, k, v = (random(200, 1, 64, np.float16, seed) for seed in (1, 2, 3))
    sums = sums_of([100, 100])
    wanted, _ = expected(q, k, v, sums, sums, 0.125, causal=False)
    for each in (q, k, v):
        each[100:] = np.nan
    assert relative_error(attention_varlen(q, k, v, sums)[:100], wanted[:100]) < TOLERANCE["fp16"]


def test_parts_of_one_tensor():
    qkv = np.random.default_rng(0).standard_normal((90, 3, 2, 64)).astype(np.float16)
    q, k, v = (qkv[:, at] for at in range(3))
    sums = sums_of([50, 40])
    out, lse = attention_varlen(q, k, v, sums, return_lse=True)
    wanted, logarithms = expected(q, k, v, sums, sums, 0.125, causal=False)
    assert relative_error(out, wanted) < TOLERANCE["fp16"]
    assert relative_error(lse, logarithms) < 1e-6
    assert attention_varlen(q, k, v, sums[:1]).shape == q.shape


def test_heads_that_take_turns_divide_all():
    """Heads of 1 MB each: 16 fit; of 24 heads 12 go together."""
    assert heads_together(16, 1, 4096, 256) == 16
    assert heads_together(24, 1, 4096, 256) == 12
    assert heads_together(32, 8, 16384, 512) == 16
    assert heads_together(2, 1, 1 << 20, 512) == 1


@pytest.mark.parametrize(
    ("changed", "error", "text"),
    [
        ({"q": np.ones((1, 8, 64), np.float32)}, TypeError, "'q': expected elements of type fp16 or bf16"),
        ({"q": np.ones((1, 1, 8, 64), np.float16)}, ValueError, r"'q': expected \(rows, heads, head dim\), got"),
        ({"cu_seqlens_q": np.array([0, 8])}, TypeError, "'cu_seqlens_q': expected elements of type int32"),
        ({"cu_seqlens_q": np.zeros((1, 1), np.int32)}, ValueError, "'cu_seqlens_q': expected one contiguous dimension"),
        ({"cu_seqlens_k": np.zeros(3, np.int32)}, ValueError, r"'cu_seqlens_k': expected the shape \(2,\)"),
        ({"k": np.ones((8, 1, 32), np.float16)}, ValueError, "'k': expected the shape"),
    ],
)  # fmt: skip
def test_wrong_operands_are_refused(changed, error, text):
    same = np.ones((8, 1, 64), np.float16)
    given = {"q": same, "k": same, "v": same, "cu_seqlens_q": np.array([0, 8], np.int32), **changed}
    with pytest.raises(error, match=f"attention_varlen: argument {text}"):
        attention_varlen(**given)
