"""A stand-in for Triton where it is not installed, such as on macOS and Windows: for scripts that run on the CPU.

Its language is ours, its kernels are launched as machine code, its tuners are those of the CPU. What scripts use of
Triton beside that, such as its compiler, is not here.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.grid import cdiv
from tlx_xdsl.interpreter.faults import Fault
from tlx_xdsl.language.core import constexpr_function
from tlx_xdsl.runtime.host.autotune import Config, CpuAutotuner, Heuristics, autotune, heuristics
from tlx_xdsl.runtime.host.kernel import CpuKernel
from tlx_xdsl.runtime.host.measure import do_bench, do_bench_without_warmup
from tlx_xdsl.runtime.jit import jit
from tlx_xdsl.runtime.launch.tensor_descriptor import TensorDescriptor
from tlx_xdsl.targets import target_named

from .cuda_as_cpu import MULTIPROCESSORS, torch_module

VERSION = "3.9.0"
"""The newest Triton whose language ours is."""

_LANGUAGE = ("", ".extra", ".extra.cuda", ".extra.libdevice", ".core", ".math", ".random", ".standard")


def stand_in_modules(target: str) -> dict[str, ModuleType]:
    """The modules of the stand-in, by the names under which scripts import them.

    They answer for a GPU of the kind `target`, by which scripts choose their configurations.
    """
    modules = {f"triton.language{name}": importlib.import_module(f"tlx_xdsl.language{name}") for name in _LANGUAGE}
    modules["triton.language.extra.cuda.libdevice"] = modules["triton.language.extra.libdevice"]
    driver = SimpleNamespace(active=_Driver(target))
    errors = {"CompilationError": CompilationError, "InterpreterError": Fault, "TritonError": Exception}
    tuning = {"Autotuner": CpuAutotuner, "Config": Config, "Heuristics": Heuristics}
    decorators = {"autotune": autotune, "heuristics": heuristics}
    runtime = {**tuning, **decorators, "JITFunction": CpuKernel, "KernelInterface": CpuKernel}
    modules |= {
        "triton.testing": _module("triton.testing", do_bench=do_bench, do_bench_cudagraph=do_bench_without_warmup),
        "triton.runtime.driver": _module("triton.runtime.driver", driver=driver),
        "triton.runtime.autotuner": _module("triton.runtime.autotuner", **tuning, **decorators),
        "triton.runtime.jit": _module("triton.runtime.jit", jit=jit, JITFunction=CpuKernel, KernelInterface=CpuKernel),
        "triton.runtime.errors": _module("triton.runtime.errors", **errors),
        "triton.runtime": _module("triton.runtime", **runtime),
        "triton.tools.tensor_descriptor": _module("triton.tools.tensor_descriptor", TensorDescriptor=TensorDescriptor),
        "triton.tools": _module("triton.tools"),
        "triton": _module(
            "triton",
            __version__=VERSION,
            jit=jit,
            cdiv=cdiv,
            next_power_of_2=_next_power_of_2,
            constexpr_function=constexpr_function,
            must_use_result=_as_it_is,
            set_allocator=_as_it_is,
            **errors,
            **tuning,
            **decorators,
        ),
    }
    for name, module in modules.items():
        package, _, last = name.rpartition(".")
        # Those of our language have their parts.
        if package and modules[package].__name__.startswith("triton"):
            setattr(modules[package], last, module)
    # Triton has an object there that hides its module.
    modules["triton.runtime"].__dict__["driver"] = driver
    return modules


def _module(name: str, **names: Any) -> ModuleType:
    module = ModuleType(name, "A stand-in of tlx_xdsl for scripts that run on the CPU.")
    module.__path__ = []
    module.__dict__.update(names)
    return module


def _next_power_of_2(n: int) -> int:
    """The smallest power of two that is not below `n`."""
    return 1 << max(n - 1, 0).bit_length() if n else 0


def _as_it_is(value: Any = None, *_: Any) -> Any:
    """Return what needs nothing to be done."""
    return value


class _Driver:
    """Stand-in for Triton's driver, with the answers that scripts ask for."""

    def __init__(self, target: str):
        known = target_named(target)
        self._target = SimpleNamespace(backend="cuda", arch=known.capability, warp_size=32)
        self.utils = SimpleNamespace(
            get_device_properties=lambda device=0: {
                "max_shared_mem": known.shared_bytes,
                "max_num_regs": 65536,
                "multiprocessor_count": MULTIPROCESSORS,
                "warpSize": 32,
            }
        )

    def get_current_target(self) -> Any:
        """The GPU that scripts see."""
        return self._target

    def get_current_device(self) -> int:
        """The number of the only device."""
        return 0

    def get_active_torch_device(self) -> Any:
        """Return where scripts are to put their tensors."""
        return torch_module().device("cpu")

    def get_benchmarker(self) -> Callable[..., Any]:
        """Return how an autotuner measures."""
        return do_bench


def install_stand_in(target: str) -> Sequence[str]:
    """Let scripts import the stand-in; returns the names that `remove_stand_in` takes."""
    modules = stand_in_modules(target)
    sys.modules.update(modules)
    return list(modules)


def remove_stand_in(names: Sequence[str]) -> None:
    """Take the stand-in back."""
    for name in names:
        sys.modules.pop(name, None)
