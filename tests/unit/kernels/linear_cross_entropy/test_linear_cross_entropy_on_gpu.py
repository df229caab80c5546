"""`linear_cross_entropy` on a Hopper GPU: against float32, beside torch's error, and bit for bit."""

import pytest

from tlx_xdsl.kernels.linear_cross_entropy import linear_cross_entropy

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")

# Makes the operators.
pytest.importorskip("tlx_xdsl.kernels.library")

functional = torch.nn.functional

SHAPES = [(300, 512, 1003), (1000, 768, 50257), (2048, 4096, 32000)]

LIMIT = {"fp32": 4e-3, "bf16": 5e-3}
"""Norm of a gradient's difference over that of the gradient, by the type of sums over chunks. Logits, their gradients
and the result are bf16; so are sums in bf16 of at most 16 chunks."""


def layer(rows, depth, classes):
    random = torch.Generator("cuda").manual_seed(0)
    x = torch.randn((rows, depth), generator=random, device="cuda").bfloat16()
    w = (torch.randn((classes, depth), generator=random, device="cuda") * 2 * depth**-0.5).bfloat16()
    target = torch.randint(0, classes, (rows,), generator=random, device="cuda")
    target[::17] = -100
    return x, w, target


def gradients(fn, x, w, dloss):
    x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
    loss = fn(x, w)
    return loss.detach(), *torch.autograd.grad(loss, (x, w), dloss)


def error(found, wanted):
    return ((found.double() - wanted.double()).norm() / wanted.double().norm()).item()


@pytest.mark.parametrize("sums", LIMIT)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("shape", "smoothing"), zip(SHAPES, (0.1, 0.0, 0.0), strict=True), ids=str)
def test_losses_and_gradients(shape, smoothing, reduction, sums):
    x, w, target = layer(*shape)
    options = {"reduction": reduction, "label_smoothing": smoothing}
    dloss = torch.rand(shape[0] if reduction == "none" else (), device="cuda") + 0.1

    def theirs(x, w):
        return functional.cross_entropy(x.float() @ w.float().t(), target, **options)

    wanted = gradients(theirs, x, w, dloss)
    for logits_bytes in (1, 64 << 20):

        def ours(x, w, logits_bytes=logits_bytes):
            return linear_cross_entropy(x, w, target, logits_bytes=logits_bytes, sum_dtype=sums, **options)

        found, again = gradients(ours, x, w, dloss), gradients(ours, x, w, dloss)
        assert error(found[0], wanted[0]) < 1e-4
        for each, other, repeated in zip(found[1:], wanted[1:], again[1:], strict=True):
            assert error(each, other) < LIMIT[sums]
            assert torch.equal(each, repeated)
    with torch.no_grad():
        assert error(ours(x, w), wanted[0]) < 2e-6


def test_logits_are_not_in_memory():
    x, w, target = layer(8192, 1024, 64000)
    of_logits = 2 * len(x) * len(w)
    for grad, most in ((False, of_logits // 8), (True, of_logits // 2)):
        x.requires_grad_(grad)
        linear_cross_entropy(x, w, target, logits_bytes=64 << 20)
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        linear_cross_entropy(x, w, target, logits_bytes=64 << 20)
        torch.cuda.synchronize()
        assert torch.cuda.max_memory_allocated() - before < most
