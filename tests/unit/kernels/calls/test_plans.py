"""Plans: what a repeated call still does, on stand-ins for torch and the CUDA driver."""

import struct
import sys
import threading
import types
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.kernels import stand_in_torch
from tests.unit.kernels.calls.planned import PLAIN, addresses, expected, kernel, prepare, tensors, words
from tests.unit.kernels.stand_in_torch import Device, Tensor
from tlx_xdsl.kernels import operators
from tlx_xdsl.kernels.calls import planned_function
from tlx_xdsl.kernels.calls.launching import Launch
from tlx_xdsl.kernels.calls.operands import describe
from tlx_xdsl.kernels.calls.planned_function import PlannedFunction
from tlx_xdsl.kernels.calls.plans import Prepared
from tlx_xdsl.kernels.calls.workspaces import COUNTER_BYTES, WORKSPACES
from tlx_xdsl.kernels.operators import Operator
from tlx_xdsl.kernels.rows.softmax import SOFTMAX, softmax

pytestmark = pytest.mark.quick


@pytest.fixture
def torch(monkeypatch):
    yield stand_in_torch.install(monkeypatch)
    WORKSPACES.clear()


@pytest.fixture
def function(torch):
    return PlannedFunction("f", prepare, results=2)


def test_a_repeated_call_puts_in_its_addresses(function, torch):
    for at in (1, 2, 2, 3):
        given = tensors(at)
        assert function(given, PLAIN) is given[2]
        assert addresses(torch.cuda.launches[-1]) == expected(at)
    assert len(torch.cuda.tensor_maps) == 1
    # What has not changed is left.
    assert torch.cuda.moved_maps == [expected(at)[0] for at in (1, 2, 3)]
    assert torch.cuda.launches[-1].parameters[8] == struct.pack("<i", 7)


def test_a_pointer_may_be_to_within_a_tensor(torch):
    def within(tensors, options):
        prepared = prepare(tensors, options)
        (launch,) = prepared.launches
        b = launch.arguments["b_ptr"]
        second = replace(b, address=b.address + 256)
        return Prepared(prepared.tensors, (replace(launch, arguments={**launch.arguments, "b_ptr": second}),))

    function = PlannedFunction("f", within, results=2)
    for at in (1, 2, 3):
        function(tensors(at), PLAIN)
        start, b, out = expected(at)
        assert addresses(torch.cuda.launches[-1]) == (start, b + 256, out)


def test_tensors_within_tuples_move(torch):
    def within(tensors, options):
        prepared = prepare(tensors, options)
        (launch,) = prepared.launches
        arguments = {**launch.arguments, "b_ptr": (None, (launch.arguments["b_ptr"],))}
        sources = {**launch.sources, "b_ptr[1][0]": "b"}
        return Prepared(prepared.tensors, (replace(launch, arguments=arguments, sources=sources),))

    function = PlannedFunction("f", within, results=2)
    for at in (1, 2):
        function(tensors(at), PLAIN)
        assert addresses(torch.cuda.launches[-1]) == expected(at)


def test_which_tensor_an_argument_is_of_is_said_not_found_out(function, torch):
    first, *_ = tensors()
    function((first, first, first), PLAIN)
    function(tensors(), PLAIN)
    assert addresses(torch.cuda.launches[-1]) == expected(1)


def test_memory_of_another_tensor_than_the_source_says_is_an_error(torch):
    """A plan would put an address far from all tensors into the launch."""

    def wrong(tensors, options):
        prepared = prepare(tensors, options)
        (launch,) = prepared.launches
        return Prepared(prepared.tensors, (replace(launch, sources={**launch.sources, "a_desc": "workspace"}),))

    with pytest.raises(ValueError, match="'a_desc': expected memory of 'workspace', got another"):
        PlannedFunction("f", wrong, results=2)(tensors(), PLAIN)


