"""Stand-ins for what these tests have not got: a CUDA driver, and tensors on a GPU."""

import ctypes
import functools
import struct
import types
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest

from tlx_xdsl.runtime.launch.cuda_driver import SIGNATURES, CudaDriver, DeviceAttribute

ERRORS = {
    1: (b"CUDA_ERROR_INVALID_VALUE", b"invalid argument"),
    2: (b"CUDA_ERROR_OUT_OF_MEMORY", b"out of memory"),
    100: (b"CUDA_ERROR_NO_DEVICE", b"no CUDA-capable device is detected"),
    700: (b"CUDA_ERROR_ILLEGAL_ADDRESS", b"an illegal memory access was encountered"),
}

DEVICE_ATTRIBUTES = {
    DeviceAttribute.COMPUTE_CAPABILITY_MAJOR: 9,
    DeviceAttribute.COMPUTE_CAPABILITY_MINOR: 0,
    DeviceAttribute.MULTIPROCESSOR_COUNT: 132,
    DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: 232448,
}

PRIMARY_CONTEXT, MODULE, FUNCTION = 0xC0, 0xD0, 0xF0


@dataclass
class Launch:
    """Parameters of one cuLaunchKernelEx, read from C memory."""

    grid: tuple
    block: tuple
    shared: int
    stream: int | None
    attributes: list
    function: int
    parameters: list


