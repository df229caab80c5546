"""`attention_mla` on a GPU: against float64, in pages and not, bit for bit, in torch."""

import pytest

from tlx_xdsl.kernels.attention.decode.mla import attention_mla

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")

# Makes the operators; without torch there is nothing to import.
pytest.importorskip("tlx_xdsl.kernels.library")
decode_on_gpu = pytest.importorskip("tests.unit.kernels.attention.decode.test_attention_decode_on_gpu")
LIMIT, exact, in_pages, random = (getattr(decode_on_gpu, each) for each in ("LIMIT", "exact", "in_pages", "random"))

SCALE = 576**-0.5
"""That of `exact`."""


@pytest.mark.parametrize("dtype", LIMIT, ids=str)
@pytest.mark.parametrize(("heads", "queries", "causal"), [(16, 1, False), (128, 1, False), (20, 5, True)])
def test_lengths_and_pages(heads, queries, causal, dtype):
    batch, keys = 3, 1024
    q = random(batch, heads, queries, 576, dtype=dtype)
    cache = random(batch, 1, keys, 576, dtype=dtype, seed=1)
    lengths = torch.tensor([1000, 0, 333], device="cuda", dtype=torch.int32)
    for at, length in enumerate(lengths.tolist()):
        cache[at, :, length:] = torch.nan
    wanted = exact(q, cache, cache[..., :512], lengths, causal)
    options = {"scale": SCALE, "lengths": lengths, "causal": causal}
    out = attention_mla(q, cache, **options)
    assert ((out.double() - wanted).norm() / wanted.norm()).item() < LIMIT[dtype]
    for rows in (8, 16, 64, 256):
        pages, table = in_pages(cache, rows)
        assert torch.equal(attention_mla(q, pages, pages=table, **options), out)


def test_one_split_in_torch_and_in_graphs():
    """A sequence for each multiprocessor, so that nothing is merged; and a few long ones."""
    for batch, keys in ((264, 64), (2, 5000)):
        q, cache = random(batch, 64, 1, 576, dtype=torch.bfloat16), random(batch, 1, keys, 576, seed=1)
        first = attention_mla(q, cache, scale=SCALE)
        lengths = torch.full((batch,), keys, device="cuda")
        wanted = exact(q, cache, cache[..., :512], lengths, False)
        assert ((first.double() - wanted).norm() / wanted.norm()).item() < LIMIT[torch.bfloat16]
        assert all(torch.equal(attention_mla(q, cache, scale=SCALE), first) for _ in range(200))
        call = torch.compile(lambda *tensors: attention_mla(*tensors, scale=SCALE), fullgraph=True)
        assert torch.equal(call(q, cache), first)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = attention_mla(q, cache, scale=SCALE)
        found.zero_()
        graph.replay()
        assert torch.equal(found, first)
    torch.library.opcheck(torch.ops.tlx_xdsl.attention_mla.default, (q, cache, None, None, 512, SCALE, False))
