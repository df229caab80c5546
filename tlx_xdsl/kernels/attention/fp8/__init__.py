"""Attention forward in fp8 (e4m3)."""

from typing import TYPE_CHECKING

from tlx_xdsl.kernels import face

if TYPE_CHECKING:
    from .call import *

__getattr__ = face("tlx_xdsl.kernels.attention.fp8.call")
