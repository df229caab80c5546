"""Attention: forward here, its gradients in `backward/`, long caches in `decode/`, 8 bits in `fp8/`."""

from typing import TYPE_CHECKING

from .. import face

if TYPE_CHECKING:
    from .forward import *

__getattr__ = face("tlx_xdsl.kernels.attention.forward")
