"""What NVIDIA GPUs have beyond the language: special registers, dependent launches."""

from __future__ import annotations

from typing import Any

from tlx_xdsl.language.extra import libdevice as libdevice
from tlx_xdsl.language.marks import builtin

__all__ = [
    "gdc_launch_dependents",
    "gdc_wait",
    "globaltimer",
    "libdevice",
    "num_threads",
    "num_warps",
    "smid",
]

_cuda = builtin("tl.extra.cuda")


@_cuda
def gdc_wait() -> Any:
    """Wait until the kernels that this one depends on have finished (PTX `griddepcontrol.wait`, sm_90)."""


@_cuda
def gdc_launch_dependents() -> Any:
    """Let the kernels that depend on this one start (PTX `griddepcontrol.launch_dependents`, sm_90)."""


@_cuda
def globaltimer() -> Any:
    """The GPU's clock in nanoseconds, an int64 (PTX `%globaltimer`)."""


@_cuda
def smid() -> Any:
    """The number of the multiprocessor that the program runs on, an int32 (PTX `%smid`)."""


@_cuda
def num_threads() -> Any:
    """Threads of the program, a constexpr."""


@_cuda
def num_warps() -> Any:
    """Warps of the program, a constexpr."""
