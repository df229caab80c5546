"""`attention_forward` with windows, caps, sinks and functions of the scores, in the interpreter; what it refuses."""

import math

import numpy as np
import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tests.unit import volume
from tests.unit.kernels import references
from tests.unit.kernels.references import DTYPES, TOLERANCE, heads, poisoned, relative_error
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.kernels.attention.forward import attention_forward, attention_launch
from tlx_xdsl.kernels.attention.options import Limits, Options, config_for, limits_for

SINKS = np.array([0.5, -1.0, -math.inf, 3.0], np.float32)
SLOPES = np.array([0.5, 0.25, 0.125, 0.0625], np.float32)


@tlx_xdsl.jit
def alibi(score, batch, head, query, key, slopes, factor):
    """A bias for the distance."""
    return score + tl.load(slopes + head) * factor * (key - query)


@tlx_xdsl.jit
def even_keys(score, batch, head, query, key):
    """Hides every other key: a mask of the user's, which leaves some rows nothing."""
    return tl.where((key % 2 == 0) & (query % 3 != batch), score, float("-inf"))


def finite(lse):
    return np.where(np.isfinite(lse), lse, 0)


def check(out, lse, expected, sums, dtype="fp16"):
    assert relative_error(out, expected) < TOLERANCE[dtype]
    assert np.array_equal(np.isneginf(lse), np.isneginf(sums))
    assert relative_error(finite(lse), finite(sums)) < 1e-6


def run(q_heads, kv_heads, queries, keys, *, dim=64, dtype="fp16", sinks=None, asked=None, score_args=(), **options):
    """`asked` are options of the interpreter; those that are no options of the kernel's are the reference's."""
    kind = DTYPES[dtype]
    q = heads(2, q_heads, queries, dim, kind, 1)
    k, v = (heads(2, kv_heads, keys, dim, kind, seed) for seed in (2, 3))
    out, lse = poisoned(q.shape, kind), poisoned(q.shape[:3], np.float32)
    by_numpy = options.pop("by_numpy", None)
    given = {"causal": False, "sinks": None if sinks is None else sinks[:q_heads], **options}
    launch = attention_launch(q, k, v, out, lse, scale=0.1, programs=2, score_args=score_args, **given)
    result = launch.interpret(jobs=1, **(asked or {}))
    assert [each for each in result.warnings if each.severity != "remark"] == []
    given |= {} if by_numpy is None else {"score_mod": by_numpy}
    check(out, lse, *references.attention(q, k, v, 0.1, **given), dtype)


WINDOWS = [
    (200, 260, {"window": (50, 0), "causal": True}),
    (300, 420, {"window": (130, 60)}),
    (330, 150, {"window": (20, 0), "causal": True}),
    (300, 100, {"causal": True, "align": "bottom-right"}),
    (200, 330, {"causal": True, "align": "bottom-right", "window": (129, None)}),
]
MORE_WINDOWS = [
    (queries, keys, {"window": window, "causal": causal, "align": align})
    for queries, keys in ((1, 300), (300, 1), (129, 511), (512, 256))
    for window in ((0, 0), (None, 5), (128, None), (300, 200))
    for causal in (False, True)
    for align in ("top-left", "bottom-right")
]


@pytest.mark.parametrize(("queries", "keys", "options"), WINDOWS + (MORE_WINDOWS if volume.is_full() else []))
@pytest.mark.parametrize("dim", [64, 128])
def test_windows(dim, queries, keys, options):
    """Limits anywhere in blocks and between them; rows that see nothing; tiles whose consumers see different blocks."""
    run(2, 1, queries, keys, dim=dim, **options)


@pytest.mark.parametrize("options", [{}, {"causal": True}, {"window": (40, 70)}])
def test_caps_and_sinks(options):
    run(4, 2, 130, 200, softcap=2.0, sinks=SINKS, **options)


def test_the_type_of_sinks():
    run(2, 2, 70, 70, dtype="bf16", sinks=SINKS.astype(DTYPES["bf16"]))


def test_rows_that_see_nothing_have_their_sink():
    run(4, 4, 200, 60, window=(10, 0), sinks=SINKS)


