"""Attention as operators of torch with gradients, on the CPU: kernels run in the interpreter. Skipped without torch."""

import numpy as np
import pytest

from tests.unit import volume
from tests.unit.kernels import references
from tlx_xdsl.kernels.attention.backward.call import attention_backward
from tlx_xdsl.kernels.attention.backward.config import WideBackwardConfig
from tlx_xdsl.kernels.attention.forward import ATTENTION, attention_forward

torch = pytest.importorskip("torch", reason="torch is not installed")

# Makes the operators.
pytest.importorskip("tlx_xdsl.kernels.library")

OPS = torch.ops.tlx_xdsl
HALF = torch.float16


def random(*shape, seed=0, dtype=HALF):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def problem(heads=1, kv_heads=1, queries=40, keys=50, dim=64, dtype=HALF):
    """Q, K and V of one batch."""
    shapes = (heads, queries), (kv_heads, keys), (kv_heads, keys)
    return [random(1, *each, dim, seed=seed, dtype=dtype) for seed, each in enumerate(shapes)]


def formula(q, k, v, causal=True, scale=None):
    """Attention and the logarithms of the denominators, in torch's operations, in the type of the inputs."""
    group = q.shape[1] // k.shape[1]
    scores = q @ k.repeat_interleave(group, 1).mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -torch.inf)
    return scores.softmax(-1) @ v.repeat_interleave(group, 1), scores.logsumexp(-1)


def ours(q, k, v, causal=True, scale=None):
    return attention_forward(q, k, v, causal=causal, scale=scale, return_lse=True)


def through_the_operator(q, k, v, causal=True, scale=None):
    return OPS.attention_forward(q, k, v, causal, scale, "")


def compiled(fn, **options):
    return torch.compile(fn, fullgraph=True, backend="aot_eager", **options)


def weighted(out, lse):
    """A loss in which every element counts otherwise."""
    weights, more = random(*out.shape, seed=8), random(*lse.shape, seed=9)
    return (out * weights.to(out.dtype)).sum() + (lse * more.to(lse.dtype)).sum()


def gradients(fn, tensors, loss=weighted):
    fresh = [each.detach().clone().requires_grad_() for each in tensors]
    loss(*fn(*fresh)).backward()
    return [each.grad for each in fresh]


def check(found, expected, limit=1e-3):
    for each, wanted in zip(found, expected, strict=True):
        assert references.relative_error(each.double().numpy(), wanted.double().numpy()) < limit


def exact(tensors, loss=weighted, **options):
    return gradients(lambda *each: formula(*each, **options), [each.double() for each in tensors], loss)


def only_lse(out, lse):
    return (lse * random(*lse.shape, seed=9).to(lse.dtype)).sum()


def total(out, lse):
    """The gradient of a sum is one element, repeated."""
    return out.sum() + lse.sum()


def turned(out, lse):
    """A gradient whose elements lie by columns."""
    return (out.mT.contiguous() * random(*out.mT.shape, seed=8).to(out.dtype)).sum()


@pytest.mark.parametrize("loss", [total, turned])
def test_gradients_in_any_layout(loss):
    tensors = problem()
    check(gradients(ours, tensors, loss), exact(tensors, loss))


def test_a_gradient_of_the_logarithms_alone():
    q, k, v = problem()
    dq, dk, dv = gradients(ours, (q, k, v), only_lse)
    check([dq, dk], exact((q, k, v), lambda out, lse: only_lse(out, lse) + 0 * out.sum())[:2])
    assert not dv.any()


def test_configurations_of_long_heads_in_a_compiled_graph():
    q, k, v = problem(queries=5, keys=7, dim=136)
    out, lse = ours(q, k, v)

    def fn(q, k, v, out, lse, dout):
        return attention_backward(q, k, v, out, lse, dout, causal=True, config=WideBackwardConfig(stages=1))

    for found, wanted in zip(compiled(fn)(q, k, v, out, lse, out), fn(q, k, v, out, lse, out), strict=True):
        assert torch.equal(found, wanted)


