"""What stands in the place of Triton's names while the drop-in is installed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import triton
import triton.testing
from triton import knobs
from triton.backends.compiler import GPUTarget

from tlx_xdsl.compat.decorator import drop_in
from tlx_xdsl.compat.without_gpu import CompiledKernel, CompiledStockKernel, NoGpu, interpreted, once
from tlx_xdsl.runtime.autotune import Config
from tlx_xdsl.runtime.jit import jit as our_jit


def replacements(mode: str, target: str) -> Iterator[tuple[Any, str, Any]]:
    """Each name that is replaced: what has it, the name, and what it stands for from now on.

    `mode` is one of `installation.Mode`, or `read`. Scripts reach `jit` and `Config` by several ways, Triton itself by
    others.
    """
    # `triton.runtime.jit` is a module, and both hold a `jit`.
    stock = import_module("triton.runtime.jit")
    autotuner = import_module("triton.runtime.autotuner")
    if mode == "interpret" or (mode == "launch" and knobs.runtime.interpret):
        jit = interpreted(target)
    elif mode == "read":
        jit = stock.jit
    elif mode == "compile":
        jit = drop_in(CompiledStockKernel, CompiledKernel)
    else:
        jit = drop_in(stock.jit, our_jit)
    yield from ((owner, "jit", jit) for owner in (triton, stock))
    yield from ((owner, "Config", Config) for owner in (triton, triton.runtime, autotuner))
    if not hasattr(GPUTarget, "is_cuda_backend"):
        # Meta's Triton has this method, by which scripts see where they are.
        yield GPUTarget, "is_cuda_backend", lambda self: self.backend == "cuda"
    if mode != "launch":
        yield import_module("triton.runtime.driver").driver, "_active", NoGpu(target)
        yield from ((triton.testing, name, once) for name in ("do_bench", "do_bench_cudagraph"))
