"""The plans that a function used last, which are found without a key, on stand-ins for torch and the CUDA driver."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.kernels import stand_in_torch
from tests.unit.kernels.calls.planned import PLAIN, addresses, expected, prepare, tensors
from tests.unit.kernels.stand_in_torch import Device, Tensor
from tlx_xdsl.kernels.calls.planned_function import PlannedFunction
from tlx_xdsl.kernels.calls.plans import Prepared
from tlx_xdsl.kernels.calls.recent import MAX_RECENT
from tlx_xdsl.kernels.calls.workspaces import WORKSPACES
from tlx_xdsl.kernels.rows.softmax import SOFTMAX, softmax


@pytest.fixture
def torch(monkeypatch):
    yield stand_in_torch.install(monkeypatch)
    WORKSPACES.clear()


@pytest.fixture
def function(torch):
    return PlannedFunction("f", prepare, results=2)


def without_keys(function, monkeypatch):
    """Have the key of a call be an error from now on."""

    def run(*call):
        raise AssertionError("a plan that was used last was not found")

    monkeypatch.setattr(function, "_run", run)


def test_plans_that_were_used_last_are_found_without_a_key(function, torch, monkeypatch):
    calls = [(tensors(shape=(64 * rows, 128)), (1, scratch)) for rows in (1, 2) for scratch in (0, 1)]
    for given, options in calls * 2:
        function(given, options)
    without_keys(function, monkeypatch)
    torch.cuda.launches.clear()
    for at in (5, 6):
        for given, options in calls:
            moved = tuple(replace(each, address=each.address + 0x10000 * at) for each in given)
            assert function(moved, options) is moved[2]
            assert addresses(torch.cuda.launches[-1]) == expected(at + 1)
    assert len(torch.cuda.launches) == 8


@pytest.mark.parametrize(
    "other",
    [
        {"shape": (64, 256)},
        {"dtype": "torch.bfloat16"},
        {"device": Device(1)},
        {"strides": (256, 1)},
        {"address": 0x10008},
    ],
)
@pytest.mark.parametrize("place", [0, 2])
def test_another_call_is_none_of_the_last_plan(function, torch, other, place):
    """The call is another one for `TensorGuards`, or by its alignment."""
    given = list(tensors())
    for _ in range(3):
        function(tensors(), PLAIN)
    given[place] = replace(given[place], **other)
    for _ in range(3):
        function(tuple(given), PLAIN)
    assert len(function._plans) == len(function._recent) == 2


def test_a_tensor_that_is_or_is_not_there_makes_another_call(function, torch):
    given = b, a, out = tensors()
    for _ in range(3):
        function(given, PLAIN)
        assert function((b, a, None), PLAIN) is not out
    assert len(function._plans) == 2


def test_a_function_may_have_more_tensors_or_fewer(torch):
    """The numbers of tensors differ as those of `gemm`, whose epilogues have some."""

    def with_more(tensors, options):
        prepared = prepare(tensors[:3], options)
        named = dict(prepared.tensors)
        workspace = named.pop("workspace")
        named |= {str(at): each for at, each in enumerate(tensors[3:])}
        return Prepared({**named, "workspace": workspace}, prepared.launches)

    function = PlannedFunction("f", with_more, results=2)
    longer = (*tensors(), Tensor(address=0x5000))
    for _ in range(3):
        for given in (tensors(), longer, tensors(), (*tensors(), None)):
            assert function(given, PLAIN) is given[2]
    assert len(function._plans) == 3


def test_options_that_have_no_answer_are_other_ones(function, torch):
    for _ in range(3):
        function(tensors(), PLAIN)
    with pytest.raises(TypeError):
        function(tensors(), (np.ones(2), np.ones(2)))


def test_a_tensor_that_comes_twice_is_found_too(function, torch, monkeypatch):
    one, out, other = tensors()
    for given in ((one, other, out), (one, one, out)) * 2:
        function(given, PLAIN)
    without_keys(function, monkeypatch)
    for given in ((one, other, out), (one, one, out), (other, other, out)):
        assert function(given, PLAIN) is out


def test_another_state_of_torch_s_is_found_too(function, torch, monkeypatch):
    for torch.state in ("", "", "autocast", "autocast"):
        function(tensors(), PLAIN)
    without_keys(function, monkeypatch)
    function(tensors(), PLAIN)


def test_few_plans_are_asked_and_the_first_is_the_last_one_that_was_not(function, torch):
    calls = [tensors(shape=(64 * rows, 128)) for rows in range(1, MAX_RECENT + 2)]
    for given in calls * 2:
        function(given, PLAIN)
    assert len(function._recent) == MAX_RECENT
    torch.asked = 0
    function(calls[-1], PLAIN)
    assert torch.asked == 1
    function(calls[0], PLAIN)
    assert torch.asked == 1 + MAX_RECENT
    function(calls[0], PLAIN)
    assert torch.asked == 2 + MAX_RECENT
    assert len(function._questions) == MAX_RECENT + 1, "what was made for a plan is used again"
    function.forget()
    assert not function._recent


def test_arrays_are_asked_for_nothing_after_tensors(torch):
    x = Tensor((2, 4), 0x1000, "torch.float32")
    for _ in range(3):
        SOFTMAX((x, x))
    assert (softmax(np.zeros((2, 4), np.float32)) == 0.25).all()
    SOFTMAX.forget()


def test_a_torch_without_tensor_guards_will_do(function, torch, monkeypatch):
    monkeypatch.delattr(sys.modules["torch"]._C._dynamo.guards, "TensorGuards")
    for at in (1, 2, 3):
        function(tensors(at), PLAIN)
        assert addresses(torch.cuda.launches[-1]) == expected(at)
    assert not function._recent
