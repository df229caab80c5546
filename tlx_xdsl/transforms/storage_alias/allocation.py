"""`tlx-storage-alias-allocation`: give every shared region its memory.

A spec becomes one allocation of bytes, or of columns of tensor memory (`ttng.tmem_alloc` of i32). An allocation from
it becomes a `tlx.local_alias` of all of its memory, and every `ttg.memdesc_index` that reaches the alias gets the index
of the slot where the buffer is (`IndexMap`).

Before, with `%b` after `%a` in each of two groups:
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

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.analysis.overlap_tree import IndexMap
from tlx_xdsl.analysis.storage_regions import StorageRegion, storage_regions
from tlx_xdsl.dialects import tlx
from tlx_xdsl.text.diagnostics import error_at

from ..rewriting import Pass, insert_before, replace
from .array_views import ArrayPlace, allocate_bytes, allocate_columns
from .index_rewriting import array_place, rewrite_indices


class StorageAliasAllocationPass(Pass):
    """Turn every shared region into one allocation, and what is allocated from it into views."""

    name = "tlx-storage-alias-allocation"

    def run(self, op: ModuleOp) -> None:
        """Allocate every region of the module, then follow what is in them."""
        rewrite_indices(op, [place for region in storage_regions(op) for place in _allocate(region)])


def _allocate(region: StorageRegion) -> list[ArrayPlace]:
    spec = region.spec
    if (length := region.length) is None:
        raise error_at(spec, "storage_alias_spec has no shape set; run tlx-storage-alias-size-definition first")
    for overlap in region.overlaps:
        raise error_at(
            overlap.op,
            "set_buffer_overlap was not processed by tlx-buffer-offset-calculation, which must run first",
        )
    maps = [region.index_map(number) for number in range(len(region.allocations))]
    if region.in_tensor_memory:
        backing = insert_before(spec, allocate_columns(region.rows, length))
    else:
        backing = insert_before(spec, allocate_bytes(length, region.alignment))
    backing.result.name_hint = spec.result.name_hint
    arrays = [_replace_by_alias(op, backing.result, map_) for op, map_ in zip(region.allocations, maps, strict=True)]
    Rewriter.erase_op(spec)
    return arrays


def _replace_by_alias(op: tlx.StorageAliasLocalAllocOp, backing: SSAValue, places: IndexMap) -> ArrayPlace:
    alias = replace(op, tlx.LocalAliasOp(operands=[backing], result_types=[op.result.type]))
    return array_place(alias.result, places)
