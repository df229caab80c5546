"""Plans whose launches are a graph of the stream, on stand-ins for torch and the CUDA driver."""

import functools
import gc
import threading
from dataclasses import replace

import pytest

from tests.unit.kernels import stand_in_torch
from tests.unit.kernels.calls.planned import addresses, expected, prepare, tensors, words
from tlx_xdsl.kernels.calls import plans
from tlx_xdsl.kernels.calls.planned_function import PlannedFunction
from tlx_xdsl.kernels.calls.plans import Prepared
from tlx_xdsl.kernels.calls.workspaces import COUNTER_BYTES, WORKSPACES

TWO = (2, 0)
"""The options of two launches."""

ONE = (1, 0)
"""Those of one."""


@pytest.fixture
def torch(monkeypatch):
    monkeypatch.setattr(plans, "CALLS_BEFORE_A_GRAPH", 2)
    monkeypatch.setattr(plans._Graphs, "lanes", type(plans._Graphs.lanes)())
    yield stand_in_torch.install(monkeypatch)
    WORKSPACES.clear()


@pytest.fixture
def function(torch):
    return PlannedFunction("f", prepare, results=2)


@pytest.fixture
def counts(function, torch):
    """Asks for the calls of the driver since there is a graph."""
    for _ in range(2):
        function(tensors(), TWO)
    before = torch.cuda.counts.copy()
    torch.cuda.launches.clear()
    return lambda: torch.cuda.counts - before


def test_a_call_on_the_same_memory_is_one_of_the_driver(function, torch, counts):
    for _ in range(3):
        function(tensors(), TWO)
    assert counts() == {"cuGraphLaunch": 3}
    assert [addresses(launch) for launch in torch.cuda.launches] == [expected(1)] * 6


def test_the_graph_gets_what_has_moved(function, torch, counts):
    for at in (2, 2, 3):
        function(tensors(at), TWO)
        assert [addresses(launch) for launch in torch.cuda.launches[-2:]] == [expected(at)] * 2
    assert counts()["cuGraphExecKernelNodeSetParams_v2"] == 4
    assert counts()["cuLaunchKernelEx"] == 0


def test_only_the_kernels_that_have_a_tensor_are_updated(torch):
    def of_one(tensors, options):
        """The first launch does not have `b`."""
        prepared = prepare(tensors, options)
        first, second = prepared.launches
        kept = {name: value for name, value in first.arguments.items() if name != "b_ptr"}
        return Prepared(prepared.tensors, (replace(first, arguments=kept), second))

    function = PlannedFunction("f", of_one, results=2)
    b, a, out = tensors()
    for _ in range(2):
        function((b, a, out), TWO)
    other = tensors(2)[0]
    function((other, a, out), TWO)
    # Each once when the graph is made.
    assert torch.cuda.counts["cuGraphExecKernelNodeSetParams_v2"] == 2 + 1
    assert words(torch.cuda.launches[-1], 5) == (other.address,)


def test_streams_have_graphs_of_their_own(function, torch, counts):
    for torch.stream in (7, 7, 0, 7, 0):
        function(tensors(), TWO)
    assert len(torch.cuda.executables) == 2
    assert [launch.stream or 0 for launch in torch.cuda.launches] == [7] * 4 + [0] * 2 + [7] * 2 + [0] * 2
    at_0, at_7 = (address + COUNTER_BYTES for address in torch.cuda.memory)
    assert [words(launch, 7)[0] for launch in torch.cuda.launches[-4:]] == [at_7] * 2 + [at_0] * 2


def test_a_workspace_that_has_grown_moves(function, torch, counts):
    function(tensors(), (3, 1000))
    function(tensors(), TWO)
    (start,) = torch.cuda.memory
    assert [words(launch, 7)[0] for launch in torch.cuda.launches[-2:]] == [start + COUNTER_BYTES] * 2
    assert counts()["cuGraphExecKernelNodeSetParams_v2"] == 2


def test_a_captured_call_is_of_plain_launches(function, torch, counts):
    torch.capturing = True
    function(tensors(2), TWO)
    assert (counts()["cuLaunchKernelEx"], counts()["cuGraphLaunch"]) == (2, 0)
    torch.capturing = False
    function(tensors(1), TWO)
    assert (counts()["cuLaunchKernelEx"], counts()["cuGraphLaunch"]) == (2, 1)
    (memory,) = torch.allocated
    (start,) = torch.cuda.memory
    assert {launch.stream or 0 for launch in torch.cuda.launches} == {0}, "not that of the plan's own capture"
    found = [(addresses(launch), words(launch, 7)[0]) for launch in torch.cuda.launches]
    assert found == [(expected(2), memory.address)] * 2 + [(expected(1), start + COUNTER_BYTES)] * 2


@pytest.mark.parametrize("call", ["cuGraphExecKernelNodeSetParams_v2", "cuGraphLaunch"])
def test_plain_launches_take_the_place_of_a_graph_that_is_refused(function, torch, counts, call):
    torch.cuda.failures[call] = 1
    for at in (2, 1, 3):
        function(tensors(at), TWO)
        assert [addresses(launch) for launch in torch.cuda.launches[-2:]] == [expected(at)] * 2
    assert len(torch.cuda.launches) == 6
    assert counts()[call] == 1
    assert not torch.cuda.executables


