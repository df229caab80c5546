"""`tlx-buffer-offset-calculation`: compute the offset of every allocation in the region that it shares.

The overlap tree of a region becomes three numbers on each of its allocations, and is erased. An allocation of a
region without a tree has no numbers: it begins with the region and is dense. Offset and stride are bytes in shared
memory and columns in tensor memory.

Before:
```mlir
%s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 65536>} : !tlx.storage_alias_spec<smem>
%a = tlx.storage_alias_local_alloc %s : ... -> !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>
%b = tlx.storage_alias_local_alloc %s : ... -> !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>
%g = tlx.reuse_group(%a, %b) group_kind = distinct : ...
tlx.set_buffer_overlap(%s, %g) : ...
```
After:
```mlir
%s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 65536>} : !tlx.storage_alias_spec<smem>
%a = tlx.storage_alias_local_alloc %s
    {buffer_offset = 0 : i64, bytes_between_buffers = 32768 : i64, group_size = 1 : i64} : ...
%b = tlx.storage_alias_local_alloc %s
    {buffer_offset = 16384 : i64, bytes_between_buffers = 32768 : i64, group_size = 1 : i64} : ...
```
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.rewriter import Rewriter

from tlx_xdsl.analysis.storage_regions import StorageRegion, storage_regions
from tlx_xdsl.dialects.tlx import ReuseGroupOp
from tlx_xdsl.text.diagnostics import error_at

from ..rewriting import Pass, ops_of


@dataclass(frozen=True)
class BufferOffsetCalculationPass(Pass):
    """Replace overlap trees by the offset, stride and group size of every allocation."""

    name = "tlx-buffer-offset-calculation"

    strict: bool = False
    """Keep the declared order of distinct members, and refuse to pad."""

    def run(self, op: ModuleOp) -> None:
        """Handle every region of the module, then drop the trees."""
        for region in storage_regions(op, strict=self.strict):
            if region.overlaps:
                _set_offsets(region, self.strict)
            for overlap in region.overlaps:
                if overlap.set_by is not None:
                    Rewriter.erase_op(overlap.set_by)
        _erase_unused_groups(op)


def _set_offsets(region: StorageRegion, strict: bool) -> None:
    if region.spec.buffer_shape is None:
        raise error_at(region.spec, "storage_alias_spec has no shape set; run tlx-storage-alias-size-definition first")
    slots = region.place(strict=strict).slots
    for number, op in enumerate(region.allocations):
        slot = slots[number]
        op.buffer_offset = IntegerAttr(slot.offset, i64)
        op.bytes_between_buffers = IntegerAttr(slot.stride, i64)
        op.group_size = IntegerAttr(slot.group_size, i64)


def _erase_unused_groups(module: ModuleOp) -> None:
    # Groups come after their members, so going backwards frees a group before its members are looked at.
    for op in reversed(ops_of(module, ReuseGroupOp)):
        if op.result.first_use is None:
            Rewriter.erase_op(op)
