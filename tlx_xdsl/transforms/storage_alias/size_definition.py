"""`tlx-storage-alias-size-definition`: settle the size of every region that allocations share.

The size follows the overlap tree; without one it is that of the largest allocation. A size that the user gave is
checked and kept. A spec without allocations is dropped with a warning.

Before:
```mlir
%s = tlx.storage_alias_spec storage = smem : !tlx.storage_alias_spec<smem>
%a = tlx.storage_alias_local_alloc %s : ... -> !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>
%b = tlx.storage_alias_local_alloc %s : ... -> !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>
%g = tlx.reuse_group(%a, %b) group_kind = distinct : ...
tlx.set_buffer_overlap(%s, %g) : ...
```
After:
```mlir
%s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 65536>} : !tlx.storage_alias_spec<smem>
...
```

The shape of a region in tensor memory is its rows and columns, `array<i64: 128, 384>`: 64 rows when all of its buffers
have 64, else 128.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import DenseArrayBase, ModuleOp, i64
from xdsl.rewriter import Rewriter

from tlx_xdsl.analysis.storage_regions import StorageRegion, storage_regions
from tlx_xdsl.dialects.ttng import COLUMNS
from tlx_xdsl.text.diagnostics import error_at, report_warning

from ..rewriting import Pass


@dataclass(frozen=True)
class StorageAliasSizeDefinitionPass(Pass):
    """Set `buffer_shape` on every `tlx.storage_alias_spec`."""

    name = "tlx-storage-alias-size-definition"

    strict: bool = False
    """Keep the declared order of distinct members, and refuse to pad."""

    def run(self, op: ModuleOp) -> None:
        """Size every region of the module."""
        for region in storage_regions(op, strict=self.strict):
            _define_size(region, self.strict)


def _define_size(region: StorageRegion, strict: bool) -> None:
    spec = region.spec
    # The size was settled by an earlier run, whose tree may be gone by now.
    if spec.buffer_shape is not None:
        return
    if not region.allocations and not region.overlaps:
        report_warning(spec, "storage_alias_spec has no referencing storage_alias_local_alloc operations")
        Rewriter.erase_op(spec)
        return
    total = region.place(strict=strict).total
    shape = [region.rows, total] if region.in_tensor_memory else [total]
    if region.in_tensor_memory and total > COLUMNS:
        raise error_at(spec, f"storage_alias_spec takes {total} columns of tensor memory, there are {COLUMNS}")
    spec.buffer_shape = DenseArrayBase.from_list(i64, shape)
