"""Windows, caps, sinks and functions of the scores on a Hopper GPU, against float64."""

import pytest

import tlx_xdsl
import tlx_xdsl.language as tl
from tlx_xdsl.kernels.attention.forward import attention_forward

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")

SIZES = [(2, 4, 2, 333, 517), (1, 2, 2, 1000, 300), (2, 2, 1, 2048, 2048)]
"""Batch, heads of queries and of keys, queries, keys."""

LIMIT = 1e-2
"""Norm of the error over that of the result, in bf16."""


@tlx_xdsl.jit
def alibi(score, batch, head, query, key, slopes):
    """A bias for the distance."""
    return score + tl.load(slopes + head) * (key - query)


def exact(q, k, v, causal=False, window=(None, None), align="top-left", softcap=None, sinks=None, slopes=None):
    q, k, v = (each.double() for each in (q, k, v))
    k, v = (each.repeat_interleave(q.shape[1] // each.shape[1], 1) for each in (k, v))
    scores = q @ k.mT * q.shape[-1] ** -0.5
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    queries, keys = (torch.arange(extent, device="cuda") for extent in scores.shape[-2:])
    distance = keys[None, :] - queries[:, None]
    if slopes is not None:
        scores = scores + slopes.double()[:, None, None] * distance
    if align == "bottom-right":
        distance = distance - (len(keys) - len(queries))
    left, right = window
    right = 0 if causal else right
    hidden = torch.zeros_like(distance, dtype=torch.bool)
    if left is not None:
        hidden |= distance < -left
    if right is not None:
        hidden |= distance > right
    scores = scores.masked_fill(hidden, float("-inf"))
    sums = scores.logsumexp(-1)
    if sinks is not None:
        sums = torch.logaddexp(sums, sinks.double()[:, None].expand(sums.shape))
    weights = (scores - sums[..., None]).exp().nan_to_num(0.0)
    return weights @ v, sums


CASES = {
    "window": {"window": (100, 0), "causal": True},
    "both sides": {"window": (70, 200)},
    "bottom-right": {"causal": True, "align": "bottom-right"},
    "capped": {"softcap": 2.0, "causal": True},
    "sinks": {"sinks": True},
    "all": {"window": (300, 20), "softcap": 3.0, "sinks": True},
    "bias": {"slopes": True, "causal": True},
}


@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize("case", CASES)
def test_options(case, dim):
    for batch, heads, kv_heads, queries, keys in SIZES:
        generator = torch.Generator("cuda").manual_seed(0)
        shapes = [(batch, heads, queries, dim), *[(batch, kv_heads, keys, dim)] * 2]
        q, k, v = (torch.randn(each, generator=generator, device="cuda").bfloat16() for each in shapes)
        options = dict(CASES[case])
        by_head = torch.linspace(-1, 1, heads, device="cuda")
        options |= {name: by_head for name in ("sinks", "slopes") if name in options}
        expected, sums = exact(q, k, v, **options)
        if (slopes := options.pop("slopes", None)) is not None:
            options |= {"score_mod": alibi, "score_args": (slopes,)}
        out = torch.full_like(q, torch.nan)
        _, lse = attention_forward(q, k, v, out=out, return_lse=True, **options)
        assert ((out.double() - expected).norm() / expected.norm()).item() < LIMIT
        there = sums.isfinite()
        assert torch.equal(lse.isfinite(), there)
        assert (lse.double() - sums)[there].abs().max().item() < 1e-3
