"""`torch.cuda` on a machine without a GPU, as tests of kernels use it: CUDA's tensors lie in the CPU's memory."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from tlx_xdsl.targets import target_named


class _OnTheCpu(TorchFunctionMode):
    """Mode that does on the CPU whatever is asked of the device `cuda`."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.cuda:
            return args[0]
        if func == torch.Tensor.is_cuda.__get__:  # type: ignore[attr-defined]
            return True
        args = tuple(map(_cpu, args))
        return func(*args, **{name: _cpu(value) for name, value in (kwargs or {}).items()})


class _Generator(torch.Generator):
    def __new__(cls, device: Any = "cpu") -> Any:
        return super().__new__(cls, _cpu(device))


class _Device(nullcontext[None]):
    """`torch.cuda.device`: the only one."""

    idx = 0

    def __init__(self, device: Any):
        super().__init__()


def _cpu(value: Any) -> Any:
    if (isinstance(value, str) and value.partition(":")[0] == "cuda") or (
        isinstance(value, torch.device) and value.type == "cuda"
    ):
        return torch.device("cpu")
    return value


def install(target: str) -> None:
    """Fake `torch.cuda`, with a GPU of the kind `target`, for the rest of the process."""
    chosen = target_named(target)
    capability = divmod(chosen.capability, 10)
    properties = SimpleNamespace(
        name=f"NVIDIA {target}", major=capability[0], minor=capability[1], multi_processor_count=132,
        total_memory=80 << 30, shared_memory_per_block_optin=chosen.shared_bytes, warp_size=32,
    )  # fmt: skip
    fakes: dict[str, Any] = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda *_: None,
        "device": _Device,
        "_DeviceGuard": _Device,
        "get_device_capability": lambda *_: capability,
        "get_device_properties": lambda *_: properties,
        "get_device_name": lambda *_: properties.name,
        "synchronize": lambda *_: None,
        "empty_cache": lambda: None,
        "manual_seed": lambda *_: None,
        "manual_seed_all": lambda *_: None,
    }
    for name, value in fakes.items():
        setattr(torch.cuda, name, value)
    torch.version.cuda = "12.8"
    torch._C._cuda_getCurrentRawStream = lambda *_: 0  # type: ignore[attr-defined]
    torch.Generator = _Generator  # type: ignore[misc]
    _OnTheCpu().__enter__()
    # The mode is of a thread.
    run = threading.Thread.run

    def run_on_the_cpu(self: threading.Thread) -> None:
        with _OnTheCpu():
            run(self)

    threading.Thread.run = run_on_the_cpu  # type: ignore[method-assign]
