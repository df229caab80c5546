"""Scripts on the CPU: launches run as machine code, on tensors in the CPU's memory."""

# Triton's runtime has no types: what comes from it is of unknown type to a checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tlx_xdsl.runtime.host.measure import do_bench
from tlx_xdsl.runtime.jit.triton_kernel import TritonKernel

from .without_gpu import Launched, NoGpu


class NativeKernel(TritonKernel):
    """A kernel that runs as machine code of the CPU when it is launched; a warm-up compiles for the GPU.

    Scripts ask what a warm-up returns for registers and shared memory, to size their grids.
    """

    def run_here(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, warmup: bool = False) -> Any:
        """Launch on the CPU."""
        compiled = functools.partial(self.run_there, *args, grid=grid, warmup=True, **kwargs)
        return compiled() if warmup else NativeLaunch(super().run_here(grid, args, kwargs), compiled)


class NativeLaunch(Launched):
    """The result of a launch as machine code: what has run, and what the kernel compiles to for the GPU."""

    def __init__(self, program: Any, compiled: Callable[[], Any]):
        super().__init__(compiled)
        self.program = program


def natively(fn: Any = None, **options: Any) -> Any:
    """A decorator with the arguments of `triton.jit` that makes kernels for the CPU."""
    if fn is None:
        return functools.partial(natively, **options)
    return NativeKernel(fn, target="cpu", **options)


class Cpu(NoGpu):
    """A stand-in for Triton's driver: it answers for a GPU that is not there, and measures the CPU."""

    def get_benchmarker(self) -> Callable[..., Any]:
        """Return how an autotuner measures."""
        return do_bench
