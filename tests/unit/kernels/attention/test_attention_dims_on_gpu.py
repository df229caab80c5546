"""Attention for heads of many lengths on a Hopper GPU, forward and backward, against float64."""

import pytest

from tlx_xdsl.kernels.attention.backward.call import attention_backward
from tlx_xdsl.kernels.attention.forward import attention_forward

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")

SIZES = [(2, 4, 2, 333, 517), (1, 3, 3, 1000, 300), (1, 2, 2, 1, 200), (3, 40, 40, 640, 640)]
"""Batch, heads of queries and of keys, queries, keys."""

LIMIT = {torch.float16: 1.5e-3, torch.bfloat16: 1e-2}
"""Norm of the error over that of the result."""


def random(seed, *shape, dtype):
    generator = torch.Generator("cuda").manual_seed(seed)
    batch, heads, length, dim = shape
    return torch.randn((batch, length, heads, dim), generator=generator, device="cuda").to(dtype).transpose(1, 2)


def exact(q, k, v, causal):
    q, k, v = (each.double() for each in (q, k, v))
    k, v = (each.repeat_interleave(q.shape[1] // each.shape[1], 1) for each in (k, v))
    scores = q @ k.mT * q.shape[-1] ** -0.5
    if causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device="cuda").tril()
        scores = scores.masked_fill(~seen, float("-inf"))
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


def error(found, expected):
    return ((found.double() - expected).norm() / expected.norm()).item()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["fp16", "bf16"])
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize(
    ("dim", "v_dim"), [(32, 32), (80, 48), (96, 96), (136, 8), (192, 128), (192, 192), (256, 64), (256, 256)]
)
def test_forward(dim, v_dim, causal, dtype):
    for batch, heads, kv_heads, queries, keys in SIZES:
        q = random(0, batch, heads, queries, dim, dtype=dtype)
        k, v = (random(1 + at, batch, kv_heads, keys, each, dtype=dtype) for at, each in enumerate((dim, v_dim)))
        out = torch.full((batch, heads, queries, v_dim), torch.nan, dtype=dtype, device="cuda")
        _, lse = attention_forward(q, k, v, causal=causal, out=out, return_lse=True)
        expected, sums = exact(q, k, v, causal)
        assert error(out, expected) < LIMIT[dtype]
        assert error(lse, sums) < 1e-5


@pytest.mark.parametrize("deterministic", [False, True], ids=["free", "deterministic"])
@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize(
    ("dim", "v_dim"), [(32, 32), (80, 48), (96, 96), (96, 128), (136, 8), (192, 128), (192, 192), (64, 256), (256, 256)]
)
def test_backward(dim, v_dim, causal, deterministic):
    for batch, heads, kv_heads, queries, keys in SIZES:
        q = random(0, batch, heads, queries, dim, dtype=torch.bfloat16)
        k, v = (random(1 + at, batch, kv_heads, keys, d, dtype=torch.bfloat16) for at, d in enumerate((dim, v_dim)))
        dout = random(3, batch, heads, queries, v_dim, dtype=torch.bfloat16)
        out, lse = attention_forward(q, k, v, causal=causal, return_lse=True)
        grads = [torch.full(each.shape, torch.nan, dtype=each.dtype, device="cuda") for each in (q, k, v)]
        names = dict(zip(("dq", "dk", "dv"), grads, strict=True))
        attention_backward(q, k, v, out, lse, dout, causal=causal, deterministic=deterministic, **names)
        inputs = [each.double().requires_grad_() for each in (q, k, v)]
        wanted = torch.autograd.grad(exact(*inputs, causal)[0], inputs, dout.double())
        for found, expected in zip(grads, wanted, strict=True):
            if expected.norm() > 1e-6:
                assert error(found, expected) < 2e-2


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize(("dim", "v_dim"), [(192, 128), (256, 256)])
def test_gradients_of_long_heads_have_the_same_bits_each_time(dim, v_dim, causal):
    q = random(0, 4, 16, 999, dim, dtype=torch.bfloat16)
    k, v = (random(1 + at, 4, 8, 999, d, dtype=torch.bfloat16) for at, d in enumerate((dim, v_dim)))
    dout = random(3, 4, 16, 999, v_dim, dtype=torch.bfloat16)
    out, lse = attention_forward(q, k, v, causal=causal, return_lse=True)
    first = attention_backward(q, k, v, out, lse, dout, causal=causal)
    for _ in range(200):
        again = attention_backward(q, k, v, out, lse, dout, causal=causal)
        assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))
