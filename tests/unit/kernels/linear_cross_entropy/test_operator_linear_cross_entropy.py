"""`linear_cross_entropy` as an operator of torch, on the CPU: kernels run in the interpreter. Skipped without torch."""

import pytest

from tlx_xdsl.kernels.linear_cross_entropy import linear_cross_entropy

torch = pytest.importorskip("torch")

# Makes the operators.
pytest.importorskip("tlx_xdsl.kernels.library")

HALF = torch.bfloat16


def layer(*, wants_gradients=True):
    random = torch.Generator().manual_seed(0)
    x = torch.randn((2, 70, 16), generator=random).to(HALF).requires_grad_(wants_gradients)
    w = (torch.randn((40, 16), generator=random) / 4).to(HALF).requires_grad_(wants_gradients)
    target = torch.randint(0, 40, (2, 70), generator=random)
    target[0, ::7] = -100
    return x, w, target


def torchs(x, w, target, reduction="mean"):
    """The same in float32."""
    logits = x.float() @ w.float().t()
    found = torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction=reduction)
    return found.reshape(target.shape) if reduction == "none" else found


def gradients(loss, x, w, factor, **options):
    return torch.autograd.grad((loss * factor).sum(), (x, w), **options)


def are_close(found, wanted):
    for each, other in zip(found, wanted, strict=True):
        assert each.shape == other.shape
        assert each.dtype == other.dtype
        assert (each - other).float().norm() < 8e-3 * other.float().norm()


@pytest.mark.parametrize("factor", [1.0, 0.3])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_gradients(reduction, factor):
    x, w, target = layer()
    ours = linear_cross_entropy(x, w, target, reduction=reduction, logits_bytes=1)
    theirs = torchs(x, w, target, reduction)
    torch.testing.assert_close(ours, theirs, rtol=5e-3, atol=5e-3)
    wanted = gradients(theirs, x, w, factor)
    # What a later pass reads is as the first pass found it.
    first = gradients(ours, x, w, factor, retain_graph=True)
    second = gradients(ours, x, w, factor)
    are_close(first, wanted)
    for each, other in zip(first, second, strict=True):
        assert torch.equal(each, other)


def test_one_gradient_alone():
    x, w, target = layer()
    wanted = gradients(torchs(x, w, target), x, w, 1)
    for at, (a, b) in enumerate(((x, w.detach()), (x.detach(), w))):
        are_close(torch.autograd.grad(linear_cross_entropy(a, b, target), (x, w)[at]), wanted[at : at + 1])


def test_a_graph_holds_it():
    x, w, target = layer()

    def ours(x, w, target):
        return linear_cross_entropy(x, w, target) * 2

    compiled = torch.compile(ours, fullgraph=True, backend="aot_eager")
    are_close(gradients(compiled(x, w, target), x, w, 0.5), gradients(torchs(x, w, target), x, w, 1))


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_fake_tensors(reduction):
    fake = pytest.importorskip("torch._subclasses.fake_tensor")
    with fake.FakeTensorMode():
        x = torch.empty((2, 70, 16), dtype=HALF, requires_grad=True)
        w = torch.empty((40, 16), dtype=HALF, requires_grad=True)
        loss = linear_cross_entropy(x, w, torch.empty((2, 70), dtype=torch.int64), reduction=reduction)
        assert loss.shape == (() if reduction == "mean" else (2, 70))
        assert loss.dtype == torch.float32
        found = torch.autograd.grad(loss.sum(), (x, w))
        assert [each.shape for each in found] == [x.shape, w.shape]
