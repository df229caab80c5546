"""The `ttkernel` dialect: a call of a function of TT-Metalium's device API is an operation.

Circular buffers (`buffers`), tiles and destination registers (`compute`,
`integers`), the network on chip (`noc`).
"""

from __future__ import annotations

from tlx_xdsl.dialects.base.operation import dialect_of

from .base import *
from .buffers import *
from .compute import *
from .elementwise import *
from .elementwise import VECTOR_CALLS, VECTOR_INITS, VECTOR_INT32_CALLS
from .integers import *
from .noc import *
from .printing import *

TTKERNEL = dialect_of("ttkernel", {**globals(), **VECTOR_INITS, **VECTOR_CALLS, **VECTOR_INT32_CALLS})
