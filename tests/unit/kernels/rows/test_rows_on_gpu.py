"""`softmax`, `cross_entropy`, `swiglu` and `rope` on a GPU, with their gradients: against float64, and bit for bit."""

import pytest

from tlx_xdsl.kernels.rows.cross_entropy import cross_entropy
from tlx_xdsl.kernels.rows.rope import rope
from tlx_xdsl.kernels.rows.softmax import softmax, softmax_backward
from tlx_xdsl.kernels.rows.swiglu import swiglu

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")

# Makes the operators.
pytest.importorskip("tlx_xdsl.kernels.library")

functional = torch.nn.functional

SLACK = {torch.float32: 1.5, torch.float16: 1.02, torch.bfloat16: 1.02}
"""Of torch's error: exponentials in f32 are those of the hardware (PTX ex2.approx), torch's are closer."""

SHAPES = [(7, 100), (4096, 1024), (3, 5, 2048), (999, 8192), (130, 12000), (40, 40001), (10, 131072)]


def random(*shape, dtype, seed=0):
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(shape, generator=generator, device="cuda").to(dtype)


def error(found, expected):
    return ((found.double() - expected.double()).norm() / expected.double().norm().clamp_min(1e-30)).item()


def gradients(fn, tensors, dout=None):
    fresh = [each.detach().requires_grad_() for each in tensors]
    out = fn(*fresh)
    return out, *torch.autograd.grad(out, fresh, dout)


def are_close(ours, theirs, tensors, dout, slack):
    doubles = [each.double() for each in tensors]
    exact = gradients(theirs, doubles, None if dout is None else dout.double())
    found, torchs = gradients(ours, tensors, dout), gradients(theirs, tensors, dout)
    for one, other, wanted in zip(found, torchs, exact, strict=True):
        assert error(one, wanted) <= max(slack * error(other, wanted), 2e-7)


@pytest.mark.parametrize("dtype", SLACK, ids=str)
def test_softmax(dtype):
    for shape in SHAPES:
        x, dout = random(*shape, dtype=dtype), random(*shape, dtype=dtype, seed=1)
        are_close(softmax, lambda a: a.softmax(-1), [x], dout, SLACK[dtype])


@pytest.mark.parametrize("dtype", SLACK, ids=str)
@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}, {"ignore_index": 3, "reduction": "sum"}], ids=str)
def test_cross_entropy(options, dtype):
    for shape in SHAPES:
        x = 3 * random(*shape, dtype=dtype)
        target = torch.randint(0, shape[-1], shape[:-1], device="cuda")
        target.view(-1)[0] = options.get("ignore_index", -100)

        def theirs(a, target=target):
            return functional.cross_entropy(a.flatten(0, -2), target.flatten(), **options)

        are_close(lambda a, target=target: cross_entropy(a, target, **options), theirs, [x], None, SLACK[dtype])


@pytest.mark.parametrize("dtype", SLACK, ids=str)
def test_swiglu(dtype):
    for shape in SHAPES:
        gate, up, dout = (random(*shape, dtype=dtype, seed=seed) for seed in range(3))
        are_close(swiglu, lambda a, b: functional.silu(a) * b, [gate, up], dout, SLACK[dtype])


@pytest.mark.parametrize("dtype", SLACK, ids=str)
@pytest.mark.parametrize("dim", [6, 64, 128, 192])
def test_rope(dim, dtype):
    angles = random(777, dim // 2, dtype=torch.float32)
    cos, sin = angles.cos(), angles.sin()

    def theirs(a):
        first, second = a.chunk(2, -1)
        c, s = cos.to(a.dtype), sin.to(a.dtype)
        return torch.cat([first * c - second * s, second * c + first * s], -1)

    x = random(2, 777, 4, dim, dtype=dtype).transpose(1, 2)
    are_close(lambda a: rope(a, cos, sin), theirs, [x], random(2, 4, 777, dim, dtype=dtype, seed=1), SLACK[dtype])
    pairs = x.double().unflatten(-1, (-1, 2))
    first, second = pairs[..., 0], pairs[..., 1]
    expected = torch.stack([first * cos - second * sin, second * cos + first * sin], -1).flatten(-2)
    assert error(rope(x, cos, sin, interleaved=True), expected) < 4e-3


def test_bits_are_the_same_each_time():
    x, dout = (random(999, 32000, dtype=torch.bfloat16, seed=seed) for seed in range(2))
    target = torch.randint(0, 32000, (999,), device="cuda")
    first = softmax(x), softmax_backward(x, dout), *gradients(lambda a: cross_entropy(a, target), [x])
    for _ in range(200):
        again = softmax(x), softmax_backward(x, dout), *gradients(lambda a: cross_entropy(a, target), [x])
        assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))


def test_in_torch():
    x, up = (random(64, 256, dtype=torch.bfloat16, seed=seed) for seed in range(2))
    target = torch.randint(0, 256, (64,), device="cuda")
    angles = random(64, 128, dtype=torch.float32)
    cos, sin = angles.cos(), angles.sin()

    def loss(a, b):
        return cross_entropy(swiglu(rope(a, cos, sin), softmax(b)), target, label_smoothing=0.1)

    expected = gradients(loss, [x, up])
    found = gradients(torch.compile(loss, fullgraph=True), [x, up])
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
    fresh = [each.detach().requires_grad_() for each in (x, up)]
    operators = torch.ops.tlx_xdsl
    torch.library.opcheck(operators.softmax.default, (fresh[0],))
    torch.library.opcheck(operators.swiglu.default, tuple(fresh))
    torch.library.opcheck(operators.rope.default, (fresh[0], cos, sin, False, False))
    torch.library.opcheck(operators.cross_entropy.default, (fresh[0], target, -100, 0.1, "mean"))


def test_captured():
    x, target = random(64, 4096, dtype=torch.bfloat16), torch.randint(0, 4096, (64,), device="cuda")
    expected = cross_entropy(x, target)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = cross_entropy(x, target)
    found.zero_()
    graph.replay()
    assert torch.equal(found, expected)
