"""`attention_decode` with caches in e4m3 in the interpreter: scales, pages, queries of any size; what it refuses."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels.attention.decode.test_attention_decode import expected, in_pages, random
from tests.unit.kernels.gemm.test_compiled import compiled
from tests.unit.kernels.references import DTYPES, TOLERANCE, poisoned, relative_error
from tlx_xdsl.interpreter.scheduler import POLICIES
from tlx_xdsl.kernels.attention.decode.call import attention_decode, attention_decode_launch

E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)


def scaled(cache, scale):
    """A cache as it is meant, in f64: the scales are of one element, of (heads,) or of (batch, heads)."""
    factors = np.ones(1) if scale is None else scale.astype(np.float64)
    shape = factors.shape if factors.ndim == 2 else (1, factors.size)
    return cache.astype(np.float64) * factors.reshape(*shape, 1, 1)


def run(
    lengths, *, keys=None, heads=(4, 2), queries=1, dim=64, v_dim=None, dtype="bf16", rows=None, scales=(None, None),
    q_factor=1.0, splits=2, asked=None, **options
):  # fmt: skip
    """Run and compare; NaN lies after each sequence in the cache."""
    kind = DTYPES[dtype]
    keys, batch = keys or max(lengths), len(lengths)
    q = (random(batch, heads[0], queries, dim, kind=np.float32, seed=1) * q_factor).astype(kind)
    k, v = (
        random(batch, keys, heads[1], each, kind=E4M3, seed=seed).swapaxes(1, 2)
        for seed, each in ((2, dim), (3, v_dim or dim))
    )
    scale = 0.1 / np.max(q_factor)
    wanted = expected(q, scaled(k, scales[0]), scaled(v, scales[1]), lengths, scale, **options)
    for at, length in enumerate(lengths):
        k[at, :, length:] = v[at, :, length:] = np.nan
    table = None
    if rows:
        count = -(-keys // rows)
        table = np.random.default_rng(5).permutation(batch * count).reshape(batch, count).astype(np.int32)
        k, v = (in_pages(each, rows, lengths, table) for each in (k, v))
    out = poisoned((*q.shape[:3], v.shape[3]), kind)
    launch = attention_decode_launch(
        q, k, v, out, lengths=np.array(lengths, np.int32), pages=table, scale=scale, splits=splits, programs=2,
        k_scale=scales[0], v_scale=scales[1], **options
    )  # fmt: skip
    result = launch.interpret(jobs=1, **(asked or {}))
    assert [each for each in result.warnings if each.severity != "remark"] == []
    assert relative_error(out, wanted) < TOLERANCE[dtype]


ONE = np.array([0.5], np.float32)
BY_HEAD = np.array([0.25, 3.0], np.float32)
BY_SEQUENCE = np.array([[0.25, 3.0], [1.5, 0.5]], np.float32)


@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize("scales", [(None, None), (ONE, BY_HEAD), (BY_HEAD, BY_SEQUENCE)], ids=["none", "one", "heads"])
def test_scales(scales, splits):
    run([200, 77], splits=splits, scales=scales)


@pytest.mark.parametrize(("dim", "v_dim"), [(128, 128), (96, 64), (256, 128)] if volume.is_full() else [(128, 32)])
def test_head_dimensions(dim, v_dim):
    run([130, 0], dim=dim, v_dim=v_dim, dtype="fp16", scales=(BY_HEAD, ONE))


@pytest.mark.parametrize("options", [{"causal": True, "window": 70}, {"softcap": 2.0}])
def test_limits(options):
    """The cap is of the scores with their scale. 18 queries of 4 heads: two tiles of rows."""
    run([150, 50], heads=(8, 2), queries=18, scales=(BY_HEAD, ONE), **options)


@pytest.mark.parametrize("rows", [8, 16, 64, 256] if volume.is_full() else [16, 256])
def test_pages(rows):
    run([150, 0, 70], keys=300, rows=rows, scales=(BY_HEAD, BY_HEAD), causal=True, queries=2)


def test_queries_that_fp16_does_not_have():
    """Rows of bf16 far above and below the numbers of fp16, and one of zeros."""
    factors = np.array([1e30, 1e-30, 0.0, 1.0])[None, :, None, None]
    for factor in (1e30, 1e-30):
        run([100], q_factor=np.float64(factor))
    q, k = random(1, 4, 1, 64, kind=np.float32, seed=1) * factors, random(1, 2, 40, 64, kind=E4M3, seed=2)
    q = q.astype(DTYPES["bf16"])
    out = attention_decode(q, k, k, scale=1e-29)
    assert relative_error(out, expected(q, scaled(k, None), scaled(k, None), [40], 1e-29)) < TOLERANCE["bf16"]


@pytest.mark.parametrize("policy", POLICIES)
def test_text_for_stock_triton(policy):
    """The text that a GPU's code is made of runs under every order of tasks."""
    for seed in range(5 if volume.is_full() else 1):
        run([200, 70], scales=(BY_HEAD, ONE), asked={"stage": "ttgir", "schedule": policy, "seed": seed})


