"""The plugin for plain `xdsl-opt`: our dialects and passes.

Our `arith` stays out: a second dialect of that name would break `xdsl-opt` for everybody. So files in which
`arith.select`, `arith.cmpi`, `arith.cmpf` or a cast takes tensors need `tlx-opt`.
"""

from __future__ import annotations

from xdsl.universe import Universe

from tlx_xdsl.dialects.registry import our_dialects
from tlx_xdsl.transforms.registry import our_passes

UNIVERSE = Universe(all_dialects=our_dialects(), all_passes=our_passes())
