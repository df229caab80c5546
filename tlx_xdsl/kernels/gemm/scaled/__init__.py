"""Scaled products of 8-bit floats: `scaled_gemm(a, b, scale_a, scale_b)`."""

from typing import TYPE_CHECKING

from ... import face

if TYPE_CHECKING:
    from .call import *

__getattr__ = face("tlx_xdsl.kernels.gemm.scaled.call")
