"""`attention_mla` in the interpreter: halves of the columns, splits, pages, what lies after a sequence."""

import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels.attention.decode.test_attention_decode import expected, in_pages, random
from tests.unit.kernels.gemm.test_compiled import compiled
from tests.unit.kernels.references import DTYPES, TOLERANCE, poisoned, relative_error
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.kernels.attention.decode.mla import attention_mla, attention_mla_launch


def run(
    lengths, *, heads=8, queries=1, dim=192, v_dim=128, dtype="bf16", rows=None, splits=2, asked=None, causal=False
):  # fmt: skip
    """Run and compare; NaN lies after each sequence in the cache."""
    kind, keys, batch = DTYPES[dtype], max(lengths), len(lengths)
    q = random(batch, heads, queries, dim, kind=kind, seed=1)
    cache = random(batch, 1, keys, dim, kind=kind, seed=2)
    wanted = expected(q, cache, cache[..., :v_dim], lengths, 0.1, causal=causal)
    for at, length in enumerate(lengths):
        cache[at, :, length:] = np.nan
    table = None
    if rows:
        count = -(-keys // rows)
        table = np.random.default_rng(5).permutation(batch * count).reshape(batch, count).astype(np.int32)
        cache = in_pages(cache, rows, lengths, table)
    out = poisoned((batch, heads, queries, v_dim), kind)
    given = None if set(lengths) == {keys} else np.array(lengths, np.int32)
    launch = attention_mla_launch(
        q, cache, out, lengths=given, pages=table, scale=0.1, splits=splits, programs=2, causal=causal
    )
    result = launch.interpret(jobs=1, **(asked or {}))
    assert [each for each in result.warnings if each.severity != "remark"] == []
    assert relative_error(out, wanted) < TOLERANCE[dtype]


@pytest.mark.parametrize("splits", [1, 3])
def test_splits(splits):
    """Keys that fill no block."""
    run([150], splits=splits)


def test_lengths():
    """Empty sequences, and splits without keys; causal queries of 20 heads are two tiles of rows."""
    run([0, 100, 1], heads=20, queries=4, dtype="fp16", causal=True, splits=2)


@pytest.mark.parametrize("rows", [8, 64])
def test_pages(rows):
    run([70, 0, 100], rows=rows)


@pytest.mark.parametrize(("dim", "v_dim"), [(576, 512), (320, 256), (136, 128)] if volume.is_full() else [(576, 512)])
def test_dimensions(dim, v_dim):
    run([70, 40], dim=dim, v_dim=v_dim)


@pytest.mark.parametrize("splits", [1, 2])
@pytest.mark.parametrize("policy", POLICIES)
def test_text_for_stock_triton(policy, splits):
    """The text that a GPU's code is made of runs under every order of tasks."""
    for seed in range(5 if volume.is_full() else 1):
        run([100, 70], splits=splits, asked={"stage": "ttgir", "schedule": policy, "seed": seed})


def test_a_call():
    q, cache = random(1, 4, 1, 192, kind=np.float16, seed=1), random(1, 1, 40, 192, kind=np.float16, seed=2)
    wanted = expected(q, cache, cache[..., :128], [40], 0.125)
    assert relative_error(attention_mla(q, cache, v_dim=128, scale=0.125), wanted) < TOLERANCE["fp16"]
    assert attention_mla(q[:, :, :0], cache, v_dim=128, scale=0.125).shape == (1, 4, 0, 128)


@pytest.mark.parametrize(
    ("changed", "error", "text"),
    [
        ({"q": np.ones((1, 4, 65, 192), np.float16)}, ValueError, "'q': expected at most 64 queries, got 65"),
        ({"q": np.ones((1, 4, 1, 584), np.float16)}, ValueError, "'q': expected rows of a multiple of 8 elements"),
        ({"cache": np.ones((1, 2, 8, 192), np.float16)}, ValueError, r"'cache': expected the shape \(1, 1, 8, 192\)"),
        ({"cache": np.ones((1, 1, 8, 192), np.float32)}, TypeError, "'cache': expected elements of type fp16 or bf16"),
        ({"v_dim": 512}, ValueError, "'v_dim': expected a multiple of 128, up to 192, got 512"),
        ({"scale": 0.0}, ValueError, "'scale': expected a positive number"),
        ({"lengths": np.array([8])}, TypeError, "'lengths': expected elements of type int32"),
    ],
)
def test_wrong_operands_are_refused(changed, error, text):
    q, cache = np.ones((1, 4, 1, 192), np.float16), np.ones((1, 1, 8, 192), np.float16)
    with pytest.raises(error, match=f"attention_mla: argument {text}"):
        attention_mla(**{"q": q, "cache": cache, "v_dim": 128, "scale": 0.1, **changed})


@pytest.mark.backend
def test_compiled():
    """DeepSeek's shape: the sums of 256 columns are in registers; what is spilled is so once for an item."""
    kind = DTYPES["bf16"]
    q, cache, out = (np.empty(shape, kind) for shape in ((2, 128, 1, 576), (2, 1, 1024, 576), (2, 128, 1, 512)))
    for launch in attention_mla_launch(q, cache, out, scale=0.1, splits=2).parts:
        result = compiled(launch)
        # By ptxas 13.1, which Triton 3.7 brings, and 13.3, which 3.8 brings; by the others 64.
        spilled = {"13.1": 160, "13.3": 144}.get(result.assembler.split()[1].rpartition(".")[0], 64)
        assert result.resources.spill_store_bytes <= spilled
        assert result.warnings == ()
