"""`tlx-storage-alias-allocation`: give every shared region its memory.

A spec becomes one allocation of bytes, an allocation from it a `tlx.local_alias` of all of its memory, and every
`ttg.memdesc_index` that reaches the alias gets the index of the place where the buffer really lies (`IndexMap`).

Before, with `%b` behind `%a` in each of two groups:
```mlir
%s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 65536>} : !tlx.storage_alias_spec<smem>
%b = tlx.storage_alias_local_alloc %s
    {buffer_offset = 16384 : i64, bytes_between_buffers = 32768 : i64, group_size = 1 : i64}
    : !tlx.storage_alias_spec<smem> -> !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>
%b_i = ttg.memdesc_index %b[%i] : !ttg.memdesc<2x64x64xf32, ...> -> !ttg.memdesc<64x64xf32, ...>
```
After:
```mlir
%s = ttg.local_alloc {alignment = 1024 : i32} : () -> !ttg.memdesc<64x1024xi8, #shared1, #smem, mutable>
%b = tlx.local_alias %s : !ttg.memdesc<64x1024xi8, ...> -> !ttg.memdesc<4x64x64xf32, #shared, #smem, mutable>
%c2_i32 = arith.constant 2 : i32
%0 = arith.muli %i, %c2_i32 : i32
%c1_i32 = arith.constant 1 : i32
%1 = arith.addi %0, %c1_i32 : i32
%b_i = ttg.memdesc_index %b[%1] : !ttg.memdesc<4x64x64xf32, ...> -> !ttg.memdesc<64x64xf32, ...>
```
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i8, i32
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from tlx_xdsl.analysis.overlap_tree import IndexMap
from tlx_xdsl.analysis.storage_regions import StorageRegion, storage_regions
from tlx_xdsl.dialects.tlx import LocalAliasOp, StorageAliasLocalAllocOp
from tlx_xdsl.dialects.ttg import LocalAllocOp, SharedMemorySpaceAttr
from tlx_xdsl.dialects.ttg.attrs import layout_attr
from tlx_xdsl.dialects.ttg.types import MemDescType
from tlx_xdsl.layouts.shared import unswizzled_layout
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.rewriting import insert_before, replace
from tlx_xdsl.transforms.storage_alias.array_views import ArrayPlace
from tlx_xdsl.transforms.storage_alias.index_rewriting import array_place, rewrite_indices

LARGEST_ROW = 1024
"""Bytes in a row of the backing allocation. Any power of two would do; this one divides the sizes of most tiles."""


@dataclass(frozen=True)
class StorageAliasAllocationPass(ModulePass):
    """Turn every shared region into one allocation, and what is allocated from it into views."""

    name = "tlx-storage-alias-allocation"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Allocate every region of the module, then follow what is in them."""
        rewrite_indices(op, [place for region in storage_regions(op) for place in _allocate(region)])


def _allocate(region: StorageRegion) -> list[ArrayPlace]:
    spec = region.spec
    if spec.buffer_shape is None or (size := region.size_bytes) is None:
        raise error_at(spec, "storage_alias_spec has no shape set; run tlx-storage-alias-size-definition first")
    if region.overlap is not None:
        raise error_at(region.overlap, "set_buffer_overlap is still there; run tlx-buffer-offset-calculation first")
    maps = [region.index_map(number) for number in range(len(region.allocations))]
    backing = insert_before(spec, _backing_allocation(size, region.alignment))
    backing.result.name_hint = spec.result.name_hint
    arrays = [_replace_by_alias(op, backing, map_) for op, map_ in zip(region.allocations, maps, strict=True)]
    Rewriter.erase_op(spec)
    return arrays


def _backing_allocation(size: int, alignment: int) -> LocalAllocOp:
    # Stock Triton wants powers of two in the dimensions of the layout; rows are buffers, and their number is free.
    row = min(LARGEST_ROW, size & -size)
    type_ = MemDescType.get(
        (size // row, row), i8, layout_attr(unswizzled_layout(1)), SharedMemorySpaceAttr(), mutable=True
    )
    return LocalAllocOp(operands=[None], properties={"alignment": IntegerAttr(alignment, i32)}, result_types=[type_])


def _replace_by_alias(op: StorageAliasLocalAllocOp, backing: LocalAllocOp, places: IndexMap) -> ArrayPlace:
    alias = replace(op, LocalAliasOp(operands=[backing.result], result_types=[op.result.type]))
    return array_place(alias.result, places)