WAYS = {"eager": ours, "operator": through_the_operator, "compiled": compiled(ours)}


@pytest.mark.parametrize("way", WAYS)
def test_gradients_by_each_way(way):
    tensors = problem()
    check(gradients(WAYS[way], tensors), exact(tensors))


SIZES = [(2, 1, 100, 70, 128, False), (2, 2, 1, 40, 64, True)]
MORE_SIZES = [
    (6, 2, 130, 130, 64, True),
    (1, 1, 1, 1, 64, False),
    (4, 1, 300, 33, 128, True),
    (3, 3, 65, 257, 128, False),
]


@pytest.mark.parametrize(
    ("heads", "kv_heads", "queries", "keys", "dim", "causal"), SIZES + MORE_SIZES if volume.is_full() else SIZES
)
def test_gradients_of_each_size(heads, kv_heads, queries, keys, dim, causal):
    tensors = problem(heads, kv_heads, queries, keys, dim, torch.bfloat16)
    found = gradients(lambda *each: ours(*each, causal=causal, scale=0.1), tensors)
    check(found, exact(tensors, causal=causal, scale=0.1), 8e-3)


def test_the_formula_s_gradients_are_slopes():
    """Central differences of the loss in float64, with the logarithms in it, along random directions."""
    tensors = [each.double() for each in problem(queries=5, keys=7, dim=8)]
    found, step = exact(tensors), 1e-5
    for at, gradient in enumerate(found):
        direction = random(*gradient.shape, seed=at).double()
        ahead, back = (
            weighted(*formula(*tensors[:at], tensors[at] + sign * step * direction, *tensors[at + 1 :])).item()
            for sign in (1, -1)
        )
        assert (ahead - back) / (2 * step) == pytest.approx((gradient * direction).sum().item(), rel=1e-6)


@pytest.mark.parametrize("wanted", range(3) if volume.is_full() else [1])
def test_one_of_the_inputs_wants_a_gradient(wanted):
    tensors = problem()
    expected = exact(tensors)[wanted]
    tensors[wanted].requires_grad_()
    weighted(*ours(*tensors)).backward()
    check([tensors[wanted].grad], [expected])
    assert all(each.grad is None for at, each in enumerate(tensors) if at != wanted)


def test_heads_without_queries():
    q, k, v = (each.requires_grad_() for each in problem(queries=0))
    out, lse = ours(q, k, v)
    (out.sum() + lse.sum()).backward()
    assert q.grad.shape == q.shape
    assert not k.grad.any()
    assert not v.grad.any()


def no_grad_arguments():
    q, k, v = problem()
    return (q, k, v, q.clone(), random(1, 1, 40, dtype=torch.float32), q.clone())


def operators():
    given = no_grad_arguments()
    dlse = random(1, 1, 40, seed=5, dtype=torch.float32)
    return {
        "attention_forward": (*(each.requires_grad_() for each in problem()), True, None, ""),
        "attention_backward": (*given, None, True, None, False, ""),
        "attention_backward_out": (*given, dlse, False, 0.1, True, "", *(torch.empty_like(x) for x in given[:3])),
    }


@pytest.mark.parametrize("name", operators())
def test_opcheck(name):
    torch.library.opcheck(getattr(OPS, name).default, operators()[name])


def test_the_gradient_in_a_graph():
    """`attention_backward` itself, with sizes that are symbols, and written to tensors that are given."""
    given = no_grad_arguments()
    expected = attention_backward(*given, causal=True)

    def fn(*tensors):
        dv = torch.empty_like(tensors[2])
        return attention_backward(*tensors, causal=True, dv=dv), dv

    found, dv = compiled(fn, dynamic=True)(*given)
    assert found[2] is dv
    for each, wanted in zip(found, expected, strict=True):
        check([each], [wanted])


def test_checkpoints():
    from torch.utils.checkpoint import checkpoint

    tensors = problem()
    expected = gradients(ours, tensors)
    for use_reentrant in (False, True):
        found = gradients(lambda *each, by=use_reentrant: checkpoint(ours, *each, use_reentrant=by), tensors)
        check(found, expected)


