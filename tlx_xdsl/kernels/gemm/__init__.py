"""Products in half precision here: `gemm(a, b)`; of 8-bit floats in `scaled/`, of groups in `grouped/`."""

from typing import TYPE_CHECKING

from .. import face

if TYPE_CHECKING:
    from .dense import *

__getattr__ = face("tlx_xdsl.kernels.gemm.dense")
