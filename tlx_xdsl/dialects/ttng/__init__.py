"""The `ttng` dialect: mbarriers, TMA, wgmma, tcgen05 and tensor memory of NVIDIA GPUs."""

from __future__ import annotations

from tlx_xdsl.dialects.base.operation import dialect_of
from tlx_xdsl.dialects.ttng.attrs import *
from tlx_xdsl.dialects.ttng.barrier import *
from tlx_xdsl.dialects.ttng.cluster import *
from tlx_xdsl.dialects.ttng.mma import *
from tlx_xdsl.dialects.ttng.packed import *
from tlx_xdsl.dialects.ttng.tcgen05 import *
from tlx_xdsl.dialects.ttng.tensormap import *
from tlx_xdsl.dialects.ttng.tma import *
from tlx_xdsl.dialects.ttng.tmem import *
from tlx_xdsl.dialects.ttng.tmem_copy import *
from tlx_xdsl.dialects.ttng.types import *

TTNG = dialect_of("ttng", globals())
