"""The `ttl` dialect: kernels for Tenstorrent's cores as threads that exchange blocks of tiles through circular buffers.

Kernels and their threads (`kernel`), circular buffers and transfers (`buffers`), pipes and semaphores (`pipes`),
computing with blocks (`compute`) and with single tiles (`tiles`).
"""

from __future__ import annotations

from tlx_xdsl.dialects.base.operation import dialect_of
from tlx_xdsl.ttl.dialects.ttl.base import *
from tlx_xdsl.ttl.dialects.ttl.buffers import *
from tlx_xdsl.ttl.dialects.ttl.compute import *
from tlx_xdsl.ttl.dialects.ttl.kernel import *
from tlx_xdsl.ttl.dialects.ttl.pipes import *
from tlx_xdsl.ttl.dialects.ttl.protocol import *
from tlx_xdsl.ttl.dialects.ttl.tiles import *
from tlx_xdsl.ttl.dialects.ttl.types import *

TTL = dialect_of("ttl", globals())
