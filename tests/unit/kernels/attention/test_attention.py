"""`attention_forward` in the interpreter: masks, lengths, grouped heads, types; its choices and its refusals."""

import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels import references
from tests.unit.kernels.references import DTYPES, TOLERANCE, heads, poisoned, relative_error
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.kernels.attention.config import AttentionConfig, choose_config
from tlx_xdsl.kernels.attention.forward import attention_forward, attention_launch

pytestmark = pytest.mark.quick


def run(
    q_heads, kv_heads, queries, keys, *,
    dim=64, v_dim=None, causal=False, dtype="fp16", batch=2, config=None, **options,
):  # fmt: skip
    kind, v_dim = DTYPES[dtype], v_dim or dim
    q = heads(batch, q_heads, queries, dim, kind, 1)
    k, v = (heads(batch, kv_heads, keys, each, kind, seed) for each, seed in ((dim, 2), (v_dim, 3)))
    out, lse = poisoned((*q.shape[:3], v_dim), kind), poisoned(q.shape[:3], np.float32)
    scale = 0.7 * dim**-0.5
    launch = attention_launch(q, k, v, out, lse, causal=causal, scale=scale, config=config, programs=2)
    result = launch.interpret(jobs=1, **options)
    assert [each for each in result.warnings if each.severity != "remark"] == []
    expected, sums = references.attention(q, k, v, scale, causal)
    assert relative_error(out, expected) < TOLERANCE[dtype]
    assert relative_error(lse, sums) < 1e-6


@pytest.mark.parametrize(
    ("queries", "keys"),
    [(256, 256), (70, 150), (391, 100), (333, 333), (1, 1)] if volume.is_full() else [(70, 150), (391, 391)],
)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dim", [64, 128])
def test_lengths(dim, causal, queries, keys):
    """Tails of queries and of keys, more queries than keys and fewer; with a mask, all ends of a tile's consumers."""
    run(2, 1, queries, keys, dim=dim, causal=causal)


@pytest.mark.parametrize("causal", [False, True])
def test_bf16_and_grouped_heads(causal):
    run(4, 2, 200, 260, causal=causal, dtype="bf16")


@pytest.mark.parametrize(("consumers", "together"), [(2, True), (3, False)])
def test_configurations(consumers, together):
    """Tiles of 128 and 192 rows, heads one by one and together."""
    run(3, 3, 400, 400, causal=True, config=AttentionConfig(consumers, 160, all_heads=together))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("dim", [64, 128])
def test_text_for_stock_triton(dim, policy):
    """The text that a GPU's code is made of runs under every order of tasks."""
    for seed in range(5 if volume.is_full() else 1):
        run(1, 1, 400, 200, dim=dim, causal=True, stage="ttgir", schedule=policy, seed=seed)


def test_what_lies_after_a_head_plays_no_part():
    """Blocks that reach beyond the end of a head meet the next one, whose NaN must not be multiplied by zero."""
    q, k, v = (heads(1, 2, 100, 64, np.float16, seed) for seed in (1, 2, 3))
    k, v = (np.ascontiguousarray(each) for each in (k, v))
    for each in (k, v):
        each[:, 1] = np.nan
    out = attention_forward(q, k, v)
    expected, _ = references.attention(q[:, :1], k[:, :1], v[:, :1], 0.125, False)
    assert relative_error(out[:, :1], expected) < TOLERANCE["fp16"]


def test_results():
    q, k, v = (heads(1, 1, 64, 64, np.float16, seed) for seed in (1, 2, 3))
    out = poisoned(q.shape, np.float16)
    found, lse = attention_forward(q, k, v, out=out, return_lse=True)
    assert found is out
    assert lse.shape == (1, 1, 64)
    assert np.array_equal(attention_forward(q, k, v), out)
    assert attention_forward(q[:, :, :0], k, v).shape == (1, 1, 0, 64)


def test_the_configuration_follows_the_shape():
    assert choose_config(128, True) == AttentionConfig(consumers=2, registers=240)
    assert choose_config(64, False) == AttentionConfig(consumers=3, registers=160)
    assert choose_config(64, True).all_heads
    assert choose_config(96, True) == choose_config(192, False, 128) == choose_config(128, False)
    assert choose_config(256, True).block_n == 64
    short = choose_config(64, True, queries=512)
    assert (short.consumers, short.resident, short.maxnreg) == (1, 3, 80)
    assert choose_config(64, True).maxnreg is None


@pytest.mark.parametrize("queries", [None, 200])
def test_configurations_of_a_causal_mask(queries):
    """Configurations for many queries and for few: three consumers that take turns, and one that has none."""
    for causal in (False, True):
        run(4, 2, 200, 300, dim=64, causal=causal, config=choose_config(64, True, queries=queries))


def tensors(*shapes, dtype=np.float16):
    return [np.ones(shape, dtype) for shape in shapes]


@pytest.mark.parametrize(
    ("inputs", "options", "error", "text"),
    [
        (tensors(*[(1, 1, 8, 20)] * 3), {}, ValueError, "'q': expected heads of a multiple of 8 elements, up to 256"),
        (tensors(*[(1, 1, 8, 64)] * 2, (1, 1, 8, 264)), {}, ValueError, "'v': expected heads of a multiple of 8 elem"),
        (tensors((1, 8, 64), (1, 8, 64), (1, 8, 64)), {}, ValueError, r"'q': expected \(batch, heads, length, "),
        (tensors((1, 4, 8, 64), (1, 3, 8, 64), (1, 3, 8, 64)), {}, ValueError, "'k': expected heads that divide"),
        (tensors((1, 4, 8, 64), (2, 4, 8, 64), (2, 4, 8, 64)), {}, ValueError, "'k': expected the shape"),
        (tensors((1, 4, 8, 64), (1, 4, 8, 64), (1, 4, 9, 64)), {}, ValueError, "'v': expected the shape"),
        (tensors((1, 4, 8, 64), (1, 4, 0, 64), (1, 4, 0, 64)), {}, ValueError, "'k': expected at least one key"),
        (tensors(*[(1, 1, 8, 64)] * 3, dtype=np.float32), {}, TypeError, "'q': expected elements of type fp16 or bf16"),
        (tensors(*[(1, 1, 8, 64)] * 3), {"scale": -1.0}, ValueError, "'scale': expected a positive number, got -1.0"),
        (tensors(*[(1, 1, 8, 64)] * 3), {"scale": float("inf")}, ValueError, "'scale': expected a positive number"),
        (tensors(*[(1, 1, 8, 64)] * 3), {"out": np.ones((1, 1, 9, 64), np.float16)}, ValueError, "'out': expected the"),
        ([np.ones((1, 1, 64, 8), np.float16).swapaxes(2, 3)] * 3, {}, ValueError, "'q': expected heads that are"),
    ],
)  # fmt: skip
def test_wrong_operands_are_refused(inputs, options, error, text):
    with pytest.raises(error, match=text):
        attention_forward(*inputs, **options)
