"""The options of a compile: the target, the launch-wide choices, and the version of Triton."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Literal, TypeAlias

from tlx_xdsl.errors import InputError
from tlx_xdsl.targets import target_named


@cache
def installed_triton_version() -> str | None:
    """Return the version of the installed `triton` distribution, such as `3.9.0`; None if there is none.

    Reads the distribution's metadata only, once in a process: importing Triton costs 0.1 to 0.2 s and loads a shared
    library.
    """
    try:
        return metadata.version("triton")
    except metadata.PackageNotFoundError:
        return None


UpTo: TypeAlias = Literal["ttgir", "llir", "ptx", "cubin"]
"""The last product wanted: TTGIR after the stock passes, LLVM IR, PTX, or the device binary."""

Isolation: TypeAlias = Literal["process", "none"]
"""`process`: a worker process, which may die without hurting the caller. `none`: in the caller's process."""

MOST_REGISTERS = 255
"""32-bit registers that a thread can have. Source: CUDA C++ Programming Guide, "Compute Capabilities"."""

PTXAS_VARIABLE = "TLX_PTXAS"
"""A path, a release or `stock`: which ptxas assembles where no option says it."""
ALLOW_VARIABLE = "TLX_ALLOW_OLD_PTXAS"

FP_FUSION_VARIABLE = "TRITON_DEFAULT_FP_FUSION"
TRUE = ("1", "true", "on", "y", "yes")
"""What Triton reads as true in a variable of the environment; all else is false."""
_FIRST_WITHOUT_FP_FUSION = (3, 10)
"""The first Triton that contracts nothing by default, as 3.9 announces (`triton._utils.FP_FUSION_DEFAULT_WARNING`)."""


def default_fp_fusion(triton_version: str) -> bool:
    """Return whether Triton of this version, such as `3.9.0`, contracts `a * b + c` where a launch does not say.

    The variable `TRITON_DEFAULT_FP_FUSION` comes first, as in Triton.
    """
    said = os.environ.get(FP_FUSION_VARIABLE)
    if said is not None:
        return said.lower() in TRUE
    numbers = [int(number) for number in re.findall(r"\d+", triton_version)[:2]]
    return tuple(numbers) < _FIRST_WITHOUT_FP_FUSION


@dataclass(frozen=True)
class BackendOptions:
    """The options with which stock Triton compiles one module.

    `target` is an `sm_` name. Stock always generates for the architecture-specific variant from capability 90
    on, so `sm_90` and `sm_90a` give the same binary.

    `num_warps` (warps of the default partition) and `num_ctas` (CTAs per cluster) must equal what the module
    says in `ttg.num-warps` and `ttg.num-ctas`; a difference is an error, for one of the two would be wrong at
    launch.

    `maxnreg` caps the 32-bit registers per thread; None leaves what the module says. `enable_fp_fusion` lets
    LLVM and ptxas contract `a * b + c` to a fused multiply-add; None is the default of launches (`default_fp_fusion`).
    `num_stages` is the depth of the software pipeline
    that stock Triton makes of the loops of a plain kernel, with 0 and 1 none; a kernel with explicit buffers has its
    own.

    `check_resources` refuses a kernel that can never launch on the target, before LLVM and ptxas work on it. Without
    it such a kernel is compiled all the same: its PTX can be read, but no driver loads it.

    `ptxas` pins the assembler: a path, a release such as `13.4`, or `stock` for what stock Triton takes; without it the
    newest one is taken whose binaries load on a driver of the major CUDA version `newest_cuda` (`assemblers.py`).
    `allow_old_ptxas` goes on with one that is known to miscompile the kernel's products, and says nothing of one that
    may.

    `mends` puts right what the Triton version is known to miscompile (`defects.py`). Without it the code is what stock
    Triton alone makes.
    """

    target: str = "sm_90a"
    num_warps: int = 4
    num_ctas: int = 1
    maxnreg: int | None = None
    enable_fp_fusion: bool | None = None
    num_stages: int = 3
    check_resources: bool = True
    mends: bool = True
    ptxas: str | None = None
    newest_cuda: int | None = None
    allow_old_ptxas: bool = False

    def __post_init__(self):
        """Refuse what stock Triton would only stumble over later."""
        target_named(self.target)
        if self.num_warps < 1 or self.num_warps & (self.num_warps - 1):
            raise InputError(f"num_warps: expected a power of two, got {self.num_warps}")
        if self.num_ctas < 1:
            raise InputError(f"num_ctas: expected a positive integer, got {self.num_ctas}")
        if self.num_stages < 0:
            raise InputError(f"num_stages: expected 0 or more, got {self.num_stages}")
        if self.maxnreg is not None and not 1 <= self.maxnreg <= MOST_REGISTERS:
            raise InputError(f"maxnreg: expected 1 to {MOST_REGISTERS}, got {self.maxnreg}")

    @property
    def capability(self) -> int:
        """The compute capability as Triton writes it: 90 for `sm_90a`, 100 for `sm_100a`."""
        return target_named(self.target).capability