@pytest.mark.parametrize(
    ("changed", "error", "text"),
    [
        ({"q": np.ones((1, 1, 1, 64), E4M3)}, TypeError, "'q': expected elements of type fp16 or bf16"),
        ({"v": np.ones((1, 1, 8, 64), np.float16)}, TypeError, "'v': expected float8_e4m3fn as 'k' has"),
        ({"k_scale": np.ones(3, np.float32)}, ValueError, r"'k_scale': expected one element, the shape \(1,\)"),
        ({"v_scale": np.ones(1, np.float16)}, TypeError, "'v_scale': expected a tensor of type fp32"),
        ({"k": np.ones((1, 1, 8, 72), E4M3)}, ValueError, "'k': expected the shape"),
    ],
)
def test_wrong_operands_are_refused(changed, error, text):
    q, same = np.ones((1, 1, 1, 64), np.float16), np.ones((1, 1, 8, 64), E4M3)
    with pytest.raises(error, match=f"attention_decode: argument {text}"):
        attention_decode(**{"q": q, "k": same, "v": same, **changed})


def test_scales_of_other_caches_are_refused():
    same = np.ones((1, 1, 8, 64), np.float16)
    with pytest.raises(TypeError, match="attention_decode: argument 'v_scale': expected None for a cache of float16"):
        attention_decode(same[:, :, :1], same, same, v_scale=ONE)


@pytest.mark.parametrize("queries", [1, 4, 8, 16] if volume.is_full() else [4])
def test_columns(queries):
    """4 to 64 rows of queries, which are 8 to 64 columns of the products."""
    run([70, 150], heads=(8, 2), queries=queries, scales=(BY_HEAD, ONE), causal=True)


@pytest.mark.backend
@pytest.mark.parametrize("dim", [64, 128, 256] if volume.is_full() else [128])
def test_ptx(dim):
    """The PTX runs on data: K and V are read without conflicts of banks."""
    q, k, v = (
        random(1, 4, 1, dim, kind=DTYPES["bf16"], seed=1),
        *(random(1, 1, 130, dim, kind=E4M3, seed=s) for s in (2, 3)),
    )
    out = poisoned(q.shape, q.dtype)
    result = attention_decode_launch(q, k, v, out, splits=1, programs=1).interpret(jobs=1, stage="ptx", profile=True)
    assert result.warnings == ()
    assert relative_error(out, expected(q, scaled(k, None), scaled(v, None), [130], dim**-0.5)) < TOLERANCE["bf16"]
    reads = {}
    for (path, line), found in result.ptx.traffic.items():
        text = Path(path).read_text().splitlines()[line - 1] if Path(path).is_file() else ""
        if "local_load(matrix, layout=layout)" in text:
            reads[line] = found.shared
    assert len(reads) == 2
    assert all(each.taken == each.least > 0 for each in reads.values())


@pytest.mark.backend
@pytest.mark.parametrize(("queries", "dim"), [(1, 128), (8, 128), (1, 256)] if volume.is_full() else [(1, 128)])
def test_compiled(queries, dim):
    """Each element is converted once, two by an instruction; products are in flight together, and nothing spills."""
    q, k = np.empty((2, 32, queries, dim), DTYPES["bf16"]), np.empty((2, 8, 1024, dim), E4M3)
    result = compiled(attention_decode_launch(q, k, k, q, splits=2).parts[0])
    assert result.resources.registers == 128
    assert result.resources.spill_store_bytes == 0
    assert result.ptx.count("cvt.rn.f16x2.e4m3x2") == 2 * 64 * dim // 128 // 2
    assert result.warnings == ()
