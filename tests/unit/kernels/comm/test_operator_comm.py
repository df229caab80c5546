"""Operators of torch for several ranks: shapes and gradients. Skipped without torch, and no kernel runs.

The kernels are replaced: two ranks that hold the same tensors, so that one knows what the other has.
"""

import pytest

from tlx_xdsl.kernels.calls.plans import Prepared
from tlx_xdsl.kernels.comm import collectives, products

torch = pytest.importorskip("torch")

# Makes the operators.
pytest.importorskip("tlx_xdsl.kernels.library")

OPS = torch.ops.tlx_xdsl
WORLD, RANK = 2, 1


class Twins:
    """An engine of two ranks with the same tensors."""

    world_size, rank, name = WORLD, RANK, "twins"


def gather(x):
    return torch.cat([x] * WORLD)


def scatter(x):
    return (WORLD * x).chunk(WORLD)[RANK].clone()


KERNELS = {
    collectives.ALL_REDUCE: lambda x: WORLD * x,
    collectives.ALL_GATHER: gather,
    collectives.REDUCE_SCATTER: scatter,
    products.ALL_GATHER_GEMM: lambda a, b: gather(a) @ b,
    products.GEMM_REDUCE_SCATTER: lambda a, b: scatter(a @ b),
    products.GEMM_ALL_REDUCE: lambda a, b: WORLD * (a @ b),
}


@pytest.fixture
def twins(monkeypatch):
    for function, reference in KERNELS.items():

        def prepare(tensors, options, reference=reference):
            *given, out = tensors
            assert isinstance(options[0], Twins)
            result = reference(*given).contiguous()
            if out is not None:
                result = out.copy_(result)
            return Prepared({str(at): each for at, each in enumerate((*given, result))})

        monkeypatch.setattr(function, "prepare", prepare)
    return Twins()


def random(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(torch.bfloat16)


def close(found, expected):
    assert found.shape == expected.shape
    assert (found.float() - expected.float()).norm() <= 2e-2 * expected.float().norm()


def test_gradients_of_the_pair(twins):
    """Each rank's loss has the weights of its result; gradients are of the sum of both losses."""
    a, b = random(256, 16).requires_grad_(), random(16, 24, seed=1).requires_grad_()
    c = products.gemm_reduce_scatter(a, b, twins)
    close(c, scatter(a @ b))
    weights = random(*c.shape, seed=2)
    (c * weights).sum().backward()
    close(a.grad, gather(weights) @ b.t())
    close(b.grad, a.t() @ gather(weights))

    a, b = random(128, 16).requires_grad_(), random(16, 24, seed=1).requires_grad_()
    c = products.all_gather_gemm(a, b, twins)
    close(c, gather(a) @ b)
    weights = random(*c.shape, seed=2)
    (c * weights).sum().backward()
    close(a.grad, scatter(weights @ b.t()))
    close(b.grad, gather(a).t() @ weights)


def test_gradients_of_gathering(twins):
    x = random(4, 8).requires_grad_()
    collectives.all_gather(x, twins).float().square().sum().backward()
    close(x.grad, scatter(2 * gather(x)))
    x = random(4, 8).requires_grad_()
    collectives.reduce_scatter(x, twins).sum().backward()
    close(x.grad, torch.ones(4, 8))
    with pytest.raises(RuntimeError, match="no gradient"):
        collectives.all_reduce(random(4, 8).requires_grad_(), twins).sum().backward()


def test_shapes_without_data(twins):
    # The engine's name is known from its first call on.
    assert collectives.all_reduce(random(4, 8), twins).shape == (4, 8)
    products.all_gather_gemm(random(128, 16).requires_grad_(), random(16, 24), twins)
    a, b = random(128, 16), random(16, 24)
    for operator in (OPS.all_gather_gemm, OPS.gemm_reduce_scatter, OPS.gemm_all_reduce):
        torch.library.opcheck(operator.default, (a, b, "twins", ""), test_utils=("test_schema", "test_faketensor"))
    for operator in (OPS.all_gather, OPS.reduce_scatter):
        torch.library.opcheck(operator.default, (a, "twins"), test_utils=("test_schema", "test_faketensor"))
    torch.library.opcheck(OPS.all_reduce.default, (a, "twins", ""), test_utils=("test_schema", "test_faketensor"))


def test_graphs_hold_the_operator(twins):
    name = "twins"
    collectives.all_reduce(random(4, 8).requires_grad_(), twins)
    compiled = torch.compile(lambda a, b: OPS.all_gather_gemm(a, b, name, "") * 2, fullgraph=True, backend="aot_eager")
    a, b = random(128, 16), random(16, 24)
    close(compiled(a, b), 2 * (gather(a) @ b))


def test_an_engine_without_a_call_before_is_refused(twins):
    with pytest.raises(RuntimeError, match="an engine that this process has called with, got 'other'"):
        OPS.all_gather(random(4, 8), "other")
