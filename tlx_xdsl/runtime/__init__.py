"""Compilation, runs and launches of kernels: source becomes text and binaries.

`TensorDescriptor` describes a tensor for TMA; `Launcher` launches a cubin through the CUDA driver alone.
`write_bundle` compiles a kernel to a folder of files, and `load` launches it from there, without a compiler.
`compile_many` compiles many configurations (docs/sweeps.md). `assume_target` has Triton's runtime compile where there
is no GPU. Importing this package needs neither torch, Triton nor a GPU; `available()` says whether kernels can be
launched here.

Packages, each of which imports only those above it:

- `launch/`, `show/`: the CUDA driver and launches through it; pages for notebooks;
- the files here: the compile driver (`compilation`: source to text, `build`: to a launcher, `interpret`: to a run on
  the CPU, `steps`: pass by pass), and `kernel`, which offers them as methods;
- `jit/`: kernels on Triton's runtime; `bundle/`: kernels compiled ahead of time; `sweep/`: many configurations.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .bundle.load import LoadedBundle, load
from .bundle.manifest import BundleError
from .launch.cuda_driver import CudaDriverError, available
from .launch.launcher import Launcher
from .launch.parameters import ArgumentSpec
from .launch.tensor_descriptor import TensorDescriptor

if TYPE_CHECKING:
    from .bundle.write import write_bundle
    from .jit.stand_in_driver import assume_target
    from .sweep import Job, SweepReport, bench, compile_many, sweep_jobs

__all__ = [
    "ArgumentSpec",
    "BundleError",
    "CudaDriverError",
    "Job",
    "Launcher",
    "LoadedBundle",
    "SweepReport",
    "TensorDescriptor",
    "assume_target",
    "available",
    "bench",
    "compile_many",
    "load",
    "sweep_jobs",
    "write_bundle",
]

_HOMES = {
    "assume_target": "tlx_xdsl.runtime.jit.stand_in_driver",
    "write_bundle": "tlx_xdsl.runtime.bundle.write",
    **dict.fromkeys(("Job", "SweepReport", "bench", "compile_many", "sweep_jobs"), "tlx_xdsl.runtime.sweep"),
}
"""Loaded when they are first used: launching needs no compiler."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tlx_xdsl.runtime' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
