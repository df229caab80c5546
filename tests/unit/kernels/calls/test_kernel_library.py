"""The kernels to import as operators of torch, on the CPU: kernels run in the interpreter. Skipped without torch."""

import pytest

from tlx_xdsl.kernels.attention.config import AttentionConfig
from tlx_xdsl.kernels.attention.forward import attention_forward
from tlx_xdsl.kernels.gemm.config import TINY, Choice
from tlx_xdsl.kernels.gemm.dense import gemm
from tlx_xdsl.kernels.gemm.epilogues import add_relu
from tlx_xdsl.kernels.operators import as_text, found_at, from_text, place_of
from tlx_xdsl.kernels.rows.cross_entropy import cross_entropy
from tlx_xdsl.kernels.rows.norm import layer_norm, layer_norm_residual, rms_norm_residual
from tlx_xdsl.kernels.rows.rope import rope
from tlx_xdsl.kernels.rows.softmax import softmax
from tlx_xdsl.kernels.rows.swiglu import swiglu


@pytest.mark.parametrize("config", [AttentionConfig(2, 240), TINY, Choice(TINY, 132), None])
def test_configurations_are_written_with_their_values(config):
    assert from_text(as_text(config), AttentionConfig, type(TINY), Choice) == config


def test_functions_are_named_by_their_place():
    assert place_of(add_relu) == "tlx_xdsl.kernels.gemm.epilogues:add_relu"
    assert found_at(place_of(add_relu)) is add_relu

    def local():
        """No other process finds it."""

    with pytest.raises(ValueError, match="expected a function at the top level of a module"):
        place_of(local)


torch = pytest.importorskip("torch")

# Makes the operators.
pytest.importorskip("tlx_xdsl.kernels.library")

OPS = torch.ops.tlx_xdsl
HALF = torch.float16
silu = torch.nn.functional.silu


def random(*shape, dtype=HALF):
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape))).to(dtype)


def close(found, expected):
    return torch.allclose(found.float(), expected.float(), rtol=2e-3, atol=4e-3)


def compiled(fn, **options):
    return torch.compile(fn, fullgraph=True, backend="aot_eager", **options)


def operators():
    x, q = random(3, 40), random(1, 2, 70, 64)
    a, b, bias, c = random(40, 72), random(72, 48), random(48), random(40, 48)
    plain = (None, [], [], "")
    return {
        "softmax": (x,),
        "softmax_backward": (x, x.clone()),
        "cross_entropy": (x, torch.zeros(x.shape[:-1], dtype=torch.int64), -100, 0.1, "mean"),
        "cross_entropy_backward": (
            torch.ones(()),
            x,
            torch.zeros(x.shape[:-1], dtype=torch.int64),
            torch.ones(x.shape[:-1]),
            None,
            -100,
            0.1,
        ),
        "swiglu": (a, a.clone()),
        "swiglu_out": (a, a.clone(), a.clone()),
        "swiglu_backward": (x, x.clone(), x.clone()),
        "rope": (q, torch.ones(70, 32), torch.ones(70, 32), True, False),
        "softmax_out": (x, x.clone()),
        "rms_norm_residual": (*(random(3, 40).requires_grad_() for _ in range(2)), random(40).requires_grad_(), 1e-5),
        "layer_norm_residual": (random(3, 40).requires_grad_(), x, None, random(40).requires_grad_(), 1e-5),
        "norm_backward": (x, random(40), x.clone(), 1e-5, True, True, x.clone()),
        "layer_norm": (x, random(40), None, 1e-5),
        "layer_norm_out": (x, None, random(40), 1e-5, x.clone()),
        "attention_forward": (q, q.clone(), q.clone(), True, None, ""),
        "attention_forward_out": (q, q.clone(), q.clone(), False, 0.1, "", q.clone(), torch.empty(1, 2, 70)),
        "gemm": (a.requires_grad_(), b.requires_grad_(), *plain, None, ""),
        "gemm_out": (a.detach(), b.detach(), None, [], [bias], "bias_relu", None, as_text(TINY), c),
    }


@pytest.mark.parametrize("name", operators())
def test_opcheck(name):
    torch.library.opcheck(getattr(OPS, name).default, operators()[name])


def test_functions_in_a_compiled_graph():
    x = random(3, 40)
    assert close(compiled(lambda x: softmax(x + 1) * 2, dynamic=True)(x), (x + 1).softmax(-1) * 2)
    assert close(compiled(lambda x: layer_norm(x, x[0]))(x), torch.nn.functional.layer_norm(x, (40,), x[0]))
    q = random(1, 2, 70, 64)
    found, lse = compiled(
        lambda q: attention_forward(q, q, q, causal=True, return_lse=True, config=AttentionConfig(2, 240))
    )(q)
    assert close(found, torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True))
    assert lse.dtype == torch.float32


@pytest.mark.parametrize("epilogue", ["bias_relu", add_relu])
def test_gemm_in_a_compiled_graph(epilogue):
    a, b, bias = random(40, 72), random(72, 48), random(48)

    def fn(a, b, bias):
        return gemm(a * 1, b, epilogue=epilogue, columns=(bias,), out_dtype=torch.float32, config=TINY)

    assert close(compiled(fn)(a, b, bias), (a.float() @ b.float() + bias).relu())


def test_out_in_a_compiled_graph():
    a, b, out = random(40, 72), random(72, 48), random(40, 48)

    def fn(a, b, out):
        gemm(a, b, out=out)
        return softmax(a, torch.empty_like(a)).sum() * 0 + out * 2

    assert close(compiled(fn)(a, b, out), a @ b * 2)
    assert close(out, a @ b)


