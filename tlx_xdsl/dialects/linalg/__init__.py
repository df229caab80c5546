"""MLIR's `linalg` with what xDSL 0.75 has in part: several results of `linalg.generic`, several operands of
`linalg.reduce`, products whose operands are narrower than their accumulators, and the effects of all. What builds one
must take it from here.

On tensors the operations are pure; on memory they read and write it. https://mlir.llvm.org/docs/Dialects/Linalg/
"""

from xdsl.dialects import linalg as upstream
from xdsl.ir import Dialect

from ..base import dialect_of
from .products import *
from .structured import *

_OURS = list(dialect_of("linalg", globals()).operations)

Linalg = Dialect(
    "linalg",
    [*(op for op in upstream.Linalg.operations if op.name not in {ours.name for ours in _OURS}), *_OURS],
    list(upstream.Linalg.attributes),
)