def test_a_source_that_is_said_goes_before_the_operand(torch):
    """A descriptor of the workspace may have been made of an operand that is called after what it is a copy of."""
    a = tensors()[1]
    made = describe(a, a.shape, (128, 1), (64, 64), source="a")
    said, found = {"a_desc": "workspace"}, {}
    launches = [Launch.of(kernel, (3,), {"a_desc": made, "N": 7}, {}, Device(), sources) for sources in (said, found)]
    assert [launch.sources["a_desc"] for launch in launches] == ["workspace", "a"]


def test_an_argument_without_a_source_is_an_error(torch):
    def without(tensors, options):
        prepared = prepare(tensors, options)
        launch = prepared.launches[0]
        return Prepared(prepared.tensors, (Launch(kernel, (3,), launch.arguments, {}, launch.device),))

    with pytest.raises(ValueError, match="argument 'a_desc': expected in the launch's sources one of b, a, out"):
        PlannedFunction("f", without, results=2)(tensors(), PLAIN)


@pytest.mark.parametrize(
    "other",
    [
        {"shape": (64, 256)},
        {"dtype": "torch.bfloat16"},
        {"requires_grad": True},
        {"device": Device(1)},
    ],
)
def test_other_tensors_have_plans_of_their_own(function, torch, other):
    function(tensors(), PLAIN)
    torch.grad = False
    function(tensors(**other), PLAIN)
    # Whether a gradient is wanted plays no part while none is recorded.
    assert len(function._plans) == (1 if "requires_grad" in other else 2)


def test_alignment_and_options_have_plans_of_their_own(function, torch):
    b, a, out = tensors()
    function((b, a, out), PLAIN)
    function((Tensor(address=0x11002), a, out), PLAIN)
    function((b, a, out), (2, 0))
    assert len(function._plans) == 3
    assert len(torch.cuda.launches) == 4


def test_results_are_new_in_each_call(function, torch):
    b, a, _ = tensors()
    first = function((b, a, None), PLAIN)
    second = function((b, a, None), PLAIN)
    assert (first.address, second.address) == (0xAA0000, torch.allocated[-1].address)
    assert second.shape == a.shape
    assert [addresses(launch)[2] for launch in torch.cuda.launches] == [first.address, second.address]


def test_a_plan_keeps_no_tensor(function, torch):
    import gc
    import weakref

    given = tensors()
    gone = [weakref.ref(each) for each in given]
    function(given, PLAIN)
    del given
    gc.collect()
    assert [each() for each in gone] == [None] * 3


def test_launches_go_to_the_current_stream_of_the_tensors_gpu(function, torch):
    for stream in (0, 7, 7, 0):
        torch.stream = stream
        function(tensors(), PLAIN)
    assert [launch.stream or 0 for launch in torch.cuda.launches] == [0, 7, 7, 0]
    torch.devices = 2
    torch.entered.clear()
    for _ in range(2):
        function(tensors(device=Device(1)), PLAIN)
    # To prepare it, and to launch it twice: the current GPU is another one.
    assert torch.entered == [1, 1, 1]
    assert torch.device == 0
    assert torch.cuda.launches[-1].stream == 1


# --- the workspace --------------------------------------------------------------------------------------------------


def workspaces(torch):
    return [words(launch, 7)[0] for launch in torch.cuda.launches]


def pieces(torch):
    """Return the addresses at which the workspaces of streams begin, after their counters."""
    return [address + COUNTER_BYTES for address in torch.cuda.memory]


def test_launches_of_a_call_share_the_workspace_of_their_stream(function, torch):
    for stream in (0, 7, 0):
        torch.stream = stream
        function(tensors(), (2, 0))
    first, second = pieces(torch)
    assert workspaces(torch) == [first, first, second, second, first, first]
    assert torch.cuda.memory[first - COUNTER_BYTES] == COUNTER_BYTES + 1024