@dataclass
class FakeCuda:
    """libcuda.so.1 with its C calling convention, implemented in Python.

    Every function can be made to fail (`failures`) or be left out (`missing`). What a test may ask about is
    recorded.
    """

    parameter_sizes: list = field(default_factory=list)
    context: int = 0
    devices: int = 1
    version: int = 13020
    host_addresses: set = field(default_factory=set)
    failures: dict = field(default_factory=dict)
    missing: tuple = ()

    def __post_init__(self):
        self.counts = Counter()
        self.loaded = []
        self.function_attributes = []
        self.tensor_maps = []
        self.moved_maps = []
        self.launches = []
        self.memory = {}
        self.in_order = []
        self.capture_mode = 0
        self.capturing = {}
        self.graphs = []
        self.executables = {}
        self.library = types.SimpleNamespace()
        for name, signature in SIGNATURES.items():
            if name not in self.missing:
                function = ctypes.CFUNCTYPE(ctypes.c_int, *signature)(functools.partial(self._dispatch, name))
                setattr(self.library, name, function)

    def _dispatch(self, name, *arguments):
        self.counts[name] += 1
        if name in self.failures:
            return self.failures[name]
        handler = getattr(self, f"_{name}", None)
        return (handler(*arguments) if handler else 0) or 0

    def _cuGetErrorName(self, code, out):
        out[0] = ERRORS[code][0]

    def _cuGetErrorString(self, code, out):
        out[0] = ERRORS[code][1]

    def _cuDriverGetVersion(self, out):
        out[0] = self.version

    def _cuDeviceGetCount(self, out):
        out[0] = self.devices

    def _cuDeviceGet(self, out, ordinal):
        out[0] = ordinal

    def _cuDeviceGetAttribute(self, out, attribute, device):
        assert device == 0
        out[0] = DEVICE_ATTRIBUTES[attribute]

    def _cuDevicePrimaryCtxRetain(self, out, device):
        out[0] = PRIMARY_CONTEXT + device

    def _cuCtxGetCurrent(self, out):
        out[0] = self.context

    def _cuCtxSetCurrent(self, context):
        self.context = context

    def _cuCtxGetDevice(self, out):
        out[0] = 0

    def _cuModuleLoadData(self, out, image):
        self.loaded.append(ctypes.string_at(image, len(CUBIN)))
        out[0] = MODULE

    def _cuModuleGetFunction(self, out, module, name):
        assert (module, name) == (MODULE, b"kernel")
        out[0] = FUNCTION

    def _cuFuncSetAttribute(self, function, attribute, value):
        assert function == FUNCTION
        self.function_attributes.append((attribute, value))

    def _cuFuncGetParamInfo(self, function, index, offset, size):
        assert function == FUNCTION
        if index >= len(self.parameter_sizes):
            return 1
        size[0] = self.parameter_sizes[index]
        return 0

    def _cuMemAlloc_v2(self, out, size):
        address = 0x5000_0000 + 0x10_0000 * self.counts["cuMemAlloc_v2"]
        self.memory[address] = size
        out[0] = address

    def _cuMemFree_v2(self, address):
        del self.memory[address]

    def _cuThreadExchangeStreamCaptureMode(self, mode):
        self.capture_mode, mode[0] = mode[0], self.capture_mode

    def _cuMemAllocAsync(self, out, size, stream):
        assert self.context, "no context is current"
        assert self.capture_mode == 2, "a capture in another thread would break"
        address = 0x7000_0000 + 0x10_0000 * self.counts["cuMemAllocAsync"]
        self.memory[address] = size
        self.in_order.append(("allocate", address, size, stream or 0))
        out[0] = address

    def _cuMemFreeAsync(self, address, stream):
        assert self.capture_mode == 2, "a capture in another thread would break"
        del self.memory[address]
        self.in_order.append(("free", address, stream or 0))

    def _cuMemsetD8Async(self, address, value, size, stream):
        assert address in self.memory
        assert value == 0
        self.in_order.append(("clear", address, size, stream or 0))

    def _cuPointerGetAttribute(self, out, attribute, address):
        if address in self.host_addresses:
            return 1
        assert attribute == 3
        ctypes.cast(out, ctypes.POINTER(ctypes.c_uint64))[0] = address
        return 0

    def _cuTensorMapEncodeTiled(
        self, out, dtype, rank, address, shape, strides, box, steps, interleave, swizzle, promotion, fill
    ):
        assert out % 64 == 0
        # All bits set, so that a cleared one shows.
        ctypes.memset(out, 0xFF, 128)
        self.tensor_maps.append(
            {
                "dtype": dtype,
                "address": address,
                "shape": shape[:rank],
                "strides": strides[: rank - 1],
                "box": box[:rank],
                "steps": steps[:rank],
                "swizzle": swizzle,
                "fixed": (interleave, promotion),
                "fill": fill,
            }
        )

    def _cuTensorMapReplaceAddress(self, tensor_map, address):
        self.moved_maps.append(address)
        # The address is put where a launch shows it, and the driver's flags are set again.
        ctypes.memmove(tensor_map, struct.pack("<QQ", address, 2**64 - 1), 16)

    def _cuLaunchKernelEx(self, config, function, parameters, extra):
        assert not extra
        c = config.contents
        # What a stream captures is not launched.
        self.capturing.get(c.stream, self.launches).append(
            Launch(
                grid=(c.grid_x, c.grid_y, c.grid_z),
                block=(c.block_x, c.block_y, c.block_z),
                shared=c.shared_bytes,
                stream=c.stream,
                attributes=[self._attribute(c.attributes[i]) for i in range(c.attribute_count)],
                function=function,
                parameters=self._read(function, parameters),
            )
        )

    def _read(self, function, parameters):
        return [ctypes.string_at(parameters[i], size) for i, size in enumerate(self.sizes_of(function))]

    def sizes_of(self, function):
        """Bytes of each parameter of a kernel."""
        return self.parameter_sizes

    # Graphs: a node is the number of the graph, times 16, and its place in it.

    def _cuStreamCreate(self, out, flags):
        assert flags == 1, "it would wait for the default stream"
        out[0] = 0x9000 + self.counts["cuStreamCreate"]

    def _cuStreamBeginCapture_v2(self, stream, mode):
        assert mode == self.capture_mode == 2, "a capture in another thread would break"
        self.capturing[stream] = []

    def _cuStreamEndCapture(self, stream, out):
        self.graphs.append(self.capturing.pop(stream))
        out[0] = len(self.graphs)

    def _cuGraphGetNodes(self, graph, nodes, count):
        count[0] = len(self.graphs[graph - 1])
        for at in range(count[0] if nodes else 0):
            nodes[at] = 16 * graph + at

    def _cuGraphKernelNodeGetParams_v2(self, node, out):
        launch, found = self.graphs[node // 16 - 1][node % 16], out.contents
        found.function, found.shared_bytes = launch.function, launch.shared
        found.grid_x, found.grid_y, found.grid_z = launch.grid
        found.block_x, found.block_y, found.block_z = launch.block

    def _cuGraphInstantiateWithFlags(self, out, graph, flags):
        assert self.capture_mode == 2, "a capture in another thread would break"
        self.executables[graph] = list(self.graphs[graph - 1])
        out[0] = graph

    def _cuGraphExecKernelNodeSetParams_v2(self, executable, node, parameters):
        assert node // 16 == executable
        if self.graphs[executable - 1] is None:
            return 1  # the nodes are gone with the graph
        p, before = parameters.contents, self.executables[executable][node % 16]
        assert (p.function, p.shared_bytes) == (before.function, before.shared)
        assert (p.grid_x, p.grid_y, p.grid_z, p.block_x, p.block_y, p.block_z) == (*before.grid, *before.block)
        found = self._read(p.function, ctypes.cast(p.parameters, ctypes.POINTER(ctypes.c_void_p)))
        self.executables[executable][node % 16] = replace(before, parameters=found)
        return 0

    def _cuGraphLaunch(self, executable, stream):
        self.launches += [replace(each, stream=stream) for each in self.executables[executable]]

    def _cuGraphExecDestroy(self, executable):
        assert self.capture_mode == 2, "a capture in another thread would break"
        del self.executables[executable]

    def _cuGraphDestroy(self, graph):
        self.graphs[graph - 1] = None

    @staticmethod
    def _attribute(attribute):
        words = (ctypes.c_uint32 * 3).from_buffer_copy(attribute.value)
        return attribute.id, tuple(words)


CUBIN = b"\x7fELF\x00cubin"


@dataclass
class FakeTensor2D:
    """Looks like a contiguous torch tensor on a GPU."""

    rows: int = 512
    columns: int = 256
    dtype: str = "torch.float16"
    itemsize: int = 2
    address: int = 0x7000_0000
    device: str = "cuda:0"

    @property
    def shape(self):
        return (self.rows, self.columns)

    def stride(self):
        return (self.columns, 1)

    def element_size(self):
        return self.itemsize

    def data_ptr(self):
        return self.address


@pytest.fixture
def cuda():
    """Return the fake library; `cuda.library` is what a CudaDriver takes."""
    return FakeCuda()


@pytest.fixture
def driver(cuda):
    return CudaDriver(cuda.library)


@pytest.fixture
def make_cuda():
    return FakeCuda


@pytest.fixture
def make_tensor():
    return FakeTensor2D


@pytest.fixture
def cubin():
    return CUBIN