def test_there_is_no_second_derivative():
    q, k, v = (each.requires_grad_() for each in problem())
    (slope,) = torch.autograd.grad(ours(q, k, v)[0].sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match="attention_backward: there is no second derivative of attention"):
        slope.sum().backward()
    with pytest.raises(RuntimeError, match="argument 'dk': expected none where a tensor wants a gradient"):
        attention_backward(q, k, v, q, torch.zeros(1, 1, 40), q, dk=torch.empty_like(k))
    with pytest.raises(RuntimeError, match="attention_forward: argument 'out': expected none where a tensor wants"):
        attention_forward(q, k, v, out=torch.empty_like(q))


@pytest.mark.parametrize(
    "layout",
    [
        lambda x: x[:, :, :, :1].expand(x.shape),
        lambda x: x.mT.contiguous().mT,
        lambda x: torch.cat([x, x], -1)[..., ::2],
        lambda x: torch.cat([x.new_zeros(1), x.flatten()])[1:].view(x.shape),
    ],
    ids=["repeated", "by columns", "every second", "at an odd address"],
)
def test_any_layout_of_the_results_gradient(layout):
    *given, dout = no_grad_arguments()
    found = attention_backward(*given, layout(dout))
    expected = attention_backward(*given, layout(dout).contiguous().clone())
    for each, wanted in zip(found, expected, strict=True):
        check([each], [wanted])


def test_what_autograd_saves_may_come_back_elsewhere():
    """Hooks that pack what is saved, as those that keep it in the CPU's memory do."""
    tensors = problem()
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x.mT.contiguous() if x.dim() == 4 else x, unpacked):
        found = gradients(lambda q, k, v: ours(q, k.contiguous(), v.contiguous()), tensors)
    check(found, exact(tensors))


def unpacked(tensor):
    return tensor.mT.contiguous() if tensor.dim() == 4 else tensor


def test_under_autocast_types_stay():
    tensors = problem()
    with torch.autocast("cpu", torch.bfloat16):
        assert ours(*tensors)[0].dtype == HALF
        check(gradients(ours, tensors), exact(tensors))
    with pytest.raises(TypeError, match="argument 'q': expected elements of type fp16 or bf16"):
        attention_forward(*(each.float() for each in tensors))


def test_a_recorded_call_is_kept_by_its_key():
    inputs = [each.requires_grad_() for each in problem()]
    ATTENTION.forget()
    first = ours(*inputs)[0]
    known = len(ATTENTION._plans)
    assert known
    assert torch.equal(ours(*inputs)[0], first)
    assert len(ATTENTION._plans) == known
    with torch.no_grad():
        assert not ours(*inputs)[0].requires_grad


class Tagged(torch.Tensor):
    """A tensor that is more than one."""


def test_subclasses_of_tensors_go_to_the_operator():
    tensors = problem()
    found = gradients(lambda q, k, v: ours(q.as_subclass(Tagged), k, v), tensors)
    check([each.as_subclass(torch.Tensor) for each in found], exact(tensors))


def test_arrays_know_nothing_of_torch():
    arrays = [each.numpy() for each in no_grad_arguments()]
    found = attention_backward(*arrays, dlse=np.zeros((1, 1, 40), np.float32))
    assert all(isinstance(each, np.ndarray) for each in found)


def test_tensors_that_a_transformation_of_torch_s_does_not_see():
    """The tensors want gradients in a program in which `torch.func.grad` is of another tensor."""
    q, k, v = inputs = [each.requires_grad_() for each in problem(queries=16, keys=16)]
    expected = attention_forward(q, k, v).float().sum()
    slope, value = torch.func.grad_and_value(lambda x: (attention_forward(q, k, v).float() * x).sum())(
        torch.tensor(1.0)
    )
    assert slope.item() == value.item() == expected.item()
    for found, wanted in zip(torch.autograd.grad(value, inputs), torch.autograd.grad(expected, inputs), strict=True):
        assert references.relative_error(found.double().numpy(), wanted.double().numpy()) < 1e-3
