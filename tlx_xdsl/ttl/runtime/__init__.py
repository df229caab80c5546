"""TTL kernels: compiled to C++ for TT-Metalium, and run here on one of three machines."""

from __future__ import annotations

from .compilation import (
    CompiledKernel as CompiledKernel,
    Options as Options,
    compile_kernel as compile_kernel,
    frontend_module as frontend_module,
)
from .execution import MACHINES as MACHINES, Prepared as Prepared, run as run
from .launch import launch_ttnn as launch_ttnn, program_descriptor as program_descriptor
from .specs import specs_of as specs_of
