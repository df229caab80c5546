"""A GPU for torch where there is none: its tensors lie in the CPU's memory, and `torch.cuda` answers for it.

What a script asks for on a GPU (`device="cuda"`, `.cuda()`, `.to("cuda")`) is put into the CPU's memory. `torch.cuda`
says that there is one device, of the kind that kernels are launched for; its streams and events do nothing, as all that
was launched has run. Tensors say `is_cuda`, and a device that is the CPU.
"""

# torch has no types here: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

from tlx_xdsl.targets import target_named

MULTIPROCESSORS = 132
"""The number of multiprocessors that scripts see, by which they size the grids of persistent kernels: that of an H100.
Any number is right for a GPU that is not there; this one makes grids that such scripts were tried with."""

_MEMORY = 80 << 30
"""Bytes of memory of the GPU that is not there."""

_FACTORIES = (
    "arange", "as_tensor", "asarray", "bartlett_window", "blackman_window", "empty", "empty_like", "empty_strided",
    "eye", "full", "full_like", "hamming_window", "hann_window", "kaiser_window", "linspace", "logspace", "normal",
    "ones", "ones_like", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm",
    "scalar_tensor", "set_default_device", "sparse_coo_tensor", "sparse_csr_tensor", "tensor", "tril_indices",
    "triu_indices", "zeros", "zeros_like", "load",
)  # fmt: skip
"""Functions of torch that take a device, as an argument of any place or as `device` or `map_location`."""

_METHODS = ("to", "new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros")

_NOTHING = (
    "synchronize", "init", "set_device", "set_stream", "empty_cache", "ipc_collect", "reset_peak_memory_stats",
    "reset_max_memory_allocated", "reset_accumulated_memory_stats", "set_per_process_memory_fraction",
)  # fmt: skip
"""Functions of `torch.cuda` that have nothing to do."""

_NUMBERS = {
    "is_available": True,
    "is_initialized": True,
    "is_current_stream_capturing": False,
    "device_count": 1,
    "current_device": 0,
    "memory_allocated": 0,
    "max_memory_allocated": 0,
    "memory_reserved": 0,
    "max_memory_reserved": 0,
    "mem_get_info": (_MEMORY, _MEMORY),
    "utilization": 0,
}
"""Functions of `torch.cuda` that answer the same of any device."""


def torch_module() -> Any:
    """The module torch. Raises ModuleNotFoundError where there is none."""
    return import_module("torch")


def replacements_of_torch(target: str) -> Iterator[tuple[Any, str, Any]]:
    """Each name of torch that is replaced, as `replacements.replacements` gives them; none without torch.

    The GPU that is not there is one of the kind `target`.
    """
    if "torch" not in sys.modules and find_spec("torch") is None:
        return
    torch = torch_module()
    tensor = torch.Tensor
    yield from ((torch, name, _on_cpu(getattr(torch, name))) for name in _FACTORIES if hasattr(torch, name))
    yield from ((tensor, name, _on_cpu(_method(tensor, name))) for name in _METHODS if hasattr(tensor, name))
    for name in ("cuda", "pin_memory"):
        if hasattr(tensor, name):
            yield tensor, name, _itself
    if hasattr(tensor, "is_cuda"):
        yield tensor, "is_cuda", property(_is_cuda)
    cuda = getattr(torch, "cuda", None)
    if cuda is None:
        return
    yield from ((cuda, name, value) for name, value in _cuda_names(target).items())
    if hasattr(torch, "version"):
        yield torch.version, "cuda", "12.8"
    if hasattr(torch, "Generator"):
        yield torch, "Generator", _generator(torch.Generator)
    # A process for a GPU asks C++ for it.
    yield torch._C, "_cuda_getCurrentRawStream", _answer(0)
    yield from _casts(torch)
    # An operator that a library has for a GPU alone is one of the CPU.
    library = import_module("torch.library")
    yield library, "custom_op", _on_cpu(library.custom_op)
    contexts = import_module("torch.utils._device")
    yield contexts.DeviceContext, "__init__", _on_cpu(contexts.DeviceContext.__init__)
    ranges = import_module("torch.cuda.nvtx")
    yield from ((ranges, name, _answer(None)) for name in ("range_push", "range_pop", "mark"))


def _casts(torch: Any) -> Iterator[tuple[Any, str, Any]]:
    """The names of torch that cast operations of a GPU, which cast those of the CPU, by default to f16 as there."""
    begin, is_enabled, dtype_of = torch.autocast.__init__, torch.is_autocast_enabled, torch.get_autocast_dtype

    @functools.wraps(begin)
    def autocast(self: Any, device_type: str, dtype: Any = None, *args: Any, **kwargs: Any) -> None:
        if _is_gpu(device_type):
            device_type, dtype = "cpu", dtype or torch.float16
        begin(self, device_type, dtype, *args, **kwargs)

    def is_autocast_enabled(device: Any = "cuda") -> bool:
        return is_enabled("cpu" if _is_gpu(device) else device)

    def get_autocast_dtype(device: Any) -> Any:
        if not _is_gpu(device):
            return dtype_of(device)
        return dtype_of("cpu") if is_enabled("cpu") else torch.float16

    yield torch.autocast, "__init__", autocast
    yield torch, "is_autocast_enabled", is_autocast_enabled
    yield torch, "get_autocast_dtype", get_autocast_dtype
    yield from ((torch.amp, name, _on_cpu(getattr(torch.amp, name))) for name in ("custom_fwd", "custom_bwd"))


