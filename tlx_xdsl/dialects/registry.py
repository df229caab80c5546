"""The dialects that our tools and API know, by name; each is imported when it is first met."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.context import Context
from xdsl.ir import Dialect


def _builtin() -> Dialect:
    from xdsl.dialects.builtin import Builtin

    return Builtin


def _arith() -> Dialect:
    from tlx_xdsl.dialects.arith import Arith

    return Arith


def _scf() -> Dialect:
    from tlx_xdsl.dialects.scf import Scf

    return Scf


def _cf() -> Dialect:
    from xdsl.dialects.cf import Cf

    return Cf


def _math() -> Dialect:
    from xdsl.dialects.math import Math

    return Math


def _ub() -> Dialect:
    from xdsl.dialects.ub import UB

    return UB


def _llvm() -> Dialect:
    from tlx_xdsl.dialects.llvm import LLVM

    return LLVM


def _nvvm() -> Dialect:
    from tlx_xdsl.dialects.nvvm import NVVM

    return NVVM


def _gpu() -> Dialect:
    from tlx_xdsl.dialects.gpu import GPU

    return GPU


def _tt() -> Dialect:
    from tlx_xdsl.dialects.tt import TT

    return TT


def _ttg() -> Dialect:
    from tlx_xdsl.dialects.ttg import TTG

    return TTG


def _ttng() -> Dialect:
    from tlx_xdsl.dialects.ttng import TTNG

    return TTNG


def _tlx() -> Dialect:
    from tlx_xdsl.dialects.tlx import TLX

    return TLX


OURS: dict[str, Callable[[], Dialect]] = {"tt": _tt, "ttg": _ttg, "ttng": _ttng, "tlx": _tlx}
"""Dialects that this package defines."""

ALL: dict[str, Callable[[], Dialect]] = {
    "builtin": _builtin,
    "arith": _arith,
    "cf": _cf,
    "gpu": _gpu,
    "llvm": _llvm,
    "math": _math,
    "nvvm": _nvvm,
    "scf": _scf,
    "ub": _ub,
    **OURS,
}
"""Every dialect of our pipeline."""


def make_context() -> Context:
    """A context that knows every dialect of our pipeline."""
    context = Context()
    for name, load in ALL.items():
        context.register_dialect(name, load)
    return context
