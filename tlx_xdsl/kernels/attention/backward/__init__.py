"""The gradients of attention: `attention_backward(q, k, v, out, lse, dout)`."""

from typing import TYPE_CHECKING

from ... import face

if TYPE_CHECKING:
    from .call import *

__getattr__ = face("tlx_xdsl.kernels.attention.backward.call")
