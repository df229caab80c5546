"""Products of groups of rows with a matrix each: `grouped_gemm(x, w, offsets)`."""

from typing import TYPE_CHECKING

from ... import face

if TYPE_CHECKING:
    from .call import *

__getattr__ = face("tlx_xdsl.kernels.gemm.grouped.call")
