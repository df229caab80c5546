"""Launches as a graph: what the driver is given for it."""

import ctypes
import gc
import struct

import pytest

from tests.unit.runtime.conftest import FUNCTION
from tlx_xdsl.runtime import CudaDriverError, Launcher
from tlx_xdsl.runtime.launch.cuda_driver import CudaDriver
from tlx_xdsl.runtime.launch.launch_graph import LaunchGraph

SIZES = [8, 4, 8, 8]
ARGUMENTS = [("ptr", "*fp16"), ("n", "i32")]


class TwoKernels:
    """The handles of kernels, in the order in which they are loaded."""

    def __init__(self, cuda):
        self.count = 0
        cuda._cuModuleGetFunction = self.function

    def function(self, out, module, name):
        out[0] = FUNCTION + self.count
        self.count += 1


@pytest.fixture
def cuda(make_cuda):
    cuda = make_cuda(parameter_sizes=SIZES, missing=("cuFuncGetParamInfo",))
    TwoKernels(cuda)
    return cuda


@pytest.fixture
def launches(cuda, make_tensor):
    """Two kernels, the second of which starts early, on a fake driver."""
    driver = CudaDriver(cuda.library)

    def launch(at, launch_pdl):
        launcher = Launcher(
            b"\x7fELF\x00cubin", name=f"kernel_{at}", arguments=ARGUMENTS, num_warps=4, shared=1024 * at,
            launch_pdl=launch_pdl, cluster=(2, 1, 1) if at else (1, 1, 1), driver=driver,
        )  # fmt: skip
        return launcher.movable((4 + 2 * at, 2), make_tensor(address=0x1000 * (at + 1)), 7)

    return [launch(0, launch_pdl=False), launch(1, launch_pdl=True)]


def addresses(cuda):
    return [struct.unpack("<Q", launch.parameters[0])[0] for launch in cuda.launches]


def test_a_graph_is_of_the_launches_as_they_are(cuda, launches):
    for launch in launches:
        launch(5)
    plain = cuda.launches.copy()
    graph = LaunchGraph(launches, 5)
    assert cuda.launches == plain, "what is captured is not launched"
    cuda.launches.clear()
    assert graph.enqueue() == 0
    assert cuda.launches == plain
    assert (cuda.counts["cuGraphLaunch"], cuda.capture_mode) == (1, 0)
    assert cuda.counts["cuStreamCreate"] == cuda.counts["cuStreamDestroy_v2"] == 1


def test_a_launch_that_has_changed_is_copied_on_demand(cuda, launches):
    graph = LaunchGraph(launches, 0)
    for launch in launches:
        launch.mover("ptr")(0x8000)
    graph.enqueue()
    assert graph.updates[1]() == 0
    graph.enqueue()
    assert addresses(cuda) == [0x1000, 0x2000, 0x1000, 0x8000]


def test_a_pointer_can_be_read_elsewhere(cuda, launches):
    memory = ctypes.create_string_buffer(struct.pack("<Q", 0x7000))
    assert launches[0].share("ptr", ctypes.addressof(memory))
    assert not launches[0].share("n", 0)
    graph = LaunchGraph(launches, 0)
    struct.pack_into("<Q", memory, 0, 0x9000)
    graph.enqueue()
    graph.updates[0]()
    graph.enqueue()
    launches[0](0)
    assert addresses(cuda) == [0x7000, 0x2000, 0x9000, 0x2000, 0x9000]


def test_a_graph_goes_with_its_last_reference(cuda, launches):
    graph = LaunchGraph(launches, 0)
    assert len(cuda.executables) == 1
    del graph
    gc.collect()
    assert not cuda.executables
    assert cuda.graphs == [None]


def test_a_kernel_that_comes_twice_has_no_graph(cuda, launches):
    with pytest.raises(ValueError, match="expected a graph of different kernels, got kernel 'kernel_0', grid"):
        LaunchGraph([launches[0], launches[0]], 0)
    assert not cuda.executables
    assert cuda.graphs == [None]


@pytest.mark.parametrize(
    "call", ["cuStreamCreate", "cuStreamBeginCapture_v2", "cuLaunchKernelEx", "cuStreamEndCapture", "cuGraphGetNodes",
             "cuGraphInstantiateWithFlags", "cuGraphExecKernelNodeSetParams_v2"],
)  # fmt: skip
def test_what_the_driver_refuses_is_an_error_and_leaves_nothing(cuda, launches, call):
    cuda.failures[call] = 700
    with pytest.raises(CudaDriverError, match=f"{call} failed: CUDA_ERROR_ILLEGAL_ADDRESS"):
        LaunchGraph(launches, 0)
    assert cuda.capture_mode == 0
    created = cuda.counts["cuStreamCreate"] - (call == "cuStreamCreate")
    assert cuda.counts["cuStreamDestroy_v2"] == created
    assert all(each is None for each in cuda.graphs)
    assert not cuda.executables


def test_codes_are_those_of_the_driver(cuda, launches):
    graph = LaunchGraph(launches, 0)
    cuda.failures |= {"cuGraphLaunch": 700, "cuGraphExecKernelNodeSetParams_v2": 1}
    assert (graph.enqueue(), graph.updates[0]()) == (700, 1)
