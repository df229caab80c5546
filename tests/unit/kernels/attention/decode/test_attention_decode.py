"""`attention_decode` in the interpreter: splits, lengths, limits, what lies after a sequence; what it refuses."""

import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels import references
from tests.unit.kernels.gemm.test_compiled import compiled
from tests.unit.kernels.references import DTYPES, TOLERANCE, poisoned, relative_error
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.kernels.attention.decode.call import attention_decode, attention_decode_launch
from tlx_xdsl.kernels.attention.decode.config import splits_for


def random(*shape, kind, seed):
    return np.random.default_rng(seed).standard_normal(shape).astype(kind)


def expected(q, k, v, lengths, scale, *, causal=False, window=None, softcap=None):
    """Sequence by sequence, each with its own keys."""
    out = np.zeros((*q.shape[:3], v.shape[3]))
    options = {"causal": causal, "align": "bottom-right", "softcap": softcap}
    options["window"] = None if window is None else (window, None)
    for batch, length in enumerate(lengths):
        if length:
            parts = (q[batch][None], k[batch][None, :, :length], v[batch][None, :, :length])
            out[batch] = references.attention(*parts, scale, **options)[0][0]
    return out


def run(
    lengths, *, keys=None, heads=(2, 1), queries=1, dim=64, v_dim=None, dtype="fp16", splits=None, asked=None, **options
):  # fmt: skip
    """Run and compare; NaN lies after each sequence in the cache."""
    kind = DTYPES[dtype]
    keys = keys or max(lengths)
    q = random(len(lengths), heads[0], queries, dim, kind=kind, seed=1)
    # A cache of (batch, keys, heads, dim).
    k, v = (
        random(len(lengths), keys, heads[1], each, kind=kind, seed=seed).swapaxes(1, 2)
        for seed, each in ((2, dim), (3, v_dim or dim))
    )
    wanted = expected(q, k, v, lengths, 0.1, **options)
    for batch, length in enumerate(lengths):
        k[batch, :, length:] = v[batch, :, length:] = np.nan
    out = poisoned((*q.shape[:3], v.shape[3]), kind)
    given = None if set(lengths) == {keys} else np.array(lengths, np.int32)
    launch = attention_decode_launch(
        q, k, v, out, lengths=given, scale=0.1, splits=splits, programs=2, **options
    )  # fmt: skip
    result = launch.interpret(jobs=1, **(asked or {}))
    assert [each for each in result.warnings if each.severity != "remark"] == []
    assert relative_error(out, wanted) < TOLERANCE[dtype]


@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize("dim", [64, 128])
def test_splits(dim, splits):
    """Keys that fill no block."""
    run([300], dim=dim, splits=splits)


def test_lengths():
    """Empty sequences, and splits without keys."""
    run([0, 300, 1, 128], splits=4, dtype="bf16")


@pytest.mark.parametrize("options", [{"causal": True}, {"causal": True, "window": 70}, {"window": 100, "softcap": 2.0}])
def test_limits_of_grouped_rows(options):
    """18 queries of 4 heads: two tiles of rows."""
    run([300, 50], heads=(8, 2), queries=18, splits=2, **options)


@pytest.mark.parametrize(("dim", "v_dim"), [(96, 96), (192, 128), (40, 256)] if volume.is_full() else [(192, 96)])
def test_head_dimensions(dim, v_dim):
    run([130], dim=dim, v_dim=v_dim, splits=2)


