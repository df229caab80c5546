"""MLIR's `emitc` as far as kernels in C++ need it; xDSL has its types, `apply` and `call_opaque`.

https://mlir.llvm.org/docs/Dialects/EmitC/
"""

from __future__ import annotations

from xdsl.dialects import emitc as upstream
from xdsl.ir import Dialect

from tlx_xdsl.dialects.base.operation import dialect_of

from .expressions import *
from .structure import *

_OURS = dialect_of("emitc", globals())
_NAMES = {op.name for op in _OURS.operations}

EMITC = Dialect(
    "emitc",
    [*_OURS.operations, *(op for op in upstream.EmitC.operations if op.name not in _NAMES)],
    [*upstream.EmitC.attributes],
)
