"""`tlx-extend-buffer-lifetimes`: extend the live ranges of buffers whose addresses PTX uses.

Upstream Triton gives the memory of a buffer to another one after its last use, and sees no use through a cast to a
pointer. A buffer whose address was taken is deallocated at every exit that its allocation reaches.

Before:
```mlir
%b = ttg.local_alloc : () -> !ttg.memdesc<64xf32, #shared, #smem, mutable>
%s = builtin.unrealized_conversion_cast %b : !ttg.memdesc<...> to !llvm.struct<(!llvm.ptr<3>, i32)>
tt.return
```
After:
```mlir
...
ttg.local_dealloc %b : !ttg.memdesc<64xf32, #shared, #smem, mutable>
tt.return
```
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, UnrealizedConversionCastOp

from tlx_xdsl.analysis.buffer_users import accesses
from tlx_xdsl.analysis.value_classes import ValueClasses
from tlx_xdsl.dialects import tt, ttg, ttng

from ..rewriting import Pass, insert_before, ops_of
from .barrier_lifetimes import exits_of

_ENDS = (ttg.LocalDeallocOp, ttng.InvalBarrierOp)
"""The end of a live range, as upstream Triton's allocator sees it."""


class ExtendBufferLifetimesPass(Pass):
    """Deallocate buffers whose addresses were taken at the ends of their allocations' regions."""

    name = "tlx-extend-buffer-lifetimes"

    def run(self, op: ModuleOp) -> None:
        """Handle every allocation of shared memory."""
        for func in ops_of(op, tt.FuncOp):
            classes = ValueClasses.of(func, ttg.MemDescType)
            for alloc in ops_of(func, ttg.LocalAllocOp):
                _extend(alloc, classes)


def _extend(alloc: ttg.LocalAllocOp, classes: ValueClasses) -> None:
    users = accesses(alloc.result, classes)
    is_taken = any(isinstance(user, UnrealizedConversionCastOp) for user in users)
    if is_taken and not any(isinstance(user, _ENDS) for user in users):
        for exit_ in exits_of(alloc):
            # Errors about the end of a lifetime are shown at the allocation.
            insert_before(exit_, ttg.LocalDeallocOp(operands=[alloc.result]), located_at=alloc)
