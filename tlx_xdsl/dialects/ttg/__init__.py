"""The `ttg` dialect: layouts, buffers in shared memory, warp specialisation."""

from __future__ import annotations

from tlx_xdsl.dialects.base.operation import dialect_of
from tlx_xdsl.dialects.ttg.asynchronous import *
from tlx_xdsl.dialects.ttg.attrs import *
from tlx_xdsl.dialects.ttg.local import *
from tlx_xdsl.dialects.ttg.registers import *
from tlx_xdsl.dialects.ttg.types import *
from tlx_xdsl.dialects.ttg.views import *
from tlx_xdsl.dialects.ttg.warp_specialize import *

TTG = dialect_of("ttg", globals())
