"""Inductor's kernels for the CPU as `tlx_xdsl.torch.enable_inductor` has them, each launch between sentinels."""

from __future__ import annotations

import tempfile
import warnings
from importlib import import_module
from typing import Any

from tests.conformance.cpu.cpu_launches import between_sentinels

SOURCES: list[str] = []
"""What inductor has generated in this process."""


def install() -> None:
    """Let `torch.compile` generate Triton kernels for the CPU; a graph that it can't have so is an error."""
    from tlx_xdsl.torch import Fallback, enable_inductor, inductor_kernels

    import_module("os").environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp(prefix="inductor-")
    config: Any = import_module("torch._inductor.config")
    config.compile_threads = 1
    config.fx_graph_cache = False
    # With one configuration each: the first, as for all tuners of the suites.
    config.triton.autotune_pointwise = False
    warnings.simplefilter("error", Fallback)
    load, run = inductor_kernels.load_kernel, inductor_kernels.InductorKernel.run

    def loaded(name: str, source: str) -> Any:
        SOURCES.append(source)
        return load(name, source)

    def run_between(self: Any, *args: Any, **kwargs: Any) -> None:
        between_sentinels("inductor", lambda given, named: run(self, *given, **named), args, kwargs)

    inductor_kernels.load_kernel = loaded
    inductor_kernels.InductorKernel.run = run_between
    enable_inductor()
