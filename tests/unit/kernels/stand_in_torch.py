"""torch and a GPU for plans, where there is neither: tensors that say they are on a GPU, and a driver that records.

`install` puts the module in torch's place and has every kernel "compiled" at once: its signature is enough for its
launches, which `cuda.launches` shows.
"""

import contextlib
import ctypes
import math
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.unit.runtime.conftest import CUBIN, FUNCTION, FakeCuda
from tlx_xdsl.kernels.calls import launching, workspaces
from tlx_xdsl.runtime.build import arguments_of
from tlx_xdsl.runtime.launch.cuda_driver import CudaDriver
from tlx_xdsl.runtime.launch.launcher import Launcher

META = {"swizzle": 3, "elem_size": 2, "elem_type": 6, "block_size": [64, 64], "fp4_padded": False}


def described(spelled):
    """Describe a descriptor of this type as stock Triton does."""
    outer = [1] * (spelled.count(",") - 1)
    size = 4 if "fp32" in spelled else 1 if "fp8" in spelled else 2
    return META | {"elem_size": size, "block_size": [*outer, *META["block_size"]]}


class Dtype(str):
    """torch.float16 and the like."""

    @property
    def itemsize(self):
        return {"torch.uint8": 1, "torch.float8_e4m3fn": 1, "torch.float32": 4, "torch.int32": 4}.get(self, 2)


@dataclass(frozen=True)
class Device:
    """torch.device("cuda", index)."""

    index: int = 0
    type: str = "cuda"


