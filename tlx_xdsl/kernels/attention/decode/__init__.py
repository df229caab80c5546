"""Attention of few queries to a long cache: `attention_decode(q, k, v, lengths=...)`, and latent heads (`mla`)."""

from typing import TYPE_CHECKING

from ... import face

if TYPE_CHECKING:
    from .call import *

__getattr__ = face("tlx_xdsl.kernels.attention.decode.call")
