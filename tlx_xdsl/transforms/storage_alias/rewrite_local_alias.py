"""`tlx-rewrite-local-alias`: replace aliases by upstream Triton's views.

Every alias becomes a view of the allocation itself, also where it is an alias of another alias.

Before:
```mlir
%b = tlx.local_alias %a : !ttg.memdesc<32x1024xi8, #shared, #smem, mutable> -> !ttg.memdesc<2x64x64xf32, ...>
```
After:
```mlir
%b = ttg.memdesc_reinterpret %a : !ttg.memdesc<32x1024xi8, #shared, #smem, mutable> -> !ttg.memdesc<2x64x64xf32, ...>
```
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from tlx_xdsl.dialects import tlx, ttg, ttng
from tlx_xdsl.text.diagnostics import error_at

from ..rewriting import Pass, ops_of, replace
from .index_rewriting import rewrite_indices
from .whole_views import Allocation, view_whole


@dataclass(frozen=True)
class RewriteLocalAliasPass(Pass):
    """Replace every `tlx.local_alias` by a `ttg.memdesc_reinterpret`."""

    name = "tlx-rewrite-local-alias"

    whole_views: bool = False
    """Make every view as large as its allocation, which Triton 3.8 demands."""

    def run(self, op: ModuleOp) -> None:
        """Find the allocation of every alias of the module, then replace the aliases."""
        aliases = ops_of(op, tlx.LocalAliasOp)
        allocations: dict[SSAValue, Allocation] = {}
        views: dict[Allocation, list[tlx.LocalAliasOp]] = {}
        for alias in aliases:
            allocation = _allocation(alias, allocations)
            allocations[alias.result] = allocation
            views.setdefault(allocation, []).append(alias)
        if self.whole_views:
            arrays = [array for allocation, its_views in views.items() for array in view_whole(allocation, its_views)]
            rewrite_indices(op, arrays)
            return
        for alias in aliases:
            source, types = allocations[alias.result].result, [alias.result.type]
            replace(alias, ttg.MemDescReinterpretOp(operands=[source], result_types=types))


def _allocation(alias: tlx.LocalAliasOp, known: dict[SSAValue, Allocation]) -> Allocation:
    """The allocation that `alias` is a view of; `known` holds that of the aliases before it."""
    source = alias.src.owner
    allocation = source if isinstance(source, ttg.LocalAllocOp | ttng.TMEMAllocOp) else known.get(alias.src)
    if allocation is None:
        raise error_at(alias, "LocalAliasOp must refer to a local_alloc or local_alias op")
    have, need = (_bits(ttg.memdesc_type(op.result.type)) for op in (allocation, alias))
    if need > have:
        raise error_at(alias, f"TLXRewriteLocalAlias cannot view a {have}-bit allocation as a {need}-bit alias")
    return allocation


def _bits(type_: ttg.MemDescType) -> int:
    """Bits of memory that a buffer takes: in tensor memory those of whole columns."""
    if isinstance(type_.memory_space, ttng.TensorMemorySpaceAttr):
        return ttng.columns_of(type_) * ttng.rows_of(type_) * 32
    return 8 * type_.bytes_of_trailing(len(type_.shape))
