"""Plans of attention: a call that finds its plan gives the driver what the first call with its tensors does."""

from dataclasses import replace

import pytest

from tests.unit.kernels import stand_in_torch
from tests.unit.kernels.stand_in_torch import Dtype, Tensor
from tlx_xdsl.kernels.attention import forward as attention
from tlx_xdsl.kernels.attention.backward import call as attention_backward
from tlx_xdsl.kernels.calls.planned_function import PlannedFunction
from tlx_xdsl.kernels.calls.workspaces import WORKSPACES

pytestmark = pytest.mark.quick


@pytest.fixture
def torch(monkeypatch):
    yield stand_in_torch.install(monkeypatch)
    WORKSPACES.clear()


def launches(torch, function, tensors, options):
    """Return the launches that the driver was given: kernels, grids, streams and parameters."""
    before = len(torch.cuda.launches)
    function(tensors, options)
    return torch.cuda.launches[before:]


def check(torch, plan, make, options):
    """Compare a call on one set of tensors, repeated on another, with the first call on that; return the launches."""
    function = plan()
    launches(torch, function, make(0x10000000), options)
    repeated = launches(torch, function, make(0x90000000), options)
    assert len(function._plans) == 1
    assert repeated == launches(torch, plan(), make(0x90000000), options)
    return repeated


def forward():
    return PlannedFunction("attention_forward", attention._prepare, results=slice(3, 5))


def forward_in_8_bits():
    return PlannedFunction("attention_forward", attention._prepare_fp8, results=slice(3, 5))


def backward():
    return PlannedFunction(
        "attention_backward", attention_backward._prepare, results=slice(7, 10), adapt=attention_backward._as_they_run
    )


FULL = Dtype("torch.float32")


def inputs(at, dim=128, dlse=True):
    """(q, k, v, out, lse, dout, dlse, dq, dk, dv) of 4 heads on 2, at addresses from `at` on."""
    q, k, rows = (2, 4, 300, dim), (2, 2, 200, dim), (2, 4, 300)
    shapes = (q, k, k, q, rows, q, rows, q, k, k)
    made = [
        Tensor(shape, at + 0x1000000 * index, FULL if len(shape) == 3 else "torch.float16")
        for index, shape in enumerate(shapes)
    ]
    if not dlse:
        made[6] = None
    return tuple(made)


@pytest.mark.parametrize("causal", [False, True])
def test_forward(torch, causal):
    assert len(check(torch, forward, lambda at: inputs(at)[:5], (causal, None, None))) == 1


@pytest.mark.parametrize("scaled", [False, True])
def test_forward_in_8_bits(torch, scaled):
    """The second launch reads V transposed, which lies in the workspace, though it is called as V is."""

    def make(at):
        q, k, v, out, lse, *_ = inputs(at)
        heads = tuple(replace(each, dtype=Dtype("torch.float8_e4m3fn")) for each in (q, k, v))
        scales = tuple(Tensor((1,), at + 0x8000000 + 0x1000 * each, FULL) if scaled else None for each in range(3))
        return *heads, replace(out, dtype=Dtype("torch.bfloat16")), lse, *scales

    before, main = check(torch, forward_in_8_bits, make, (False, None, "bf16", None))
    assert before.parameters
    assert main.parameters


@pytest.mark.parametrize("dlse", [False, True])
@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("dim", [64, 128])
def test_backward(torch, dim, deterministic, dlse):
    options = (True, None, deterministic, None)
    assert len(check(torch, backward, lambda at: inputs(at, dim, dlse), options)) == 3


def test_torch_s_switch_has_plans_of_its_own(torch):
    function, options = backward(), (False, None, False, None)
    for torch.deterministic, count in ((False, 1), (True, 2), (False, 2)):
        function(inputs(0x10000000), options)
        assert len(function._plans) == count
