"""The `ttl` dialect: kernels for Tenstorrent's cores as threads that exchange blocks of tiles through circular buffers.

Kernels and their threads (`kernel`), circular buffers and transfers (`buffers`), pipes and semaphores (`pipes`),
computing with blocks (`compute`) and with single tiles (`tiles`).
"""

from __future__ import annotations

from tlx_xdsl.dialects.base.operation import dialect_of

from .base import *
from .buffers import *
from .compute import *
from .compute import BLOCK_FUNCTIONS
from .kernel import *
from .pipes import *
from .printing import *
from .protocol import *
from .tiles import *
from .tiles import TILE_FUNCTIONS
from .types import *

_GENERATED = {op.name: op for ops in (BLOCK_FUNCTIONS, TILE_FUNCTIONS) for op in ops.values()}
TTL = dialect_of("ttl", {**globals(), **_GENERATED})
