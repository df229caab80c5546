"""TTL kernels: compiled to C++ for TT-Metalium, and run here on one of three machines."""

from __future__ import annotations

from tlx_xdsl.ttl.runtime.compilation import (
    CompiledKernel as CompiledKernel,
    Options as Options,
    compile_kernel as compile_kernel,
    frontend_module as frontend_module,
)
from tlx_xdsl.ttl.runtime.execution import MACHINES as MACHINES, Prepared as Prepared, run as run
from tlx_xdsl.ttl.runtime.specs import specs_of as specs_of
