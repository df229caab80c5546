"""`layer_norm` and `rms_norm` on a GPU, with their gradients in torch: against float64, and bit for bit."""

import pytest

from tlx_xdsl.kernels.rows.norm import layer_norm, rms_norm
from tlx_xdsl.kernels.rows.norms import norm_backward

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")

# Makes the operators.
pytest.importorskip("tlx_xdsl.kernels.library")

LIMIT = {torch.float32: 2e-6, torch.float16: 1.2e-3, torch.bfloat16: 9e-3}
"""Norm of the error over that of the result."""

SHAPES = [
    (7, 100),
    (1, 1),
    (4096, 1024),
    (3, 5, 2048),
    (1000, 4096),
    (999, 8192),
    (130, 12000),
    (37, 40008),
    (40, 131072),
]


def random(*shape, dtype, seed=0):
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(shape, generator=generator, device="cuda").to(dtype)


def error(found, expected):
    return ((found.double() - expected.double()).norm() / expected.double().norm().clamp_min(1e-30)).item()


def formula(x, weight, bias, centred):
    if centred:
        return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, 1e-5)
    return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, 1e-5)


def ours(x, weight, bias, centred):
    return layer_norm(x, weight, bias, eps=1e-5) if centred else rms_norm(x, weight, eps=1e-5)


def gradients(fn, tensors, dout, centred):
    fresh = [each.detach().requires_grad_() for each in tensors[: 2 + centred]]
    out = fn(*fresh, *([] if centred else [None]), centred)
    return out, torch.autograd.grad(out, fresh, dout)


@pytest.mark.parametrize("dtype", LIMIT, ids=str)
@pytest.mark.parametrize("centred", [False, True], ids=["rms", "layer"])
def test_errors_are_those_of_torch(centred, dtype):
    for shape in SHAPES:
        x, dout = random(*shape, dtype=dtype), random(*shape, dtype=dtype, seed=3)
        weight, bias = (random(shape[-1], dtype=dtype, seed=seed) for seed in (1, 2))
        out, found = gradients(ours, (x, weight, bias), dout, centred)
        doubles = [each.double() for each in (x, weight, bias)]
        exact, wanted = gradients(formula, doubles, dout.double(), centred)
        theirs, _ = gradients(formula, (x, weight, bias), dout, centred)
        assert error(out, exact) <= max(1.02 * error(theirs, exact), 1e-7)
        for each, expected in zip(found, wanted, strict=True):
            if shape[-1] > 1 or expected.abs().max() > 1e-3:
                assert error(each, expected) < LIMIT[dtype]


@pytest.mark.parametrize("columns", [1024, 8192, 20000, 131072])
def test_bits_are_the_same_each_time(columns):
    x, dout, weight = (random(min(999, (1 << 24) // columns), columns, dtype=torch.bfloat16, seed=s) for s in range(3))

    def run():
        gradients = norm_backward(x, weight[0], dout, eps=1e-5, centred=True, with_bias=True)
        return layer_norm(x, weight[0], weight[1]), *gradients

    first = run()
    for _ in range(200):
        assert all(torch.equal(one, other) for one, other in zip(first, run(), strict=True))


def test_in_torch():
    x, weight, bias = (
        random(64, 256, dtype=torch.bfloat16),
        *(random(256, dtype=torch.bfloat16, seed=s) for s in (1, 2)),
    )
    dout = random(64, 256, dtype=torch.bfloat16, seed=3)
    for centred in (False, True):
        _, expected = gradients(ours, (x, weight, bias), dout, centred)
        _, found = gradients(torch.compile(ours, fullgraph=True), (x, weight, bias), dout, centred)
        assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
    operators = torch.ops.tlx_xdsl
    fresh = [each.detach().requires_grad_() for each in (x, weight, bias)]
    torch.library.opcheck(operators.layer_norm.default, (*fresh, 1e-5))
    torch.library.opcheck(operators.rms_norm.default, (*fresh[:2], 1e-5))
    torch.library.opcheck(operators.norm_backward.default, (x, weight, dout, 1e-5, True, True))


def test_captured():
    x, weight, dout = (
        random(64, 256, dtype=torch.bfloat16),
        random(256, dtype=torch.bfloat16),
        random(64, 256, dtype=torch.bfloat16),
    )
    expected = norm_backward(x, weight, dout, eps=1e-5, centred=False)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = norm_backward(x, weight, dout, eps=1e-5, centred=False)
    graph.replay()
    assert torch.equal(found[0], expected[0])
    assert torch.equal(found[1], expected[1])
