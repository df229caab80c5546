"""The `tlx` dialect: what TLX has and no version of stock Triton's dialects has an operation for.

Storage aliasing (`storage_alias`), layouts that the user asks for (`layouts`), named barriers and fences (`barriers`),
clusters of CTAs with tensors of their own (`cluster`), bulk copies and prefetches (`copies`), and single instructions
(`special`).
"""

from __future__ import annotations

from tlx_xdsl.dialects.base.operation import dialect_of
from tlx_xdsl.dialects.tlx.barriers import *
from tlx_xdsl.dialects.tlx.cluster import *
from tlx_xdsl.dialects.tlx.copies import *
from tlx_xdsl.dialects.tlx.layouts import *
from tlx_xdsl.dialects.tlx.special import *
from tlx_xdsl.dialects.tlx.storage_alias import *
from tlx_xdsl.dialects.tlx.types import *

TLX = dialect_of("tlx", globals())
