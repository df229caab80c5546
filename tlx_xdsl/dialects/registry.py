"""The dialects of the tools and of the API, by name; each is imported at its first use."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from xdsl.context import Context
from xdsl.ir import Dialect


def _lazily(module: str, name: str) -> Callable[[], Dialect]:
    return lambda: getattr(import_module(module), name)


OURS = {
    **{name: _lazily(f"tlx_xdsl.dialects.{name}", name.upper()) for name in ("tt", "ttg", "ttng", "tlx")},
    **{name: _lazily(f"tlx_xdsl.ttl.dialects.{name}", name.upper()) for name in ("ttcore", "ttkernel", "ttl")},
}
"""Dialects that this package defines."""

ALL = {
    "affine": _lazily("xdsl.dialects.affine", "Affine"),
    "builtin": _lazily("xdsl.dialects.builtin", "Builtin"),
    "arith": _lazily("tlx_xdsl.dialects.arith", "Arith"),
    "bufferization": _lazily("tlx_xdsl.dialects.bufferization", "Bufferization"),
    "cf": _lazily("xdsl.dialects.cf", "Cf"),
    "emitc": _lazily("tlx_xdsl.ttl.dialects.emitc", "EMITC"),
    "func": _lazily("xdsl.dialects.func", "Func"),
    "gpu": _lazily("tlx_xdsl.dialects.gpu", "GPU"),
    "linalg": _lazily("tlx_xdsl.dialects.linalg", "Linalg"),
    "llvm": _lazily("tlx_xdsl.dialects.llvm", "LLVM"),
    "math": _lazily("xdsl.dialects.math", "Math"),
    "memref": _lazily("tlx_xdsl.dialects.memref", "MemRef"),
    "nvvm": _lazily("tlx_xdsl.dialects.nvvm", "NVVM"),
    "scf": _lazily("tlx_xdsl.dialects.scf", "Scf"),
    "tensor": _lazily("tlx_xdsl.dialects.tensor", "Tensor"),
    "ub": _lazily("xdsl.dialects.ub", "UB"),
    **OURS,
}
"""Every dialect of our pipeline."""


def make_context() -> Context:
    """A context with every dialect of our pipeline."""
    context = Context()
    for name, load in ALL.items():
        context.register_dialect(name, load)
    return context