def test_a_workspace_grows(function, torch):
    function(tensors(), PLAIN)
    function(tensors(), (2, 1000))
    function(tensors(), PLAIN)
    small, large = (address for what, address, *_ in torch.cuda.in_order if what == "allocate")
    assert torch.cuda.memory == {large: COUNTER_BYTES + 1024 + 2 * 3072}
    assert workspaces(torch) == [each + COUNTER_BYTES for each in (small, large, large, large)]


def test_kernels_have_their_scratch_memory_there(function, torch):
    function(tensors(), (2, 1000))
    (base,) = pieces(torch)
    assert [words(launch, -2) for launch in torch.cuda.launches] == [(base + 1024,), (base + 1024 + 3072,)]


def test_a_captured_call_has_a_workspace_of_its_own(function, torch):
    function(tensors(), PLAIN)
    torch.capturing = True
    function(tensors(), PLAIN)
    function(tensors(), PLAIN)
    torch.capturing = False
    function(tensors(), PLAIN)
    (kept,) = pieces(torch)
    captured = [each.address for each in torch.allocated]
    assert workspaces(torch) == [kept, *captured, kept]
    assert len(captured) == 2


def test_a_kernel_is_not_loaded_during_a_capture(function, torch):
    torch.capturing = True
    with pytest.raises(RuntimeError, match=r"the kernel 'kernel' is launched for the first time .* CUDA graph"):
        function(tensors(), PLAIN)
    torch.capturing = False
    function(tensors(), PLAIN)
    torch.capturing = True
    function(tensors(shape=(64, 256)), PLAIN)  # the same kernel
    assert len(torch.cuda.launches) == 2


# --- threads --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other_stream", [False, True])
def test_threads_take_turns(function, torch, other_stream):
    """A call in the middle of another: neither the parameters of its plan nor the workspace of its stream are free."""
    given, options = (tensors(1), tensors(2)), (2, 0)
    function(given[1], options)
    # Of another plan on the same stream, or of the same plan on another one.
    options_of_other = options if other_stream else (2, 1)
    function(given[1], options_of_other)
    other = threading.Thread(target=function, args=(given[1], options_of_other))

    def start() -> None:
        torch.cuda.meanwhile = lambda: None
        torch.stream += 7 * other_stream
        other.start()
        # It would have ended by then.
        other.join(0.1)

    torch.cuda.launches.clear()
    torch.cuda.meanwhile = start
    function(given[0], options)
    other.join()
    assert [addresses(launch) for launch in torch.cuda.launches] == [expected(1)] * 2 + [expected(2)] * 2


def test_threads_with_the_same_key_plan_once(function, torch):
    calls = [threading.Thread(target=function, args=(tensors(at), PLAIN)) for at in (1, 2, 3)]
    sys.modules["torch"].before_planning = threading.Barrier(3).wait
    for each in calls:
        each.start()
    for each in calls:
        each.join()
    assert {addresses(launch) for launch in torch.cuda.launches} == {expected(at) for at in (1, 2, 3)}
    assert len(torch.cuda.tensor_maps) == 1


def test_a_failed_call_leaves_the_plan_right(function, torch):
    function(tensors(1), PLAIN)
    torch.cuda.failures["cuTensorMapReplaceAddress"] = 1
    with pytest.raises(RuntimeError, match="invalid argument"):
        function(tensors(2), PLAIN)
    torch.cuda.failures.clear()
    for at in (2, 1):
        function(tensors(at), PLAIN)
        assert addresses(torch.cuda.launches[-1]) == expected(at)


# --- what is kept ---------------------------------------------------------------------------------------------------


def test_few_plans_are_kept_and_those_in_use_stay(function, torch, monkeypatch):
    monkeypatch.setattr(planned_function, "MAX_PLANS", 4)
    for rows in range(1, 9):
        function(tensors(shape=(64 * rows, 128)), PLAIN)
        function(tensors(shape=(64, 128)), PLAIN)
    assert len(function._plans) == 4
    assert len(torch.cuda.tensor_maps) == 8
    function.forget()
    function(tensors(), PLAIN)
    assert len(function._plans) == 1


