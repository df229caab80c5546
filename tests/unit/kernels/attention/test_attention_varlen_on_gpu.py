"""`attention_varlen` on a Hopper GPU: against float64, the same bits each time, in graphs and operators."""

import pytest

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

# Makes the operators.
pytest.importorskip("tlx_xdsl.kernels.library")

from tests.unit.kernels.attention.test_attention_options_on_gpu import LIMIT, alibi, exact  # noqa: E402
from tlx_xdsl.kernels.attention.forward import attention_forward  # noqa: E402
from tlx_xdsl.kernels.attention.options import Options  # noqa: E402
from tlx_xdsl.kernels.attention.varlen import attention_varlen  # noqa: E402
from tlx_xdsl.kernels.operators.attention import options_text  # noqa: E402

LENGTHS = {
    "ragged": ([0, 333, 1, 64, 1000, 0, 129, 513, 0], None),
    "other keys": ([100, 0, 500, 257, 1, 900], [640, 90, 0, 100, 333, 901]),
    "many": ([(37 * at) % 250 for at in range(150)], None),
}

CASES = {
    "plain": {},
    "causal": {"causal": True},
    "bottom-right": {"causal": True, "align": "bottom-right"},
    "window": {"window": (70, 30), "align": "bottom-right"},
    "all": {"causal": True, "window": (200, 0), "softcap": 3.0, "sinks": True, "slopes": True},
}


def sums_of(lengths):
    return torch.tensor([0, *lengths], device="cuda").cumsum(0, dtype=torch.int32)


def problem(q_lengths, k_lengths, dim, dtype=torch.bfloat16, heads=4, kv_heads=2, rest=7):
    """Q, K and V, with `rest` rows after the last sequence that are NaN."""
    generator = torch.Generator("cuda").manual_seed(0)
    found = []
    for lengths, count in ((q_lengths, heads), (k_lengths, kv_heads), (k_lengths, kv_heads)):
        rows = torch.randn((sum(lengths) + rest, count, dim), generator=generator, device="cuda").to(dtype)
        rows[sum(lengths) :] = torch.nan
        found.append(rows)
    return found


def check(name, case, dim, dtype=torch.bfloat16):
    q_lengths, k_lengths = LENGTHS[name]
    k_lengths = k_lengths or q_lengths
    q, k, v = problem(q_lengths, k_lengths, dim, dtype)
    options = dict(CASES[case])
    by_head = torch.linspace(-1, 1, q.shape[1], device="cuda")
    options |= {each: by_head for each in ("sinks", "slopes") if each in options}
    given = dict(options)
    if (slopes := given.pop("slopes", None)) is not None:
        given |= {"score_mod": alibi, "score_args": (slopes,)}
    out = torch.full_like(q, torch.nan)
    sums = sums_of(q_lengths), sums_of(k_lengths)
    _, lse = attention_varlen(q, k, v, *sums, out=out, return_lse=True, **given)
    assert out[sum(q_lengths) :].isnan().all()
    wanted, logarithms = [], []
    for queries, keys, values in zip(*(each.split(n) for each, n in parts(q, k, v, q_lengths, k_lengths)), strict=True):
        turned = (each.transpose(0, 1)[None] for each in (queries, keys, values))
        result, of_rows = exact(*turned, **options)
        wanted.append(result[0].transpose(0, 1))
        logarithms.append(of_rows[0])
    expected, lse_expected = torch.cat(wanted), torch.cat(logarithms, 1)
    found, found_lse = out[: sum(q_lengths)].double(), lse[:, : sum(q_lengths)].double()
    assert ((found - expected).norm() / expected.norm()).item() < LIMIT
    there = lse_expected.isfinite()
    assert torch.equal(found_lse.isfinite(), there)
    assert (found_lse - lse_expected)[there].abs().max().item() < 1e-3


def parts(q, k, v, q_lengths, k_lengths):
    return (q[: sum(q_lengths)], q_lengths), (k[: sum(k_lengths)], k_lengths), (v[: sum(k_lengths)], k_lengths)


@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize("case", CASES)
def test_against_float64(case, dim):
    for name in LENGTHS:
        check(name, case, dim)


@pytest.mark.parametrize("dim", [96, 192])
def test_heads_of_other_lengths(dim):
    check("ragged", "causal", dim, torch.float16)


@pytest.mark.parametrize("causal", [False, True])
def test_equal_lengths_are_batches(causal):
    """The same products in the same order: the same bits."""
    generator = torch.Generator("cuda").manual_seed(0)
    q, k, v = (torch.randn((3, 1024, 4, 128), generator=generator, device="cuda").half() for _ in range(3))
    expected = attention_forward(*(each.transpose(1, 2) for each in (q, k, v)), causal=causal).transpose(1, 2)
    found = attention_varlen(*(each.flatten(0, 1) for each in (q, k, v)), sums_of([1024] * 3), causal=causal)
    assert torch.equal(found, expected.flatten(0, 1))


def test_repeated_calls_give_the_same_bits():
    lengths, _ = LENGTHS["many"]
    q, k, v = problem(lengths, lengths, 64)
    sums = sums_of(lengths)
    end = sum(lengths)
    first = attention_varlen(q, k, v, sums, causal=True)[:end]
    assert all(torch.equal(attention_varlen(q, k, v, sums, causal=True)[:end], first) for _ in range(100))


def test_a_graph_serves_other_lengths():
    """The lengths are read on the GPU: nothing of the host's depends on them."""
    q, k, v = problem([300, 212], [300, 212], 128, rest=0)
    sums = sums_of([300, 212])
    attention_varlen(q, k, v, sums, causal=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = attention_varlen(q, k, v, sums, causal=True)
    for lengths in ([300, 212], [0, 512], [512, 0], [65, 447]):
        sums.copy_(sums_of(lengths))
        out.fill_(torch.nan)
        graph.replay()
        wanted = []
        for each in zip(*(tensor.split(lengths) for tensor in (q, k, v)), strict=True):
            wanted.append(exact(*(part.transpose(0, 1)[None] for part in each), causal=True)[0][0].transpose(0, 1))
        expected = torch.cat(wanted)
        assert ((out.double() - expected).norm() / expected.norm()).item() < LIMIT


def test_opcheck():
    q, k, v = problem([70, 30], [70, 30], 64, rest=0)
    sums = sums_of([70, 30])
    text = options_text(Options(causal=True))
    torch.library.opcheck(
        torch.ops.tlx_xdsl.attention_varlen.default, (q, k, v, sums, sums.clone(), None, [], None, text, ""),
        test_utils=("test_schema", "test_autograd_registration", "test_faketensor"),
    )  # fmt: skip
