"""`rms_norm_residual` and `layer_norm_residual` on a GPU: the norms' bits, gradients against float64, and in graphs."""

import pytest

from tests.unit import volume
from tlx_xdsl.kernels.rows.norm import layer_norm, layer_norm_residual, rms_norm, rms_norm_residual
from tlx_xdsl.kernels.rows.norms import norm_backward

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")

# Makes the operators; without torch there is nothing to import.
pytest.importorskip("tlx_xdsl.kernels.library")
norms_on_gpu = pytest.importorskip("tests.unit.kernels.rows.test_norms_on_gpu")
LIMIT, error, formula, random = norms_on_gpu.LIMIT, norms_on_gpu.error, norms_on_gpu.formula, norms_on_gpu.random

SHAPES = [(7, 100), (1, 8), (4096, 1024), (3, 5, 2048), (999, 8192), (130, 12000), (40, 131072), (5, 300000)]


def fused(x, residual, weight, centred):
    return (layer_norm_residual if centred else rms_norm_residual)(x, residual, weight, eps=1e-5)


@pytest.mark.parametrize("dtype", LIMIT, ids=str)
@pytest.mark.parametrize("centred", [False, True], ids=["rms", "layer"])
def test_results_and_gradients(centred, dtype):
    for shape in SHAPES:
        x, residual, dout, dh = (random(*shape, dtype=dtype, seed=seed) for seed in range(4))
        weight = random(shape[-1], dtype=dtype, seed=4)
        fresh = [each.requires_grad_() for each in (x, residual, weight)]
        y, h = fused(*fresh, centred)
        assert torch.equal(h, x + residual)
        norm = layer_norm if centred else rms_norm
        with torch.no_grad():
            assert torch.equal(y, norm(h, weight, eps=1e-5))
        found = torch.autograd.grad((y, h), fresh, (dout, dh))
        doubles = [h.detach().double().requires_grad_(), weight.detach().double().requires_grad_()]
        exact = formula(doubles[0], doubles[1], None, centred)
        of_h, of_weight = torch.autograd.grad(exact, doubles, dout.double())
        for each, expected in zip(found, (of_h + dh.double(), of_h + dh.double(), of_weight), strict=True):
            assert error(each, expected) < LIMIT[dtype]


@pytest.mark.parametrize("columns", [1024, 8192, 20000, 300000])
def test_bits_are_the_same_each_time(columns):
    rows = 999 if columns < 100000 else 40
    x, residual, dout, dh = (random(rows, columns, dtype=torch.bfloat16, seed=seed) for seed in range(4))
    weight = random(columns, dtype=torch.bfloat16, seed=4)

    def run():
        y, h = fused(x, residual, weight, True)
        return y, h, *norm_backward(h, weight, dout, eps=1e-5, centred=True, with_bias=True, dh=dh)

    first = run()
    for _ in range(200 if volume.is_full() else 20):
        assert all(torch.equal(one, other) for one, other in zip(first, run(), strict=True))


@pytest.mark.parametrize("centred", [False, True], ids=["rms", "layer"])
def test_in_torch(centred):
    x, residual, dout = (random(64, 256, dtype=torch.bfloat16, seed=seed) for seed in range(3))
    weight = random(256, dtype=torch.bfloat16, seed=3)
    fresh = [each.requires_grad_() for each in (x, residual, weight)]

    def both(x, residual, weight):
        y, h = fused(x, residual, weight, centred)
        return y + h

    expected = torch.autograd.grad(both(*fresh), fresh, dout)
    found = torch.autograd.grad(torch.compile(both, fullgraph=True)(*fresh), fresh, dout)
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
    name, factors = ("layer_norm_residual", (weight, None)) if centred else ("rms_norm_residual", (weight,))
    torch.library.opcheck(getattr(torch.ops.tlx_xdsl, name).default, (x, residual, *factors, 1e-5))


def test_captured():
    x, residual, weight = (random(64, 256, dtype=torch.bfloat16, seed=seed) for seed in range(3))
    expected = fused(x, residual, weight[0], False)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = fused(x, residual, weight[0], False)
    graph.replay()
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