def _cuda_names(target: str) -> dict[str, Any]:
    """The names of `torch.cuda`, and what they are for a GPU of the kind `target`."""
    known = target_named(target)
    capability = divmod(known.capability, 10)
    properties = SimpleNamespace(
        name=f"NVIDIA {target}", major=capability[0], minor=capability[1], multi_processor_count=MULTIPROCESSORS,
        total_memory=_MEMORY, shared_memory_per_block=48 << 10, shared_memory_per_block_optin=known.shared_bytes,
        shared_memory_per_multiprocessor=known.shared_bytes + 1024, max_threads_per_multi_processor=2048,
        max_threads_per_block=1024, regs_per_multiprocessor=65536, warp_size=32, L2_cache_size=50 << 20,
        is_integrated=0, is_multi_gpu_board=0, uuid="", pci_bus_id=0, pci_device_id=0, pci_domain_id=0,
        gcnArchName="",
    )  # fmt: skip
    stream = Stream()
    names: dict[str, Any] = {name: _answer(None) for name in _NOTHING}
    names |= {name: _answer(value) for name, value in _NUMBERS.items()}
    return names | {
        "device": Device,
        "device_of": Device,
        "_DeviceGuard": Device,
        "Stream": Stream,
        "ExternalStream": Stream,
        "Event": Event,
        "stream": Device,
        "current_stream": _answer(stream),
        "default_stream": _answer(stream),
        "get_device_capability": _answer(capability),
        "get_device_properties": _answer(properties),
        "get_device_name": _answer(properties.name),
        "get_arch_list": _answer([f"sm_{known.capability}"]),
        "is_bf16_supported": _answer(capability >= (8, 0)),
        "memory_stats": _answer({}),
        # What a GPU draws is drawn by the CPU's generator.
        "manual_seed": _seed,
        "manual_seed_all": _seed,
        "get_rng_state": _rng_state,
        "set_rng_state": _set_rng_state,
    }


def _seed(seed: Any) -> None:
    torch_module().default_generator.manual_seed(int(seed))


def _rng_state(device: Any = None) -> Any:
    return torch_module().default_generator.get_state()


def _set_rng_state(state: Any, device: Any = None) -> None:
    torch_module().default_generator.set_state(state)


class Device(nullcontext[None]):
    """`torch.cuda.device`, and `torch.cuda.stream`: the only one."""

    idx = 0

    def __init__(self, device: Any = None):
        super().__init__()


class Stream:
    """A stream whose work is done when it is launched."""

    def __init__(self, device: Any = None, priority: int = 0, **_: Any):
        self.device = device
        self.priority = priority
        self.cuda_stream = self.stream_id = self.device_index = 0

    def synchronize(self) -> None:
        """Return at once: there is no GPU."""

    def query(self) -> bool:
        """True: all has run."""
        return True

    def record_event(self, event: Event | None = None) -> Event:
        """The event, recorded now."""
        event = event or Event()
        event.record()
        return event

    def wait_event(self, event: Event) -> None:
        """Return at once: there is no GPU."""

    def wait_stream(self, stream: Stream) -> None:
        """Return at once: there is no GPU."""

    def __enter__(self) -> Stream:
        """The only stream is the current one."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave everything as it is."""


class Event:
    """The CPU's clock, asked as a CUDA event is."""

    def __init__(self, enable_timing: bool = False, **_: Any):
        self._at = 0.0

    def record(self, stream: Any = None) -> None:
        """Keep the time."""
        self._at = time.perf_counter()

    def synchronize(self) -> None:
        """Return at once: there is no GPU."""

    def wait(self, stream: Any = None) -> None:
        """Return at once: there is no GPU."""

    def query(self) -> bool:
        """True: all before has run."""
        return True

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds to another event."""
        return (end._at - self._at) * 1e3


def _generator(stock: Any) -> type:
    """`torch.Generator`, which makes one of the CPU where one of a GPU is asked for."""

    class Kind(type):
        def __call__(cls, device: Any = "cpu") -> Any:
            return stock("cpu" if _is_gpu(device) else device)

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, stock)

    return Kind("Generator", (), {})


def _method(cls: type, name: str) -> Callable[..., Any]:
    """A method of a class, by its name in the base that has it: in this form `torch.compile` looks through it."""
    base = next((each for each in cls.__mro__[1:] if name in vars(each)), None)
    if base is None:
        return getattr(cls, name)

    @functools.wraps(getattr(cls, name))
    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(base, name)(*args, **kwargs)

    return call


def _itself(tensor: Any, *_: Any, **__: Any) -> Any:
    return tensor


def _is_cuda(tensor: Any) -> bool:
    """A tensor that says where it is: on the GPU that is not there."""
    return tensor.device.type == "cpu"


def _answer(value: Any) -> Callable[..., Any]:
    """A function that returns the same, whatever it is asked."""

    def answer(*_: Any, **__: Any) -> Any:
        return value

    return answer


_KEYWORDS = ("device", "device_type", "device_types", "map_location")


def _on_cpu(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            for name in _KEYWORDS:
                if _is_gpu(kwargs.get(name)):
                    kwargs[name] = "cpu"
            # Pages are pinned for a GPU.
            kwargs.pop("pin_memory", None)
        if any(map(_is_gpu, args)):
            args = tuple("cpu" if _is_gpu(each) else each for each in args)
        return function(*args, **kwargs)

    return call


def _is_gpu(device: Any) -> bool:
    """Return whether something names a GPU as a device."""
    if isinstance(device, str):
        return device == "cuda" or device.startswith("cuda:")
    # Not `torch.Tensor.type`, which is a method.
    return type(device).__name__ == "device" and device.type == "cuda"
