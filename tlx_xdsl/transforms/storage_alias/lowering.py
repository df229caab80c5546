"""`tlx-storage-alias-lowering`: from allocations that share a region to aliases of one allocation.

The order matters: offsets need the size that an explicit `buffer_size_bytes` leaves to each group of buffers, and
the allocation erases what both need.

Before:
```mlir
%s = tlx.storage_alias_spec storage = smem : !tlx.storage_alias_spec<smem>
%a = tlx.storage_alias_local_alloc %s : ... -> !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>
%b = tlx.storage_alias_local_alloc %s : ... -> !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
```
After, where no overlap tree says otherwise:
```mlir
%s = ttg.local_alloc {alignment = 16 : i32} : () -> !ttg.memdesc<32x1024xi8, #shared1, #smem, mutable>
%a = tlx.local_alias %s : !ttg.memdesc<32x1024xi8, ...> -> !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>
%b = tlx.local_alias %s : !ttg.memdesc<32x1024xi8, ...> -> !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
```
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from .allocation import StorageAliasAllocationPass
from .offset_calculation import BufferOffsetCalculationPass
from .size_definition import StorageAliasSizeDefinitionPass


@dataclass(frozen=True)
class StorageAliasLoweringPass(ModulePass):
    """Size, place and allocate every region that allocations share."""

    name = "tlx-storage-alias-lowering"

    strict: bool = False
    """Keep the declared order of distinct members, and refuse to pad."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the three steps on the module."""
        StorageAliasSizeDefinitionPass(strict=self.strict).apply(ctx, op)
        BufferOffsetCalculationPass(strict=self.strict).apply(ctx, op)
        StorageAliasAllocationPass().apply(ctx, op)
