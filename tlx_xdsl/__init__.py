"""tlx_xdsl: a pure-Python compiler for Triton's TLX (low-level extensions), built on xDSL.

The names below are loaded when they are first used: importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.version import __version__

if TYPE_CHECKING:
    from tlx_xdsl.language.core import constexpr_function
    from tlx_xdsl.ptx.launch import run_ptx
    from tlx_xdsl.ptx.tensor_map import TensorMap
    from tlx_xdsl.runtime.check import check
    from tlx_xdsl.runtime.cpu.pool import cpu_threads, set_cpu_threads
    from tlx_xdsl.runtime.interpret import Interpretation, interpret, interpret_text
    from tlx_xdsl.runtime.jit import jit
    from tlx_xdsl.runtime.jit.tuning import Config, autotune, heuristics
    from tlx_xdsl.runtime.kernel import Kernel
    from tlx_xdsl.runtime.launch.tensor_descriptor import TensorDescriptor
    from tlx_xdsl.runtime.show.pages import show
    from tlx_xdsl.runtime.steps import Step, first_step
    from tlx_xdsl.runtime.uninitialized import uninitialized

__all__ = [
    "CompilationError",
    "Config",
    "Interpretation",
    "Kernel",
    "Step",
    "TensorDescriptor",
    "TensorMap",
    "__version__",
    "autotune",
    "check",
    "constexpr_function",
    "cpu_threads",
    "first_step",
    "heuristics",
    "interpret",
    "interpret_text",
    "jit",
    "run_ptx",
    "set_cpu_threads",
    "show",
    "uninitialized",
]

_HOMES = {
    "Config": "tlx_xdsl.runtime.jit.tuning",
    "Interpretation": "tlx_xdsl.runtime.interpret",
    "Kernel": "tlx_xdsl.runtime.kernel",
    "Step": "tlx_xdsl.runtime.steps",
    "TensorDescriptor": "tlx_xdsl.runtime.launch.tensor_descriptor",
    "TensorMap": "tlx_xdsl.ptx.tensor_map",
    "autotune": "tlx_xdsl.runtime.jit.tuning",
    "check": "tlx_xdsl.runtime.check",
    "constexpr_function": "tlx_xdsl.language.core",
    "cpu_threads": "tlx_xdsl.runtime.cpu.pool",
    "first_step": "tlx_xdsl.runtime.steps",
    "heuristics": "tlx_xdsl.runtime.jit.tuning",
    "interpret": "tlx_xdsl.runtime.interpret",
    "interpret_text": "tlx_xdsl.runtime.interpret",
    "jit": "tlx_xdsl.runtime.jit",
    "run_ptx": "tlx_xdsl.ptx.launch",
    "set_cpu_threads": "tlx_xdsl.runtime.cpu.pool",
    "show": "tlx_xdsl.runtime.show.pages",
    "uninitialized": "tlx_xdsl.runtime.uninitialized",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tlx_xdsl' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