@pytest.mark.parametrize("through", [lambda fn: fn, compiled], ids=["eager", "compiled"])
def test_gradients_of_gemm(through):
    def gradients(fn):
        a, b = random(40, 72).requires_grad_(), random(48, 72).requires_grad_()
        # The gradient of the sum is one number, repeated; that of the transposed product lies by columns.
        fn(a, b.T).sum().backward()
        (fn(a, b.T).T @ random(40, 8)).sum().backward()
        return a.grad, b.grad

    for found, expected in zip(gradients(through(lambda a, b: gemm(a, b))), gradients(torch.mm), strict=True):
        assert close(found, expected)


@pytest.mark.parametrize("through", [lambda fn: fn, compiled], ids=["eager", "compiled"])
def test_gradients_of_softmax_and_cross_entropy(through):
    x, weights = random(5, 3, 40), random(5, 3, 40)
    target = torch.arange(15).reshape(5, 3)
    target[1, 1] = -100

    def of_softmax(fn):
        given = x.clone().requires_grad_()
        (fn(given) * weights).sum().backward()
        return given.grad

    assert close(of_softmax(through(lambda a: softmax(a))), of_softmax(lambda a: a.softmax(-1)))
    for options in ({}, {"label_smoothing": 0.1, "reduction": "sum"}, {"ignore_index": 3, "reduction": "none"}):
        if "ignore_index" in options:
            target[1, 1] = 3

        def of_loss(fn, options=options):
            given = x.float().requires_grad_()
            loss = fn(given, options)
            loss.backward(torch.ones_like(loss) * 2)
            return loss.detach(), given.grad

        def theirs(a, options):
            return torch.nn.functional.cross_entropy(a.flatten(0, 1), target.flatten(), **options)

        found = of_loss(through(lambda a, options: cross_entropy(a, target, **options)))
        for one, other in zip(found, of_loss(theirs), strict=True):
            assert close(one, other.reshape(one.shape))


@pytest.mark.parametrize("through", [lambda fn: fn, compiled], ids=["eager", "compiled"])
def test_gradients_of_swiglu_and_rope(through):
    gate, up, x, angles = random(5, 40), random(5, 3, 40)[:, 0], random(2, 3, 7, 16), random(7, 8).float()

    def gradients(fn, *tensors):
        fresh = [each.clone().requires_grad_() for each in tensors]
        out = fn(*fresh)
        return out, *torch.autograd.grad(out, fresh, out.detach() * 2)

    def turned(a):
        first, second = a.float().chunk(2, -1)
        cos, sin = angles.cos(), angles.sin()
        return torch.cat([first * cos - second * sin, second * cos + first * sin], -1).half()

    pairs = [
        (gradients(through(lambda a, b: swiglu(a, b)), gate, up), gradients(lambda a, b: silu(a) * b, gate, up)),
        (gradients(through(lambda a: rope(a, angles.cos(), angles.sin())), x), gradients(turned, x)),
    ]
    for found, expected in pairs:
        assert all(close(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("through", [lambda fn: fn, compiled], ids=["eager", "compiled"])
@pytest.mark.parametrize("used", ["both", "result", "sum"])
def test_gradients_of_norms_with_a_residual(through, used):
    """A result that is not used has no gradient."""
    functional = torch.nn.functional
    x, residual, weight, bias = random(5, 40), random(5, 3, 40)[:, 0], random(40), random(2, 40)[0]
    factors = {"both": (1, 2), "result": (1, 0), "sum": (0, 2)}[used]

    def of_rms(x, residual, weight, bias):
        return rms_norm_residual(x, residual, weight, eps=1e-5)

    def of_layer(x, residual, weight, bias):
        return layer_norm_residual(x, residual, weight, bias, eps=1e-5)

    def rms(x, residual, weight, bias):
        return functional.rms_norm(x + residual, (40,), weight, 1e-5), x + residual

    def layer(x, residual, weight, bias):
        return functional.layer_norm(x + residual, (40,), weight, bias, 1e-5), x + residual

    def gradients(fn):
        fresh = [each.clone().requires_grad_() for each in (x, residual, weight, bias)]
        y, h = fn(*fresh)
        sum(
            (out * out.detach() * factor).sum() for out, factor in zip((y, h), factors, strict=True) if factor
        ).backward()
        return y, h, *(each.grad for each in fresh)

    for ours, theirs in ((of_rms, rms), (of_layer, layer)):
        for found, expected in zip(gradients(through(ours)), gradients(theirs), strict=True):
            if expected is None:
                assert found is None or not found.any()
            else:
                assert torch.allclose(found.float(), expected.float(), rtol=4e-3, atol=2e-2)


def test_what_has_no_gradient_says_so():
    x = random(8, 16).requires_grad_()
    with pytest.raises(RuntimeError, match="gemm with the epilogue 'relu': there is no gradient"):
        gemm(x, x.T, epilogue="relu").sum().backward()
    with pytest.raises(RuntimeError, match="gemm: argument 'out': expected none where a tensor wants a gradient"):
        gemm(x, x.T, out=random(8, 8))
    with torch.no_grad():
        assert not softmax(x, torch.empty_like(x)).requires_grad


def test_tensors_without_data():
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        a, b = torch.empty(40, 72, dtype=HALF), torch.empty(72, 96, dtype=HALF)
        assert gemm(a, b, epilogue="swiglu", out_dtype="fp32").shape == (40, 48)
        with pytest.raises(RuntimeError, match="gemm: argument 'b': expected as many rows as 'a' has columns"):
            gemm(a, a)


class Tagged(torch.Tensor):
    """A tensor with memory of its own that is more than one."""


def test_subclasses_of_tensors():
    x = random(3, 40)
    assert close(softmax(x.as_subclass(Tagged)), x.softmax(-1))
