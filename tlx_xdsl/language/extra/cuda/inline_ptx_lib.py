"""Arithmetic that scripts for Meta's Triton import from its module of this name.

There, the functions on pairs are PTX for Blackwell's packed fp32 instructions. Here they are the arithmetic itself:
the same numbers on every GPU and in the interpreter; whether it is packed, stock Triton and ptxas decide.
"""

from __future__ import annotations

from tlx_xdsl.language.dtypes import float32
from tlx_xdsl.language.marks import library
from tlx_xdsl.language.math import fma
from tlx_xdsl.language.matrix import inline_asm_elementwise
from tlx_xdsl.language.objects import tensor

__all__ = ["_fma_f32x2", "_mul_f32x2", "_reduce_fadd2", "_sub_f32x2", "tanh_approx_fp32"]


@library()
def _mul_f32x2(a: tensor, b: tensor) -> tensor:
    """The product a * b of fp32."""
    return a * b


@library()
def _sub_f32x2(a: tensor, b: tensor) -> tensor:
    """The difference a - b of fp32."""
    return a - b


@library()
def _fma_f32x2(a: tensor, b: tensor, c: tensor) -> tensor:
    """The sum a * b + c of fp32, rounded once."""
    return fma(a, b, c)


@library()
def _reduce_fadd2(p0a: tensor, p1a: tensor, p0b: tensor, p1b: tensor) -> tuple[tensor, tensor]:
    """The sums of two reductions side by side: (p0a + p0b, p1a + p1b); for `tl.reduce` of a pair."""
    return p0a + p0b, p1a + p1b


@library()
def tanh_approx_fp32(x: tensor) -> tensor:
    """tanh(x) of fp32 with a relative error of about 2**-11 (PTX `tanh.approx.f32`)."""
    return inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=float32, is_pure=True, pack=1)
