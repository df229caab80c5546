"""Repeated calls of the kernels to import on a Hopper GPU: plans, graphs, streams, threads, operators of torch."""

import threading

import pytest

from tlx_xdsl.kernels.attention.forward import attention_forward
from tlx_xdsl.kernels.gemm.dense import GEMM, gemm
from tlx_xdsl.kernels.rows.norm import layer_norm
from tlx_xdsl.kernels.rows.softmax import softmax

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

# Makes the operators.
pytest.importorskip("tlx_xdsl.kernels.library")

OPS = torch.ops.tlx_xdsl

PLAIN, SPLIT = (1000, 1304, 712), (512, 512, 16384)
"""A product of whole tiles, and one whose K is split among programs, which has a workspace and a second kernel."""


def random(*shape, seed=0):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return torch.randn(shape, device="cuda", generator=generator).half()


def factors(shape, seed=0):
    m, n, k = shape
    return random(m, k, seed=2 * seed), random(k, n, seed=2 * seed + 1)


def error(found, expected):
    return ((found.float() - expected.float()).norm() / expected.float().norm()).item()


def product(a, b):
    return a.float() @ b.float()


@pytest.mark.parametrize("shape", [PLAIN, SPLIT])
def test_repeated_calls(shape):
    """Other tensors each time, some of them the same, results given and not; nothing is planned twice."""
    a, b = factors(shape)
    gemm(a, b)
    known = len(GEMM._plans)
    for seed in range(1, 6):
        c, d = factors(shape, seed)
        for left, right in ((a, b), (c, b), (c, d), (a, b)):
            assert error(gemm(left, right), product(left, right)) < 1e-3
    assert len(GEMM._plans) == known
    square = random(512, 512)
    assert error(gemm(square, square, out=torch.empty_like(square)), product(square, square)) < 1e-3


def test_the_other_functions():
    for seed in range(3):
        x, weight = random(300, 1000, seed=seed), random(1000, seed=seed + 9)
        assert error(softmax(x), x.float().softmax(-1)) < 1e-3
        expected = torch.nn.functional.layer_norm(x.float(), (1000,), weight.float())
        assert error(layer_norm(x, weight), expected) < 1e-3
        q = random(2, 4, 300, 64, seed=seed)
        expected = torch.nn.functional.scaled_dot_product_attention(*[q.float()] * 3, is_causal=True)
        assert error(attention_forward(q, q, q, causal=True), expected) < 2e-3


@pytest.mark.parametrize("shape", [PLAIN, SPLIT])
def test_captured_in_a_graph(shape):
    a, b = factors(shape)
    out = gemm(a, b)
    softmax(out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gemm(a, b, out=out)
        rows = softmax(gemm(a, b))
    for seed in (1, 2):
        c, d = factors(shape, seed)
        a.copy_(c)
        b.copy_(d)
        # What a call outside does with the workspace of its stream does not concern the graph.
        gemm(d.T.contiguous(), c.T.contiguous())
        out.fill_(torch.nan)
        graph.replay()
        torch.cuda.synchronize()
        assert error(out, product(c, d)) < 1e-3
        assert error(rows, product(c, d).half().float().softmax(-1)) < 1e-2


def test_a_kernel_that_is_not_loaded_can_t_be_captured():
    x = random(8, 24)
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="launched for the first time"), torch.cuda.graph(graph):
        layer_norm(x)
    torch.cuda.synchronize()


@pytest.mark.parametrize("shape", [PLAIN, SPLIT])
def test_streams_at_once(shape):
    streams = [torch.cuda.Stream() for _ in range(3)]
    given = [factors(shape, seed) for seed in range(3)]
    expected = [product(*each) for each in given]
    found = [[] for _ in streams]
    torch.cuda.synchronize()
    for _ in range(30):
        for stream, (a, b), results in zip(streams, given, found, strict=True):
            with torch.cuda.stream(stream):
                results.append(gemm(a, b))
    torch.cuda.synchronize()
    for results, wanted in zip(found, expected, strict=True):
        assert error(results[0], wanted) < 1e-3
        assert all(torch.equal(results[0], each) for each in results)


@pytest.mark.parametrize("shape", [PLAIN, SPLIT])
def test_threads_at_once(shape):
    """All on the default stream, each in a thread that has not called CUDA before."""
    given = [factors(shape, seed) for seed in range(4)]
    found = {}

    def work(at):
        found[at] = [gemm(*given[at]) for _ in range(50)]

    threads = [threading.Thread(target=work, args=(at,)) for at in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    torch.cuda.synchronize()
    for at, (a, b) in enumerate(given):
        assert error(found[at][0], product(a, b)) < 1e-3
        assert all(torch.equal(found[at][0], each) for each in found[at])


def operators():
    x, q = random(3, 40), random(1, 2, 70, 64)
    (a, b), bias = factors((40, 48, 72)), random(48)
    return {
        "softmax": (x,),
        "softmax_out": (x, x.clone()),
        "layer_norm": (x, random(40), None, 1e-5),
        "layer_norm_out": (x, None, random(40), 1e-5, x.clone()),
        "attention_forward": (q, q.clone(), q.clone(), True, None, ""),
        "gemm": (a.requires_grad_(), b.requires_grad_(), None, [], [], "", None, ""),
        "gemm_out": (a.detach(), b.detach(), None, [], [bias], "bias_relu", None, "", random(40, 48)),
    }


def test_opcheck():
    for name, arguments in operators().items():
        torch.library.opcheck(getattr(OPS, name).default, arguments)


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compiled(mode):
    """Compile a layer by torch's own compiler, with its CUDA graphs as well."""
    (a, b), bias = factors(SPLIT), random(SPLIT[1])

    @torch.compile(fullgraph=True, mode=mode)
    def layer(a, b, bias):
        return softmax(gemm(a * 2, b, epilogue="bias_relu", columns=(bias,)))

    expected = (product(a * 2, b) + bias.float()).relu().half().float().softmax(-1)
    for _ in range(4):
        assert error(layer(a, b, bias), expected) < 1e-2


def test_gradients():
    def gradients(fn):
        a, b = (each.requires_grad_() for each in factors((512, 1024, 256)))
        fn(a, b).float().square().sum().backward()
        return a.grad, b.grad

    expected = gradients(torch.mm)
    for fn in (gemm, torch.compile(lambda a, b: gemm(a, b), fullgraph=True)):
        for found, wanted in zip(gradients(fn), expected, strict=True):
            assert error(found, wanted) < 2e-3
