"""The `ttl` dialect: kernels for Tenstorrent's cores as threads that exchange blocks of tiles through circular buffers.

Kernels and their threads (`kernel`), circular buffers and transfers (`buffers`), pipes and semaphores (`pipes`),
computing with blocks (`compute`) and with single tiles (`tiles`).
"""

from __future__ import annotations

from tlx_xdsl.dialects.base.operation import dialect_of

from .base import *
from .buffers import *
from .compute import *
from .kernel import *
from .pipes import *
from .protocol import *
from .tiles import *
from .types import *

TTL = dialect_of("ttl", globals())