def biased(scores):
    distance = np.arange(scores.shape[-1])[None, :] - np.arange(scores.shape[-2])[:, None]
    return scores + SLOPES[: scores.shape[1], None, None] * 0.5 * distance


def halved(scores):
    batch, _, queries, keys = (np.arange(extent) for extent in scores.shape)
    rows = queries[:, None] % 3 != batch[:, None, None, None]
    return np.where((keys % 2 == 0) & rows, scores, -np.inf)


@pytest.mark.parametrize("options", [{"causal": True}, {"softcap": 3.0, "window": (100, 20)}])
def test_a_function_of_the_scores(options):
    run(4, 2, 200, 300, score_mod=alibi, score_args=(SLOPES, 0.5), by_numpy=biased, **options)


def test_a_function_that_hides_keys():
    run(1, 1, 70, 200, score_mod=even_keys, by_numpy=halved)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("window", [(100, 0), (70, 60)])
def test_text_for_stock_triton(window, policy):
    """The text that a GPU's code is made of runs under every order of tasks."""
    for seed in range(5 if volume.is_full() else 1):
        asked = {"stage": "ttgir", "schedule": policy, "seed": seed}
        run(1, 1, 400, 300, dim=64, window=window, softcap=5.0, sinks=SINKS, asked=asked)


def test_blocks_outside_of_a_window_are_not_read():
    """NaN there would go through the products: only what TMA loads is multiplied."""
    q, k, v = (heads(1, 1, 700, 64, np.float16, seed) for seed in (1, 2, 3))
    expected, _ = references.attention(q, k, v, 0.125, True, window=(60, None))
    k[:, :, :384] = v[:, :, :384] = np.nan
    out = attention_forward(q, k, v, causal=True, window=(60, -1))
    assert relative_error(out[:, :, 576:], expected[:, :, 576:]) < TOLERANCE["fp16"]


@pytest.mark.parametrize(
    ("options", "lengths", "expected"),
    [
        (Options(causal=True), (300, 300), Limits(True, None, None)),
        (Options(causal=True, window=(64, 3)), (300, 300), Limits(True, -64, None)),
        (Options(window=(300, 299)), (300, 300), Limits(False, None, None)),
        (Options(causal=True, align="bottom-right"), (100, 300), Limits(False, None, 200)),
        (Options(causal=True, align="bottom-right"), (1, 300), Limits(False, None, None)),
        (Options(causal=True, window=(10, None), align="bottom-right"), (300, 100), Limits(False, -210, -200)),
    ],
)
def test_limits(options, lengths, expected):
    """Limits that hide nothing cost nothing: one query at the end of the keys is not masked at all."""
    assert limits_for(options, *lengths) == expected


def test_functions_have_registers():
    assert config_for(Options(score_mod=alibi), False, 64, 64, 4096).consumers == 2
    assert config_for(Options(softcap=1.0), False, 64, 64, 4096).consumers == 3


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"window": 3}, TypeError, r"'window': expected \(left, right\), each None or a number of keys, got 3"),
        ({"window": (3, 1.5)}, TypeError, "'window': expected"),
        ({"window": (3, -2)}, ValueError, "'window': expected"),
        ({"align": "top"}, ValueError, "'align': expected top-left or bottom-right, got 'top'"),
        ({"softcap": 0.0}, ValueError, "'softcap': expected a positive number, got 0.0"),
        ({"sinks": np.ones(2, np.float32)}, ValueError, "'sinks': expected the shape"),
        ({"sinks": np.ones(1, np.int32)}, TypeError, "'sinks': expected elements of type fp32 or fp16 or bf16"),
        ({"score_mod": "alibi"}, TypeError, "'score_mod': expected a function with @tlx_xdsl.jit, got str"),
        ({"score_args": (1.0,)}, ValueError, "'score_args': expected none without 'score_mod', got 1"),
        ({"score_mod": even_keys, "score_args": (1.0,) * 5}, ValueError, "'score_args': expected at most 4, got 5"),
    ],
)  # fmt: skip
def test_wrong_options_are_refused(options, error, text):
    q = np.ones((1, 1, 8, 64), np.float16)
    with pytest.raises(error, match=text):
        attention_forward(q, q, q, **options)
