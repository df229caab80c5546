"""Plans whose launches are a graph of the stream, on a GPU: the bits of plain launches, whatever goes on beside."""

import threading

import pytest

from tlx_xdsl.kernels.calls.plans import CALLS_BEFORE_A_GRAPH
from tlx_xdsl.kernels.gemm.dense import GEMM, gemm
from tlx_xdsl.kernels.rows.norms import NORM_BACKWARD, norm_backward
from tlx_xdsl.kernels.rows.softmax import SOFTMAX, softmax

pytestmark = pytest.mark.gpu

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

SETS = 3
"""Sets of tensors that take turns: addresses change from call to call."""

CALLS = 4 * SETS
"""Calls of each, after those that have made the graph."""


def random(*shape, seed):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return torch.randn(shape, device="cuda", generator=generator).half()


def backward(x, weight, dout):
    return norm_backward(x, weight, dout, eps=1e-5, centred=True, with_bias=True)


PROBLEMS = {
    # One launch.
    "softmax": (SOFTMAX, softmax, [(256, 1024)]),
    # Two, the second of which starts early; of clusters; of descriptors.
    "norm_backward": (NORM_BACKWARD, backward, [(256, 1024), (1024,), (256, 1024)]),
    "clusters": (NORM_BACKWARD, backward, [(64, 16384), (16384,), (64, 16384)]),
    "gemm": (GEMM, gemm, [(512, 16384), (16384, 512)]),
}


def results_of(function, given):
    found = function(*given)
    return found if isinstance(found, tuple) else (found,)


class Problem:
    """A function with sets of tensors, and the results of plain launches."""

    def __init__(self, name):
        self.planned, self.function, shapes = PROBLEMS[name]
        self.planned.forget()
        self.given = [
            [random(*shape, seed=10 * turn + at) for at, shape in enumerate(shapes)] for turn in range(SETS)
        ]  # fmt: skip
        self.expected = [results_of(self.function, each) for each in self.given]
        assert not self.graphs()
        torch.cuda.synchronize()

    def graphs(self):
        lanes = [lane for plan in self.planned._plans.values() for lane in plan._lanes.values()]
        return [lane.graph for lane in lanes if lane.graph is not None]

    def run(self, calls=CALLS):
        """Results with the sets that they are of."""
        return [(at % SETS, results_of(self.function, self.given[at % SETS])) for at in range(calls)]

    def check(self, found):
        torch.cuda.synchronize()
        for at, results in found:
            for each, expected in zip(results, self.expected[at], strict=True):
                assert torch.equal(each, expected)


@pytest.fixture(params=PROBLEMS)
def problem(request):
    return Problem(request.param)


@pytest.fixture
def repeated(problem):
    """A problem with a graph on the default stream."""
    problem.run(CALLS_BEFORE_A_GRAPH)
    assert len(problem.graphs()) == 1
    return problem


def test_the_bits_are_those_of_plain_launches(repeated):
    repeated.check(repeated.run())
    for _ in range(CALLS):
        # The results go before the next call, which has its own at the same addresses.
        repeated.check([(0, results_of(repeated.function, repeated.given[0]))])
    assert len(repeated.graphs()) == 1


def test_in_a_graph_of_the_user_s(repeated):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = repeated.run()
    repeated.check(repeated.run())
    for _, results in captured:
        for each in results:
            each.fill_(torch.nan)
    graph.replay()
    repeated.check(captured)
    repeated.check(repeated.run())


@pytest.mark.parametrize("own_streams", [False, True])
def test_in_threads(problem, own_streams):
    streams = [torch.cuda.Stream() if own_streams else torch.cuda.default_stream() for _ in range(3)]
    found, ready = {}, threading.Barrier(3)

    def work(at):
        ready.wait()
        with torch.cuda.stream(streams[at]), torch.no_grad():
            found[at] = problem.run(3 * CALLS_BEFORE_A_GRAPH)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    problem.check([each for at in range(3) for each in found[at]])
    assert len(problem.graphs()) == (3 if own_streams else 1)


@pytest.mark.parametrize(("planned", "function", "shapes"), [PROBLEMS["softmax"], PROBLEMS["gemm"]])
def test_while_another_thread_captures(planned, function, shapes):
    """A graph is made, updated, launched and given back then. torch is asked for no memory, which it could not get."""
    planned.forget()
    given = [[random(*shape, seed=10 * turn + at) for at, shape in enumerate(shapes)] for turn in range(SETS)]
    expected = [function(*each) for each in given]
    outs = [torch.empty_like(each) for each in expected]
    for factors, out in zip(given, outs, strict=True):
        function(*factors, out=out)  # the plan is there, which takes memory to make
        out.fill_(torch.nan)
    graph, made = torch.cuda.CUDAGraph(), []
    torch.cuda.synchronize()

    def work():
        with torch.no_grad():
            for at in range(2 * CALLS_BEFORE_A_GRAPH):
                # The same addresses twice.
                function(*given[at // 2 % SETS], out=outs[at // 2 % SETS])
        lanes = [lane for plan in planned._plans.values() for lane in plan._lanes.values()]
        made.append(any(lane.graph is not None for lane in lanes))
        del lanes
        planned.forget()

    with torch.cuda.graph(graph):
        captured = function(*given[0])
        other = threading.Thread(target=work)
        other.start()
        other.join()
    graph.replay()
    torch.cuda.synchronize()
    assert made == [True]
    assert torch.equal(captured, expected[0])
    for each, result in zip(outs, expected, strict=True):
        assert torch.equal(each, result)


def test_under_torch_s_profiler(repeated):
    """The profiler sees the kernels of a graph one by one."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        repeated.check(repeated.run(SETS))
    kernels = [each for each in profile.events() if each.device_type == torch.autograd.DeviceType.CUDA]
    plan = next(iter(repeated.planned._plans.values()))
    names = {launch.detail.split("'")[1] for launch in plan._launches}
    assert sum(each.name in names for each in kernels) == SETS * len(names)
