"""Inductor's kernels for the CPU by way of `triton.jit`, whoever has taken its place.

Of itself inductor hands the source of a Triton kernel to a pool of processes that compile it for a GPU.
"""

from __future__ import annotations

import tempfile
import warnings
from importlib import import_module
from typing import Any

SOURCES: list[str] = []
"""What inductor has generated in this process."""


def install() -> None:
    """Let `torch.compile` generate Triton kernels for the CPU, and launch what `triton.jit` makes of them."""
    warnings.filterwarnings("ignore", message="Could not find an active CPU backend")
    import_module("os").environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(prefix="inductor-")
    config: Any = import_module("torch._inductor.config")
    config.cpu_backend = "triton"
    config.compile_threads = 1
    config.fx_graph_cache = False
    # With one configuration each: the first, as for all tuners of the suites.
    config.triton.autotune_pointwise = False
    import_module("torch._inductor.async_compile").AsyncCompile.triton = _kernel


def _kernel(_: Any, name: str, source: str, device_str: str = "cuda") -> Any:
    """Return the kernel of a source, which launches its first configuration as it does under Triton's interpreter."""
    SOURCES.append(source)
    kernel = getattr(import_module("torch._inductor.codecache").PyCodeCache.load(source), name)
    kernel.triton_interpret, kernel._cache_eligible = True, False
    return kernel
