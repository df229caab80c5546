"""Calls that are the same to torch's `TensorGuards`: plans used last rely on it. Skipped without torch."""

import contextlib
import gc
import weakref

import pytest

from tlx_xdsl.kernels.calls.plans import NOWHERE
from tlx_xdsl.kernels.calls.recent import Recent

torch = pytest.importorskip("torch", reason="torch is not installed")

OPTIONS = (1.0, True)


class Subclass(torch.Tensor):
    """A tensor that is more than memory."""


def recent(*tensors):
    return Recent("plan", tensors, OPTIONS, addresses(tensors))


def addresses(tensors):
    return [NOWHERE if each is None else each.data_ptr() for each in tensors]


def is_of(known, *tensors, options=OPTIONS):
    return known.is_of(tensors, options, addresses(tensors))


@pytest.fixture
def x():
    return torch.zeros(64, 128)


@pytest.fixture
def known(x):
    return recent(x, None, torch.zeros(128))


def test_other_tensors_like_them_are_of_the_same_plan(known):
    for _ in range(2):
        assert is_of(known, torch.ones(64, 128), None, torch.ones(128))


@pytest.mark.parametrize(
    "other",
    [
        torch.zeros(64, 64),
        torch.zeros(64, 128, 1),
        torch.zeros(128, 64).T,
        torch.zeros(64, 128, dtype=torch.float16),
        torch.zeros(64, 128, device="meta"),
        torch.zeros(64, 128, requires_grad=True),
        torch.nn.Parameter(torch.zeros(64, 128), requires_grad=False),
        torch.zeros(64, 128).as_subclass(Subclass),
        torch.zeros(64 * 128 + 1)[1:].view(64, 128),
    ],
)
def test_others_are_not(known, x, other):
    weight = torch.zeros(128)
    assert not is_of(known, other, None, weight)
    assert not is_of(known, x, other, weight)
    assert not is_of(known, x, None, other)
    assert is_of(known, x, None, weight)


def test_none_is_no_tensor(known, x):
    weight = torch.zeros(128)
    assert not is_of(known, None, None, weight)
    assert not is_of(known, x, None, None)
    assert not is_of(known, x, torch.zeros(64, dtype=torch.uint8)[15:], weight), "its address is as -1 in the last bits"


@pytest.mark.parametrize("wants", [False, True])
@pytest.mark.parametrize("made", [torch.no_grad, torch.enable_grad])
def test_a_gradient_is_wanted_where_it_is_recorded(made, wants):
    given = torch.zeros(64, 128, requires_grad=wants), torch.zeros(128)
    with made():
        there = recent(*given)
        assert is_of(there, *given)
    with torch.no_grad():
        assert is_of(there, *given) == (made is torch.no_grad or not wants)
    with torch.enable_grad():
        assert is_of(there, *given) == (made is torch.enable_grad or not wants)


def test_other_options_are_of_another_plan(known, x):
    weight = torch.zeros(128)
    assert not is_of(known, x, None, weight, options=(1.0, False))
    assert not is_of(known, x, None, weight, options=(torch.ones(2), True))


def test_a_tensor_that_comes_twice_is_found_where_it_did_before(x):
    assert is_of(recent(x, x, x), x, x, x)
    assert is_of(recent(x, x, x), x, torch.zeros(64, 128), x)
    assert not is_of(recent(x, torch.zeros(64, 128)), x, x)


@pytest.mark.parametrize("transform", ["vmap", "grad", "jvp", "functionalize"])
def test_no_call_in_a_transformation_is_of_a_plan(known, x, transform):
    found, weight, other = [], torch.zeros(128), torch.zeros(2)

    def function(each):
        found.append(is_of(known, x, None, weight))
        return each.sum()

    transformed = getattr(torch.func, transform)
    if transform == "jvp":
        transformed(function, (other,), (other,))
    else:
        transformed(function)(other)
    assert found == [False]


@pytest.mark.parametrize("state", [torch.inference_mode, lambda: torch.autocast("cpu"), contextlib.nullcontext])
def test_each_state_of_torch_s_has_its_own(x, state):
    weight = torch.zeros(128)
    with state():
        there = recent(x, None, weight)
        assert is_of(there, x, None, weight)
    assert is_of(there, x, None, weight) == (state is contextlib.nullcontext)


def test_no_tensor_is_kept():
    x = torch.zeros(4)
    known, gone = recent(x), weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None
    assert is_of(known, torch.zeros(4))