@dataclass
class Tensor:
    """Stand-in with as much of a tensor as a plan asks for: fp16 by rows, if not said otherwise."""

    shape: tuple = (64, 128)
    address: int = 0x1000
    dtype: str = Dtype("torch.float16")
    device: Device = Device()
    requires_grad: bool = False
    strides: tuple | None = None
    zeroed: bool = False

    def stride(self):
        return self.strides or tuple(math.prod(self.shape[at + 1 :]) for at in range(len(self.shape)))

    def data_ptr(self):
        return self.address

    def element_size(self):
        return Dtype(self.dtype).itemsize

    def numel(self):
        return math.prod(self.shape)

    @property
    def T(self):
        return self.swapaxes(0, 1)

    def swapaxes(self, first, second):
        order = list(range(len(self.shape)))
        order[first], order[second] = order[second], order[first]
        shape, strides = (tuple(each[at] for at in order) for each in (self.shape, self.stride()))
        return replace(self, shape=shape, strides=strides)

    def __getitem__(self, parts):
        given = parts if isinstance(parts, tuple) else (parts,)
        ranges = [each.indices(extent) for each, extent in zip(given, self.shape, strict=True)]
        first = sum(start * stride for (start, _, _), stride in zip(ranges, self.stride(), strict=True))
        return replace(
            self,
            shape=tuple(stop - start for start, stop, _ in ranges),
            strides=self.stride(),
            address=self.address + first * self.element_size(),
        )

    def __setitem__(self, parts, value):
        """Write nothing: there is no memory."""

    def view(self, dtype):
        made = replace(self, dtype=Dtype(dtype))
        return replace(made, shape=(self.numel() * self.element_size() // made.element_size(),), strides=None)

    def reshape(self, *shape):
        rest = self.numel() // -math.prod(shape) if -1 in shape else 0
        return replace(self, shape=tuple(rest if extent == -1 else extent for extent in shape), strides=None)

    def new_empty(self, shape, dtype=None):
        return Tensor(tuple(shape), 0xEE0000, dtype or self.dtype, self.device)


class Cuda(FakeCuda):
    """The driver of these tests: it knows the parameters of several kernels, and a tensor map shows its address."""

    def __post_init__(self):
        self.missing = ("cuFuncGetParamInfo",)
        super().__post_init__()
        self.sizes = []
        self.meanwhile = lambda: None  # before each launch, and before parameters of a graph are read

    def new_kernel(self, sizes):
        """The name of a kernel whose parameters have these sizes."""
        self.sizes.append(sizes)
        return str(len(self.sizes) - 1)

    def _cuModuleGetFunction(self, out, module, name):
        out[0] = FUNCTION + int(name)

    def sizes_of(self, function):
        return self.sizes[function - FUNCTION]

    def _cuLaunchKernelEx(self, config, function, parameters, extra):
        self.meanwhile()
        super()._cuLaunchKernelEx(config, function, parameters, extra)

    def _cuGraphLaunch(self, executable, stream):
        self.meanwhile()
        super()._cuGraphLaunch(executable, stream)

    def _cuGraphExecKernelNodeSetParams_v2(self, executable, node, parameters):
        self.meanwhile()
        return super()._cuGraphExecKernelNodeSetParams_v2(executable, node, parameters)

    def _cuTensorMapEncodeTiled(self, out, dtype, rank, address, *layout):
        super()._cuTensorMapEncodeTiled(out, dtype, rank, address, *layout)
        ctypes.c_uint64.from_address(out).value = address


class OutOfMemoryError(RuntimeError):
    """torch.OutOfMemoryError."""


@dataclass
class Torch:
    """Stand-in for torch that a test changes and looks at."""

    cuda: Cuda
    stream: int = 0
    device: int = 0
    devices: int = 1
    capturing: bool = False
    grad: bool = False
    deterministic: bool = False
    modes: int = 0
    state: str = ""
    """What the dispatcher would do with a tensor, such as under autocast."""
    asked: int = 0
    """Calls of `TensorGuards.check`."""
    allocated: list = field(default_factory=list)
    entered: list = field(default_factory=list)
    empty_cache: Callable = lambda: None

    def _allocate(self, shape, dtype, device, zeroed=False):
        tensor = Tensor(shape, 0x10_0000 * (1 + len(self.allocated)), dtype, device, zeroed=zeroed)
        self.allocated.append(tensor)
        return tensor

    def _described(self, tensor):
        if not isinstance(tensor, Tensor):
            return None
        wants_gradient = self.grad and tensor.requires_grad
        return type(tensor), tensor.shape, tensor.stride(), tensor.dtype, tensor.device, wants_gradient, self.state

    @contextlib.contextmanager
    def _on(self, device):
        before, self.device = self.device, getattr(device, "index", device)
        self.entered.append(self.device)
        yield
        self.device = before

    def module(self):
        """The module."""
        module = types.ModuleType("torch")
        module.Tensor = Tensor
        module.nn = types.SimpleNamespace(Parameter=type("Parameter", (Tensor,), {}))
        module.compiler = types.SimpleNamespace(is_dynamo_compiling=lambda: False)
        module.is_grad_enabled = lambda: self.grad
        module.are_deterministic_algorithms_enabled = lambda: self.deterministic
        for name in ("uint8", "int32", "float16", "bfloat16", "float32"):
            setattr(module, name, Dtype(f"torch.{name}"))

        def empty_strided(shape, stride, dtype):
            return self._allocate(shape, dtype, Device(self.device))

        def guards(*tensors, dynamic_dims_sizes, dynamic_dims_strides):
            expected = [self._described(each) for each in tensors]

            def check(*given):
                self.asked += 1
                # A tensor that comes twice is another call to torch.
                return len({*map(id, given)}) == len(given) and [self._described(each) for each in given] == expected

            return types.SimpleNamespace(check=check)

        module._C = types.SimpleNamespace(
            _len_torch_dispatch_stack=lambda: self.modes,
            _are_functorch_transforms_active=lambda: False,
            _cuda_getCurrentRawStream=lambda device: self.stream + device,
            _cuda_isCurrentStreamCapturing=lambda: self.capturing,
            _dynamo=types.SimpleNamespace(
                guards=types.SimpleNamespace(_empty_strided_cuda=empty_strided, TensorGuards=guards)
            ),
        )
        module.cuda = types.SimpleNamespace(
            device=self._on,
            current_device=lambda: self.device,
            device_count=lambda: self.devices,
            is_available=lambda: True,
            empty_cache=lambda: self.empty_cache(),
            OutOfMemoryError=OutOfMemoryError,
            is_current_stream_capturing=lambda: self.capturing,
            get_device_capability=lambda device: (9, 0),
            get_device_properties=lambda device: types.SimpleNamespace(multi_processor_count=132),
        )
        module.empty = lambda size, *, dtype, device: self._allocate((size,), dtype, device)
        module.zeros = lambda size, *, dtype, device: self._allocate((size,), dtype, device, True)
        module.before_planning = lambda: None  # for functions of tests
        return module


def install(monkeypatch) -> Torch:
    """Put the stand-ins in place for a test."""
    torch = Torch(Cuda())
    driver = CudaDriver(torch.cuda.library)
    made = {}

    def compiled(kernel, signature, constexprs, num_warps, *rest):
        known = (kernel, signature, constexprs, num_warps, *rest)
        if known not in made:
            arguments = [each for name, type_ in signature for each in arguments_of(name, type_)]
            descriptors = [each for each in arguments if each.type.startswith("tensordesc")]
            made[known] = launcher = Launcher(
                CUBIN,
                name=kernel.source.name,
                arguments=arguments,
                num_warps=num_warps,
                shared=0,
                tensordesc_meta=[described(each.type) for each in descriptors],
                global_scratch_size=dict(constexprs).get("SCRATCH", 0),
                driver=driver,
            )
            launcher.name = torch.cuda.new_kernel(launcher._sizes)
        return made[known]

    monkeypatch.setattr(launching, "_launcher", compiled)
    monkeypatch.setattr(workspaces, "default_driver", lambda: driver)
    monkeypatch.setitem(sys.modules, "torch", torch.module())
    return torch
