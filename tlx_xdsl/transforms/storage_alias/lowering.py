"""`tlx-storage-alias-lowering`: from allocations that share a region to aliases of one allocation.

The order matters: offsets need the size that an explicit `buffer_size_bytes` leaves to each group of buffers, and
the allocation erases what both need.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tlx_xdsl.transforms.storage_alias.allocation import StorageAliasAllocationPass
from tlx_xdsl.transforms.storage_alias.offset_calculation import BufferOffsetCalculationPass
from tlx_xdsl.transforms.storage_alias.size_definition import StorageAliasSizeDefinitionPass


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
