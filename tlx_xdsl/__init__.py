"""tlx_xdsl: a pure-Python compiler for Triton's TLX (low-level extensions), built on xDSL.

The names below are loaded when they are first used: importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tlx_xdsl.errors import CompilationError
from tlx_xdsl.version import __version__

if TYPE_CHECKING:
    from tlx_xdsl.language.core import constexpr_function
    from tlx_xdsl.runtime.interpret import Interpretation, interpret, interpret_text
    from tlx_xdsl.runtime.jit import jit
    from tlx_xdsl.runtime.jit.autotune import Config, autotune
    from tlx_xdsl.runtime.kernel import Kernel
    from tlx_xdsl.runtime.launch.tensor_descriptor import TensorDescriptor
    from tlx_xdsl.runtime.show.pages import show
    from tlx_xdsl.runtime.steps import Step, first_step

__all__ = [
    "CompilationError",
    "Config",
    "Interpretation",
    "Kernel",
    "Step",
    "TensorDescriptor",
    "__version__",
    "autotune",
    "constexpr_function",
    "first_step",
    "interpret",
    "interpret_text",
    "jit",
    "show",
]

_HOMES = {
    "Config": "tlx_xdsl.runtime.jit.autotune",
    "Interpretation": "tlx_xdsl.runtime.interpret",
    "Kernel": "tlx_xdsl.runtime.kernel",
    "Step": "tlx_xdsl.runtime.steps",
    "TensorDescriptor": "tlx_xdsl.runtime.launch.tensor_descriptor",
    "autotune": "tlx_xdsl.runtime.jit.autotune",
    "constexpr_function": "tlx_xdsl.language.core",
    "first_step": "tlx_xdsl.runtime.steps",
    "interpret": "tlx_xdsl.runtime.interpret",
    "interpret_text": "tlx_xdsl.runtime.interpret",
    "jit": "tlx_xdsl.runtime.jit",
    "show": "tlx_xdsl.runtime.show.pages",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tlx_xdsl' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
