"""`attention_decode` on a GPU: against float64, in pages and not, bit for bit, in torch."""

import pytest

from tlx_xdsl.kernels.attention.decode.call import attention_decode
from tlx_xdsl.kernels.attention.forward import attention_forward

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")

# Makes the operators.
pytest.importorskip("tlx_xdsl.kernels.library")

LIMIT = {torch.float16: 1e-3, torch.bfloat16: 8e-3}
"""Norm of the error over that of the result."""

E4M3 = torch.float8_e4m3fn


def random(*shape, dtype=torch.bfloat16, seed=0):
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(shape, generator=generator, device="cuda").to(dtype)


def exact(q, k, v, lengths, causal):
    group = q.shape[1] // k.shape[1]
    keys, values = (each.double().nan_to_num().repeat_interleave(group, 1) for each in (k, v))
    places = torch.arange(k.shape[2], device="cuda")
    seen = places < lengths[:, None, None]
    if causal:
        own = lengths[:, None] - q.shape[2] + torch.arange(q.shape[2], device="cuda")
        seen = seen & (places <= own[:, :, None])
    scores = (q.double() @ keys.mT * q.shape[3] ** -0.5).masked_fill(~seen[:, None], -torch.inf)
    return scores.softmax(-1).nan_to_num() @ values


