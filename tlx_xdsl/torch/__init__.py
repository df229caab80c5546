"""Kernels in torch: as its operators, and as what `torch.compile` makes for CPUs.

`op` makes an operator of the function that launches a kernel; `enable_inductor` lets `torch.compile` generate Triton
for tensors in the CPU's memory, which runs as machine code (docs/torch.md). Importing this package imports no torch.
"""

from .inductor import Fallback, disable_inductor, enable_inductor, inductor_enabled
from .operators import no_launches, op

__all__ = ["Fallback", "disable_inductor", "enable_inductor", "inductor_enabled", "no_launches", "op"]
