"""The cross-entropy of a linear layer, whose logits are never in memory whole: `linear_cross_entropy(x, w, target)`."""

from typing import TYPE_CHECKING

from .. import face

if TYPE_CHECKING:
    from .call import *

__getattr__ = face("tlx_xdsl.kernels.linear_cross_entropy.call")