def in_pages(cache, rows, lengths, table):
    """A cache, its keys in the pages of a table in any order, and NaN where no sequence is."""
    heads, dim = cache.shape[1], cache.shape[3]
    found = np.full((table.max() + 2, rows, heads, dim), np.nan, cache.dtype).swapaxes(1, 2)
    for batch, length in enumerate(lengths):
        for key in range(length):
            found[table[batch, key // rows], :, key % rows] = cache[batch, :, key]
    return found


@pytest.mark.parametrize(("rows", "dim", "v_dim"), [(16, 128, 128), (64, 64, 64), (256, 64, 128), (8, 96, 64)])
def test_pages(rows, dim, v_dim):
    """Pages smaller and larger than a block, and a table with anything after the ends."""
    lengths = [150, 0, 270] if volume.is_full() else [70, 0, 150]
    rng = np.random.default_rng(5)
    count = -(-300 // rows)
    table = rng.permutation(3 * count).reshape(3, count).astype(np.int32)
    q = random(3, 4, 2, dim, kind=np.float16, seed=1)
    k, v = (random(3, 2, 300, each, kind=np.float16, seed=each) for each in (dim, v_dim))
    caches = [in_pages(each, rows, lengths, table) for each in (k, v)]
    for batch, length in enumerate(lengths):
        table[batch, -(-length // rows) :] = -7
    out = poisoned((3, 4, 2, v_dim), np.dtype(np.float16))
    given = np.array(lengths, np.int32)
    launch = attention_decode_launch(
        q, *caches, out, lengths=given, pages=table, scale=0.1, splits=2, programs=2, causal=True
    )
    assert launch.interpret(jobs=1).warnings == ()
    assert relative_error(out, expected(q, k, v, lengths, 0.1, causal=True)) < TOLERANCE["fp16"]


@pytest.mark.parametrize("policy", POLICIES)
def test_text_for_stock_triton(policy):
    """The text that a GPU's code is made of runs under every order of tasks."""
    for seed in range(5 if volume.is_full() else 1):
        run([200, 70], splits=2, asked={"stage": "ttgir", "schedule": policy, "seed": seed})


def test_a_call():
    q, k = (random(1, 2, count, 64, kind=np.float16, seed=count) for count in (1, 40))
    wanted = expected(q, k, k, [40], 0.125)
    assert relative_error(attention_decode(q, k, k), wanted) < TOLERANCE["fp16"]
    assert attention_decode(q[:, :, :0], k, k).shape == (1, 2, 0, 64)


def test_splits_fill_the_programs():
    """One round of items, or many short ones: the program with the most work has the least."""
    assert splits_for(128, 128, 132) == 1
    assert splits_for(8, 1024, 132) == 16
    assert splits_for(1, 4, 132) == 4
    assert splits_for(1000, 1, 132) == 1


@pytest.mark.parametrize(
    ("changed", "error", "text"),
    [
        ({"q": np.ones((1, 1, 65, 64), np.float16)}, ValueError, "'q': expected at most 64 queries, got 65"),
        ({"q": np.ones((1, 1, 1, 64), np.float32)}, TypeError, "'q': expected elements of type fp16 or bf16"),
        ({"lengths": np.array([8])}, TypeError, "'lengths': expected elements of type int32"),
        ({"lengths": np.zeros(2, np.int32)}, ValueError, r"'lengths': expected the shape \(1,\)"),
        (
            {"pages": np.zeros((1, 2), np.int32), "k": np.ones((1, 1, 12, 64), np.float16)},
            ValueError,
            "'k': expected pages of a power of two of rows, 8 or more, got 12",
        ),
        ({"pages": np.zeros((2, 2), np.int32)}, ValueError, "'pages': expected .batch of 'q', pages of a sequence."),
        ({"softcap": -1.0}, ValueError, "'softcap': expected a positive number"),
    ],
)
def test_wrong_operands_are_refused(changed, error, text):
    same = np.ones((1, 1, 8, 64), np.float16)
    with pytest.raises(error, match=f"attention_decode: argument {text}"):
        attention_decode(**{"q": same, "k": same, "v": same, **changed})


@pytest.mark.backend
@pytest.mark.parametrize("rows", [None, 64, 256] if volume.is_full() else [None, 64])
def test_compiled(rows):
    """The code spills nothing, and two programs fit on a multiprocessor."""
    kind = DTYPES["bf16"]
    q = np.empty((2, 32, 1, 128), kind)
    k = np.empty((2, 8, 1024, 128) if rows is None else (40, 8, rows, 128), kind)
    table = None if rows is None else np.zeros((2, 1024 // rows), np.int32)
    resources = compiled(attention_decode_launch(q, k, k, q, pages=table, splits=2).parts[0]).resources
    assert resources.spill_store_bytes == 0
    assert resources.registers == 128
