"""tlx_xdsl: a pure-Python compiler for Triton's TLX (low-level extensions), built on xDSL.

The names below are loaded when they are first used: importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tlx_xdsl import aliases
from tlx_xdsl.errors import CompilationError
from tlx_xdsl.version import __version__

if TYPE_CHECKING:
    from tlx_xdsl.cpu.runtime.pool import cpu_threads, set_cpu_threads
    from tlx_xdsl.grid import cdiv
    from tlx_xdsl.language.core import constexpr_function
    from tlx_xdsl.ptx.launch import run_ptx
    from tlx_xdsl.ptx.memory.tensor_map import TensorMap
    from tlx_xdsl.runtime.check.run import check
    from tlx_xdsl.runtime.clock.model import clock
    from tlx_xdsl.runtime.driver.host_values import uninitialized
    from tlx_xdsl.runtime.jit import jit
    from tlx_xdsl.runtime.jit.tuning import Config, autotune, heuristics
    from tlx_xdsl.runtime.kernel import Kernel
    from tlx_xdsl.runtime.launch.tensor_descriptor import TensorDescriptor
    from tlx_xdsl.runtime.ranks.nccl_memory import NcclRanks
    from tlx_xdsl.runtime.ranks.nvshmem_memory import NvshmemRanks
    from tlx_xdsl.runtime.ranks.simulated import SimulatedRanks, per_launch, symmetric
    from tlx_xdsl.runtime.ranks.torch_memory import TorchRanks
    from tlx_xdsl.runtime.show.pages import show
    from tlx_xdsl.runtime.simulate.interpret import Interpretation, interpret, interpret_text
    from tlx_xdsl.runtime.steps import Step, first_step

__all__ = [
    "CompilationError",
    "Config",
    "Interpretation",
    "Kernel",
    "NcclRanks",
    "NvshmemRanks",
    "SimulatedRanks",
    "Step",
    "TensorDescriptor",
    "TensorMap",
    "TorchRanks",
    "__version__",
    "autotune",
    "cdiv",
    "check",
    "clock",
    "constexpr_function",
    "cpu_threads",
    "first_step",
    "heuristics",
    "interpret",
    "interpret_text",
    "jit",
    "per_launch",
    "run_ptx",
    "set_cpu_threads",
    "show",
    "symmetric",
    "uninitialized",
]

aliases.install()

_HOMES = {
    "Config": "tlx_xdsl.runtime.jit.tuning",
    "Interpretation": "tlx_xdsl.runtime.simulate.interpret",
    "Kernel": "tlx_xdsl.runtime.kernel",
    "NcclRanks": "tlx_xdsl.runtime.ranks.nccl_memory",
    "NvshmemRanks": "tlx_xdsl.runtime.ranks.nvshmem_memory",
    "SimulatedRanks": "tlx_xdsl.runtime.ranks.simulated",
    "Step": "tlx_xdsl.runtime.steps",
    "TensorDescriptor": "tlx_xdsl.runtime.launch.tensor_descriptor",
    "TensorMap": "tlx_xdsl.ptx.memory.tensor_map",
    "TorchRanks": "tlx_xdsl.runtime.ranks.torch_memory",
    "autotune": "tlx_xdsl.runtime.jit.tuning",
    "cdiv": "tlx_xdsl.grid",
    "check": "tlx_xdsl.runtime.check.run",
    "clock": "tlx_xdsl.runtime.clock.model",
    "constexpr_function": "tlx_xdsl.language.core",
    "cpu_threads": "tlx_xdsl.cpu.runtime.pool",
    "first_step": "tlx_xdsl.runtime.steps",
    "heuristics": "tlx_xdsl.runtime.jit.tuning",
    "interpret": "tlx_xdsl.runtime.simulate.interpret",
    "interpret_text": "tlx_xdsl.runtime.simulate.interpret",
    "jit": "tlx_xdsl.runtime.jit",
    "per_launch": "tlx_xdsl.runtime.ranks.simulated",
    "run_ptx": "tlx_xdsl.ptx.launch",
    "set_cpu_threads": "tlx_xdsl.cpu.runtime.pool",
    "show": "tlx_xdsl.runtime.show.pages",
    "symmetric": "tlx_xdsl.runtime.ranks.simulated",
    "uninitialized": "tlx_xdsl.runtime.driver.host_values",
}


def __getattr__(name: str) -> Any:
    import importlib.util

    if name not in _HOMES:
        # No name was misspelt: a part of a protocol that the package does not have, or `from tlx_xdsl import runtime`,
        # which asks here before it imports.
        if name.startswith("_") or importlib.util.find_spec(f"tlx_xdsl.{name}"):
            raise AttributeError(f"module 'tlx_xdsl' has no attribute '{name}'")
        did_you_mean = importlib.import_module("tlx_xdsl.frontend.python.suggestions").did_you_mean
        raise AttributeError(f"module 'tlx_xdsl' has no attribute '{name}'{did_you_mean(name, __all__)}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """The public names, loaded or not, and what every module has."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
