"""Attention's gradients on a Hopper GPU: against float64, bit for bit where that is asked for, in graphs, in torch."""

import pytest

from tlx_xdsl.kernels.attention.backward.call import ATTENTION_BACKWARD, attention_backward
from tlx_xdsl.kernels.attention.forward import ATTENTION, attention_forward
from tlx_xdsl.kernels.calls.workspaces import WORKSPACES

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")
gpu_checks = pytest.importorskip("tests.unit.kernels.gpu_checks")
backward = pytest.importorskip("tests.unit.kernels.attention.backward.gpu_checks_backward")

# Makes the operators.
pytest.importorskip("tlx_xdsl.kernels.library")

DTYPES = ("fp16", "bf16")

SIZES = [
    (1, 1, 1, 128, 128), (2, 3, 3, 512, 512), (2, 4, 2, 333, 517), (1, 6, 3, 1000, 300), (1, 8, 4, 77, 2049),
    (5, 40, 20, 641, 641), (1, 2, 1, 1, 1), (1, 2, 1, 1, 200), (1, 2, 1, 200, 1),
]  # fmt: skip
"""Batch, heads of queries and of keys, queries, keys. As few kernels as will do: groups of one and of two."""

LENGTHS = (1024, 4096, 16384)


def run(launch, label):
    launch()


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sizes(dtype, dim, causal, deterministic):
    for size in SIZES:
        shape = gpu_checks.AttentionShape(*size, dim)
        for check in backward.check_backward(shape, dtype, "cuda", causal=causal, deterministic=deterministic, run=run):
            assert check.ok, str(check)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("dim", "v_dim"), [(64, None), (128, None), (192, 128), (256, None)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_errors_beside_sums_in_f32(dtype, dim, v_dim, causal, length):
    shape = gpu_checks.AttentionShape(1, 2, 1, length, length, dim, v_dim)
    for deterministic in (False, True):
        for check in backward.check_backward(
            shape, dtype, "cuda", causal=causal, deterministic=deterministic, factor=1.1, run=run
        ):
            assert check.ok, str(check)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dim", [64, 128])
def test_deterministic_runs_have_the_same_bits(dim, causal):
    shape = gpu_checks.AttentionShape(4, 16, 8, 1999, 1999, dim)
    check = backward.repeated_backward(shape, "bf16", "cuda", causal=causal)
    assert check.ok, str(check)


def random(*shape, seed=0):
    return gpu_checks.random(shape, torch.bfloat16, "cuda", seed)


def inputs(queries=500, keys=700, dim=128):
    """Q, K, V and dO; memory is (batch, length, heads, dim)."""
    lengths = ((4, queries), (2, keys), (2, keys), (4, queries))
    return [random(2, each, heads, dim, seed=seed).transpose(1, 2) for seed, (heads, each) in enumerate(lengths)]


def formula(q, k, v, causal=True):
    """Compute attention in torch's operations, in float32."""
    q, (k, v) = q.float(), (each.float().repeat_interleave(q.shape[1] // k.shape[1], 1) for each in (k, v))
    scores = q @ k.mT * q.shape[-1] ** -0.5
    if causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool, device="cuda").tril(), -torch.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


def gradients(fn, tensors, dout):
    fresh = [each.detach().requires_grad_() for each in tensors]
    out, lse = fn(*fresh)
    weights = torch.linspace(-1, 1, lse.numel(), device="cuda").view(lse.shape)
    return torch.autograd.grad((out * dout).sum() + (lse * weights).sum(), fresh)


def ours(q, k, v):
    return attention_forward(q, k, v, causal=True, return_lse=True)


@pytest.mark.parametrize("through", ["eager", "compiled", "reduce-overhead"])
def test_gradients_in_torch(through):
    # The workspace grows as torch warms up for a graph, in whose pool of memory nothing may stay.
    WORKSPACES.clear()
    *tensors, dout = inputs()
    fn = ours if through == "eager" else torch.compile(
        ours, fullgraph=True, mode="default" if through == "compiled" else through
    )  # fmt: skip
    expected = gradients(formula, tensors, dout.float())
    for _ in range(4):
        for found, wanted in zip(gradients(fn, tensors, dout), expected, strict=True):
            assert gpu_checks.relative_error(found, wanted) < 1e-2


def test_plans_are_found_again():
    *tensors, dout = inputs()
    gradients(ours, tensors, dout)
    known = len(ATTENTION._plans), len(ATTENTION_BACKWARD._plans)
    for seed in (1, 2):
        others = [each + seed / 8 for each in tensors]
        expected = gradients(formula, others, dout.float())
        for found, wanted in zip(gradients(ours, others, dout), expected, strict=True):
            assert gpu_checks.relative_error(found, wanted) < 1e-2
    assert (len(ATTENTION._plans), len(ATTENTION_BACKWARD._plans)) == known


@pytest.mark.parametrize("deterministic", [False, True])
def test_forward_and_backward_captured_in_a_graph(deterministic):
    """Autograd runs both passes, as in training; the graph is replayed on other data."""
    *tensors, dout = inputs()
    fresh = [each.detach().requires_grad_() for each in tensors]

    def step():
        return torch.autograd.grad(attention_forward(*fresh, causal=True), fresh, dout)

    torch.use_deterministic_algorithms(deterministic)
    try:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = step()
    finally:
        torch.use_deterministic_algorithms(False)
    for seed in (11, 12):
        with torch.no_grad():
            for at, each in enumerate((*fresh, dout)):
                each.copy_(random(*each.shape, seed=seed + 10 * at))
        for each in found:
            each.fill_(torch.nan)
        graph.replay()
        torch.cuda.synchronize()
        copies = [each.detach().clone().requires_grad_() for each in fresh]
        expected = torch.autograd.grad((formula(*copies)[0] * dout.float()).sum(), copies)
        for each, wanted in zip(found, expected, strict=True):
            assert gpu_checks.relative_error(each, wanted) < 1e-2


def test_torch_s_switch():
    """The same bits at each call while it is on, eager and compiled."""
    *tensors, dout = inputs(3000, 3000, 64)
    torch.use_deterministic_algorithms(True)
    try:
        for fn in (ours, torch.compile(ours, fullgraph=True)):
            first, *others = (gradients(fn, tensors, dout) for _ in range(20))
            assert all(torch.equal(a, b) for each in others for a, b in zip(first, each, strict=True))
    finally:
        torch.use_deterministic_algorithms(False)


def test_a_gradient_that_tma_can_t_read_is_copied():
    *tensors, dout = inputs()
    out, lse = ours(*tensors)
    expected = attention_backward(*tensors, out, lse, dout, causal=True, deterministic=True)
    for layout in (
        dout.mT.contiguous().mT,
        torch.cat([dout.new_zeros(1), dout.contiguous().flatten()])[1:].view(dout.shape),
    ):
        found = attention_backward(*tensors, out, lse, layout, causal=True, deterministic=True)
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_opcheck():
    *tensors, dout = inputs(70, 100, 64)
    out, lse = ours(*tensors)
    fresh = [each.detach().requires_grad_() for each in tensors]
    torch.library.opcheck(torch.ops.tlx_xdsl.attention_forward.default, (*fresh, True, None, ""))
    given = (*tensors, out, lse, dout, lse.clone(), True, None, True, "")
    torch.library.opcheck(torch.ops.tlx_xdsl.attention_backward.default, given)
