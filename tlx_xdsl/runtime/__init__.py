"""Running compiled kernels.

`TensorDescriptor` describes a tensor for TMA; `Launcher` launches a cubin through the CUDA driver alone.
Importing this package needs neither torch, Triton nor a GPU; `available()` says whether kernels can be
launched here. `compile_many` compiles many configurations (docs/sweeps.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tlx_xdsl.runtime.cuda_driver import CudaDriverError, available
from tlx_xdsl.runtime.launcher import ArgumentSpec, Launcher
from tlx_xdsl.runtime.tensor_descriptor import TensorDescriptor

if TYPE_CHECKING:
    from tlx_xdsl.runtime.sweep import Job, SweepReport, compile_many, sweep_jobs

__all__ = [
    "ArgumentSpec",
    "CudaDriverError",
    "Job",
    "Launcher",
    "SweepReport",
    "TensorDescriptor",
    "available",
    "compile_many",
    "sweep_jobs",
]

_OF_SWEEPS = ("Job", "SweepReport", "compile_many", "sweep_jobs")


def __getattr__(name: str) -> Any:
    # Loaded when they are first used: launching needs no compiler.
    if name not in _OF_SWEEPS:
        raise AttributeError(f"module 'tlx_xdsl.runtime' has no attribute '{name}'")
    from tlx_xdsl.runtime import sweep

    return getattr(sweep, name)
