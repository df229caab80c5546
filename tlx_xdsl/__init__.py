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
    from tlx_xdsl.runtime.jit import Kernel, jit
    from tlx_xdsl.runtime.tensor_descriptor import TensorDescriptor

__all__ = [
    "CompilationError",
    "Interpretation",
    "Kernel",
    "TensorDescriptor",
    "__version__",
    "constexpr_function",
    "interpret",
    "interpret_text",
    "jit",
]

_HOMES = {
    "Interpretation": "tlx_xdsl.runtime.interpret",
    "Kernel": "tlx_xdsl.runtime.jit",
    "TensorDescriptor": "tlx_xdsl.runtime.tensor_descriptor",
    "constexpr_function": "tlx_xdsl.language.core",
    "interpret": "tlx_xdsl.runtime.interpret",
    "interpret_text": "tlx_xdsl.runtime.interpret",
    "jit": "tlx_xdsl.runtime.jit",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tlx_xdsl' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
