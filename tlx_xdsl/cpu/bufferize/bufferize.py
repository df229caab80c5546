"""`linalg-bufferize`: every tensor gets a place in memory, where possible that in which it is needed in the end.

Before:
```mlir
%x = bufferization.to_tensor %a restrict writable : memref<64xf32> to tensor<64xf32>
%e = tensor.empty(%n) : tensor<?xf32>
%part = tensor.extract_slice %x[0] [%n] [1] : tensor<64xf32> to tensor<?xf32>
%y = linalg.generic {...} ins(%part : tensor<?xf32>) outs(%e : tensor<?xf32>) { ... } -> tensor<?xf32>
bufferization.materialize_in_destination %y in writable %out : (tensor<?xf32>, memref<?xf32, strided<[1]>>) -> ()
```
After:
```mlir
%part = memref.subview %a[0] [%n] [1] : memref<64xf32> to memref<?xf32, strided<[1]>>
linalg.generic {...} ins(%part : memref<?xf32, strided<[1]>>) outs(%out : memref<?xf32, strided<[1]>>) { ... }
```
The walk goes through each function once, in program order. A result is written in the place of its destination
(`dialects/destinations.py`) if nothing that is there is used later; else where it is handed on to (a store, the end of
a branch or of a turn of a loop, a result of the function); else over an operand of which each element is read just
before its place is written; else to memory of its own. What then is not where it must be is copied.

All memory is of the program alone but what is stored to; so nothing that is read changes meanwhile.
"""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.transforms.rewriting import Pass, ops_of

# The handlers register when they are imported.
from . import operations as operations
from .operations.functions import bufferize_function


class BufferizePass(Pass):
    """Take all tensors out of a module."""

    name = "linalg-bufferize"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place.

        Raises CompilationError for an operation on tensors that is not known, and for one that needs memory whose size
        is not known when compiling.
        """
        for function in ops_of(op, func.FuncOp):
            bufferize_function(function)
