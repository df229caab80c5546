"""MLIR's `memref` with what xDSL 0.75 lacks, or has in part: the text of copies, casts and atomic operations, views of
memory whose rank is not known, and the checks that upstream MLIR makes. What builds one must take it from here.

https://mlir.llvm.org/docs/Dialects/MemRef/
"""

from xdsl.dialects import memref as upstream
from xdsl.ir import Dialect

from ..base import dialect_of
from .accesses import *
from .shapes import *
from .types import *
from .views import *

_OURS = list(dialect_of("memref", globals()).operations)

MemRef = Dialect(
    "memref",
    [*(op for op in upstream.MemRef.operations if op.name not in {ours.name for ours in _OURS}), *_OURS],
    list(upstream.MemRef.attributes),
)
