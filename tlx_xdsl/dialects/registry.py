"""The dialects of the tools and of the API, by name; each is imported at its first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from xdsl.context import Context
from xdsl.ir import Dialect

from tlx_xdsl import wings

_HOMES = {
    "affine": "xdsl.dialects.affine:Affine",
    "arith": "tlx_xdsl.dialects.arith:Arith",
    "bufferization": "tlx_xdsl.dialects.bufferization:Bufferization",
    "builtin": "xdsl.dialects.builtin:Builtin",
    "cf": "xdsl.dialects.cf:Cf",
    "func": "xdsl.dialects.func:Func",
    "gpu": "tlx_xdsl.dialects.gpu:GPU",
    "linalg": "tlx_xdsl.dialects.linalg:Linalg",
    "llvm": "tlx_xdsl.dialects.llvm:LLVM",
    "math": "xdsl.dialects.math:Math",
    "memref": "tlx_xdsl.dialects.memref:MemRef",
    "nvvm": "tlx_xdsl.dialects.nvvm:NVVM",
    "scf": "tlx_xdsl.dialects.scf:Scf",
    "tensor": "tlx_xdsl.dialects.tensor:Tensor",
    "tlx": "tlx_xdsl.dialects.tlx:TLX",
    "tt": "tlx_xdsl.dialects.tt:TT",
    "ttg": "tlx_xdsl.dialects.ttg:TTG",
    "ttng": "tlx_xdsl.dialects.ttng:TTNG",
    "ub": "xdsl.dialects.ub:UB",
}
"""The dialects of the core: ours, and those of MLIR with our operations."""

_OURS = ("tlx", "tt", "ttg", "ttng")


@cache
def all_dialects() -> dict[str, Callable[[], Dialect]]:
    """Every dialect of our pipelines and of the wings."""
    places = {**_HOMES, **{name: place for name, (place, _) in wings.names("dialects", _HOMES).items()}}
    return {name: partial(wings.attribute, place) for name, place in places.items()}


def our_dialects() -> dict[str, Callable[[], Dialect]]:
    """The dialects that no other package defines: those of the core, and those of our wings but for MLIR's `emitc`."""
    of_wings = [name for name, (_, by) in wings.names("dialects", _HOMES).items() if by.is_ours and name != "emitc"]
    return {name: all_dialects()[name] for name in (*_OURS, *of_wings)}


def make_context() -> Context:
    """A context with every dialect of our pipelines and of the wings."""
    context = Context()
    for name, load in all_dialects().items():
        context.register_dialect(name, load)
    return context