def in_pages(cache, rows):
    """A cache in pages of a table in any order. torch does not index 8-bit floats, but bytes."""
    batch, heads, keys, dim = cache.shape
    kind = cache.dtype
    cache = cache.view(torch.uint8) if kind == E4M3 else cache
    table = torch.randperm(batch * keys // rows, generator=torch.Generator().manual_seed(7)).cuda()
    pages = torch.empty(table.numel(), rows, heads, dim, device="cuda", dtype=cache.dtype)
    pages[table] = cache.transpose(1, 2).reshape(-1, rows, heads, dim)
    return pages.view(kind).transpose(1, 2), table.reshape(batch, -1).int()


@pytest.mark.parametrize("dtype", LIMIT, ids=str)
@pytest.mark.parametrize(
    ("heads", "queries", "dim", "causal"),
    [((8, 2), 1, 128, False), ((8, 2), 5, 64, True), ((4, 4), 64, 128, True), ((16, 2), 16, 96, False)],
)
def test_lengths_and_pages(heads, queries, dim, causal, dtype):
    batch, keys = 3, 1024
    q = random(batch, heads[0], queries, dim, dtype=dtype)
    k, v = (random(batch, heads[1], keys, dim, dtype=dtype, seed=seed) for seed in (1, 2))
    lengths = torch.tensor([1000, 0, 333], device="cuda", dtype=torch.int32)
    for at, length in enumerate(lengths.tolist()):
        k[at, :, length:] = v[at, :, length:] = torch.nan
    wanted = exact(q, k, v, lengths, causal)
    out = attention_decode(q, k, v, lengths=lengths, causal=causal)
    assert ((out.double() - wanted).norm() / wanted.norm()).item() < LIMIT[dtype]
    for rows in (8, 16, 32, 64, 128, 256):
        (pages_k, table), (pages_v, _) = in_pages(k, rows), in_pages(v, rows)
        found = attention_decode(q, pages_k, pages_v, lengths=lengths, pages=table, causal=causal)
        assert torch.equal(found, out)


def test_bits_are_the_same_each_time():
    q, k, v = random(5, 32, 1, 128), random(5, 8, 5000, 128, seed=1), random(5, 8, 5000, 128, seed=2)
    first = attention_decode(q, k, v)
    assert all(torch.equal(attention_decode(q, k, v), first) for _ in range(200))


def test_in_torch_and_in_graphs():
    q, k, v = random(2, 8, 1, 128), random(2, 2, 1000, 128, seed=1), random(2, 2, 1000, 128, seed=2)
    lengths = torch.tensor([1000, 7], device="cuda", dtype=torch.int32)
    expected = attention_decode(q, k, v, lengths=lengths)
    call = torch.compile(lambda *tensors: attention_decode(*tensors, lengths=lengths), fullgraph=True)
    assert torch.equal(call(q, k, v), expected)
    torch.library.opcheck(
        torch.ops.tlx_xdsl.attention_decode.default, (q, k, v, lengths, None, None, None, False, None, None, None)
    )
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = attention_decode(q, k, v, lengths=lengths)
    found.zero_()
    graph.replay()
    assert torch.equal(found, expected)


@pytest.mark.parametrize("dtype", LIMIT, ids=str)
@pytest.mark.parametrize(
    ("heads", "queries", "dim", "causal"),
    [((8, 2), 1, 128, False), ((8, 2), 5, 64, True), ((4, 4), 64, 128, True), ((16, 2), 16, 96, False)],
)
def test_caches_in_8_bits(heads, queries, dim, causal, dtype):
    batch, keys = 3, 1024
    q = random(batch, heads[0], queries, dim, dtype=dtype)
    k, v = (random(batch, heads[1], keys, dim, dtype=E4M3, seed=seed) for seed in (1, 2))
    k_scale, v_scale = (random(batch, heads[1], dtype=torch.float32, seed=seed).abs() + 0.1 for seed in (3, 4))
    lengths = torch.tensor([1000, 0, 333], device="cuda", dtype=torch.int32)
    for at, length in enumerate(lengths.tolist()):
        k.view(torch.uint8)[at, :, length:] = v.view(torch.uint8)[at, :, length:] = 0x7F  # NaN
    meant = (each.float() * scale[:, :, None, None] for each, scale in ((k, k_scale), (v, v_scale)))
    wanted = exact(q, *meant, lengths, causal)
    options = {"lengths": lengths, "causal": causal, "k_scale": k_scale, "v_scale": v_scale}
    out = attention_decode(q, k, v, **options)
    assert ((out.double() - wanted).norm() / wanted.norm()).item() < LIMIT[dtype]
    for rows in (8, 16, 64, 256):
        (pages_k, table), (pages_v, _) = in_pages(k, rows), in_pages(v, rows)
        assert torch.equal(attention_decode(q, pages_k, pages_v, pages=table, **options), out)


def test_8_bits_in_torch_and_in_graphs():
    q, (k, v) = random(2, 8, 1, 128), (random(2, 2, 5000, 128, dtype=E4M3, seed=seed) for seed in (1, 2))
    scale = torch.tensor([0.5, 2.0], device="cuda")
    first = attention_decode(q, k, v, k_scale=scale, v_scale=scale)
    assert all(torch.equal(attention_decode(q, k, v, k_scale=scale, v_scale=scale), first) for _ in range(200))
    call = torch.compile(lambda *tensors: attention_decode(*tensors, k_scale=scale, v_scale=scale), fullgraph=True)
    assert torch.equal(call(q, k, v), first)
    # It compares inputs by arithmetic, which torch has none of in 8 bits, to see that the schema is true.
    torch.library.opcheck(
        torch.ops.tlx_xdsl.attention_decode.default, (q, k, v, None, None, scale, scale, False, None, None, None),
        test_utils=("test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"),
    )  # fmt: skip
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = attention_decode(q, k, v, k_scale=scale, v_scale=scale)
    found.zero_()
    graph.replay()
    assert torch.equal(found, first)


@pytest.mark.parametrize(
    "options", [{"window": (100, None)}, {"softcap": 5.0}, {"window": (3, None), "causal": True}], ids=str
)
def test_limits(options):
    """Compare with `attention_forward`, whose last query stands at the last key, too."""
    q, k, v = random(2, 8, 7, 128), random(2, 2, 3000, 128, seed=1), random(2, 2, 3000, 128, seed=2)
    wanted = attention_forward(q, k, v, align="bottom-right", **options)
    if "window" in options:
        options = options | {"window": options["window"][0]}
    out = attention_decode(q, k, v, **options)
    assert ((out.double() - wanted.double()).norm() / wanted.double().norm()).item() < 2 * LIMIT[torch.bfloat16]