def test_what_an_earlier_kernel_did_is_said_by_the_plain_launch(function, torch, counts):
    torch.cuda.failures |= {"cuGraphLaunch": 700, "cuLaunchKernelEx": 700}
    with pytest.raises(RuntimeError, match=r"cuLaunchKernelEx failed: .*illegal memory access"):
        function(tensors(), TWO)


@pytest.mark.parametrize("call", ["cuGraphExecKernelNodeSetParams_v2", "cuGraphLaunch"])
def test_a_thread_without_a_context_leaves_the_graph_for_later(function, torch, counts, call):
    """The node of one launch may have other addresses then, that of the other not."""
    done = {name: getattr(torch.cuda, f"_{name}") for name in (call, "cuLaunchKernelEx")}
    seen = []

    def without_context(name, *arguments):
        seen.append(name)
        # The first update is done.
        is_there = torch.cuda.context or (name == "cuGraphExecKernelNodeSetParams_v2" and len(seen) == 1)
        return done[name](*arguments) if is_there else 201

    for name in done:
        setattr(torch.cuda, f"_{name}", functools.partial(without_context, name))
    torch.cuda.context = 0
    for at in (2, 1, 2):
        function(tensors(at), TWO)
        assert [addresses(launch) for launch in torch.cuda.launches[-2:]] == [expected(at)] * 2
    assert torch.cuda.context
    assert len(torch.cuda.executables) == 1
    assert counts()["cuGraphLaunch"] == (3 if call == "cuGraphLaunch" else 2)


def test_one_launch_is_plain_while_addresses_change(function, torch):
    for _ in range(2):
        function(tensors(), ONE)
    for at, calls in ((1, "graph"), (2, "plain"), (3, "plain"), (3, "graph"), (3, "graph"), (1, "plain"), (3, "graph")):
        before = torch.cuda.counts.copy()
        function(tensors(at), ONE)
        assert addresses(torch.cuda.launches[-1]) == expected(at)
        since = torch.cuda.counts - before
        assert (since["cuLaunchKernelEx"], since["cuGraphLaunch"]) == ((1, 0) if calls == "plain" else (0, 1))


@pytest.mark.parametrize("refused", ["cuGraphInstantiateWithFlags", "cuGraphExecKernelNodeSetParams_v2"])
def test_a_driver_without_graphs_will_do(function, torch, refused):
    torch.cuda.failures[refused] = 1
    for at in (1, 2, 3, 4):
        function(tensors(at), TWO)
        assert [addresses(launch) for launch in torch.cuda.launches[-2:]] == [expected(at)] * 2
    assert torch.cuda.counts[refused] == 1
    assert torch.cuda.counts["cuGraphLaunch"] == 0
    assert not torch.cuda.executables


def test_graphs_can_be_switched_off(function, torch, monkeypatch):
    monkeypatch.setattr(plans, "ARE_MADE", False)
    for _ in range(4):
        function(tensors(), TWO)
    assert torch.cuda.counts["cuLaunchKernelEx"] == 8


def test_the_oldest_graph_goes_and_comes_again(function, torch, monkeypatch):
    monkeypatch.setattr(plans, "MAX_GRAPHS", 2)
    shapes = [(64 * rows, 128) for rows in (1, 2, 3)]
    for shape in shapes:
        for _ in range(3):
            function(tensors(shape=shape), TWO)
    assert len(torch.cuda.executables) == 2
    plain, graphs = torch.cuda.counts["cuLaunchKernelEx"], torch.cuda.counts["cuGraphLaunch"]
    for shape in (shapes[2], shapes[1]):
        function(tensors(shape=shape), TWO)
    assert torch.cuda.counts["cuLaunchKernelEx"] == plain
    for _ in range(3):
        function(tensors(shape=shapes[0]), TWO)
    # Two calls, and what is captured then.
    assert torch.cuda.counts["cuLaunchKernelEx"] == plain + 2 * 3
    assert torch.cuda.counts["cuGraphLaunch"] == graphs + 2 + 1
    assert len(torch.cuda.executables) == 2


def test_a_graph_goes_with_its_plan(function, torch, counts):
    assert len(torch.cuda.executables) == 1
    function.forget()
    gc.collect()
    assert not torch.cuda.executables


@pytest.mark.parametrize("first", [1, 3])
@pytest.mark.parametrize("other_stream", [False, True])
def test_threads_take_turns(function, torch, counts, other_stream, first):
    """A call in the middle of another: a graph has the addresses of one call, on one stream.

    It is in the middle of the launch of the graph, or of the first one of two updates.
    """
    for torch.stream in (0, 7):
        for _ in range(2):
            function(tensors(), TWO)
    torch.cuda.launches.clear()
    torch.stream = 0
    other = threading.Thread(target=function, args=(tensors(2), TWO))

    def start() -> None:
        torch.cuda.meanwhile = lambda: None
        torch.stream = 7 * other_stream
        other.start()
        other.join(0.1)

    torch.cuda.meanwhile = start
    function(tensors(first), TWO)
    other.join()
    found = [(*addresses(launch), launch.stream or 0) for launch in torch.cuda.launches]
    calls = [(*expected(first), 0)] * 2, [(*expected(2), 7 * other_stream)] * 2
    # Launches on other streams need not wait, updates of the same plan do.
    assert found in ([*calls[0], *calls[1]], [*calls[1], *calls[0]] if other_stream else None)