def test_what_the_interpreter_runs_is_not_kept():
    x = np.zeros((2, 4), np.float32)
    assert (softmax(x) == 0.25).all()
    assert not SOFTMAX._plans
    with pytest.raises(TypeError, match="softmax: argument 'x': expected a tensor, got list"):
        softmax([1.0])


def test_a_call_with_nothing_to_launch_is_not_kept(torch):
    def named(tensors, options):
        return Prepared(dict(zip("abc", tensors, strict=True)))

    function = PlannedFunction("f", named, results=2)
    given = tensors()
    assert function(given) is given[2]
    assert not function._plans


# --- where torch has to see the call --------------------------------------------------------------------------------


class Subclass(Tensor):
    """A tensor that is more than memory."""


@pytest.mark.parametrize(
    ("grad", "modes", "given", "seen"),
    [
        (False, 0, tensors(), False),
        (True, 0, tensors(), False),
        (False, 0, tensors(requires_grad=True), False),
        (True, 0, tensors(requires_grad=True), True),
        (False, 1, tensors(), True),
        (False, 0, (Subclass(), *tensors()[1:]), True),
    ],
)
def test_torch_sees_what_it_has_to(torch, monkeypatch, grad, modes, given, seen):
    made = []
    operator = Operator(lambda *call: ("operator", *call), made.append)
    function = PlannedFunction("f", prepare, results=2, operator=operator)
    monkeypatch.setitem(sys.modules, "tlx_xdsl.kernels.library", types.ModuleType("library"))
    for _ in range(3):
        function(tensors(), PLAIN)
    torch.grad, torch.modes = grad, modes
    for _ in range(3):
        assert function(given, PLAIN) == (("operator", given, PLAIN) if seen else given[2])
    assert function.below_torch(given, PLAIN) is given[2]


def test_operators_are_made_when_they_are_asked_for(torch, monkeypatch):
    made = []
    monkeypatch.setattr(operators._Definitions, "waiting", [])
    monkeypatch.setattr(operators._Definitions, "are_made", False)
    early, late = (PlannedFunction(name, prepare, results=2, operator=Operator(max, made.append)) for name in "el")
    assert made == []
    operators.define_all()
    assert made == [early.below_torch, late.below_torch]
    last = PlannedFunction("last", prepare, results=2, operator=Operator(max, made.append))
    operators.define_all()
    assert made == [early.below_torch, late.below_torch, last.below_torch]


def test_a_function_without_an_operator_says_so(function, torch, monkeypatch):
    monkeypatch.setitem(sys.modules, "tlx_xdsl.kernels.library", types.ModuleType("library"))
    function(tensors(), PLAIN)
    torch.grad = True
    with pytest.raises(NotImplementedError, match="f: there is no operator of it for torch yet"):
        function(tensors(requires_grad=True), PLAIN)


def test_counters_lie_before_the_workspace(torch):
    """Counters were cleared when the piece came, and in a graph at each replay."""

    def counting(tensors, options):
        prepared = prepare(tensors, options)
        (launch,) = prepared.launches
        counter = Tensor((1,), 0xCC0000, "torch.float32", launch.device)
        arguments, sources = {**launch.arguments, "b_ptr": counter}, {**launch.sources, "b_ptr": "counters"}
        launch = replace(launch, arguments=arguments, sources=sources)
        return Prepared({**prepared.tensors, "counters": counter}, (launch,))

    function = PlannedFunction("f", counting, results=2)
    function(tensors(), PLAIN)
    torch.capturing = True
    function(tensors(), PLAIN)
    torch.capturing = False
    (kept,), (captured,) = torch.cuda.memory, torch.allocated
    assert [words(launch, 5)[0] for launch in torch.cuda.launches] == [kept, captured.address]
    assert workspaces(torch) == [kept + COUNTER_BYTES, captured.address + COUNTER_BYTES]
    assert ("clear", kept, COUNTER_BYTES, 0) in torch.cuda.in_order
    assert captured.zeroed
