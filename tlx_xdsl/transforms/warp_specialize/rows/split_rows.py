"""`tlx-ws-split-rows`: groups of warps share the rows of the products.

What varies along the rows of the products has the rows of one group, and `tlx.replica_id` says which ones. The code is
the same for all groups; `tlx-ws-replicate-tasks` makes a copy for each. Where the rows can't be shared, the columns
are; where these can't either, the module stays, with a remark that says why. `cuts.py` finds the values.

Before:
```mlir
%rows = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
%sum = tt.dot %a, %b, %zero : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
```
After `tlx-ws-split-rows{groups=2}`:
```mlir
%group = tlx.replica_id
%0 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
%1 = arith.muli %group, %c64 : i32
%2 = tt.splat %1 : i32 -> tensor<64xi32>
%rows = arith.addi %2, %0 : tensor<64xi32>
%sum = tt.dot %a, %b, %zero : tensor<64x64xf16> * tensor<64x128xf16> -> tensor<64x128xf32>
```
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.ir import Operation

from tlx_xdsl.dialects import tt, ttg
from tlx_xdsl.dialects.dimensions import shape_of_value
from tlx_xdsl.dialects.tlx import ReplicaIdOp
from tlx_xdsl.text.diagnostics import report_remark

from ...rewriting import Pass, ops_of
from ..refusal import WarpSpecializeRefusal, refusal_at
from ..tasks_of import REPLICAS
from .cuts import PRODUCTS, Cuts
from .parts import Parts
from .whole_accesses import check_accesses

ROWS_OF_A_GROUP = 64
"""Rows that the four warps of a group multiply at once (PTX ISA, "wgmma": M is 64)."""


@dataclass(frozen=True)
class SplitRowsPass(Pass):
    """Let `groups` groups of warps share the rows of the products."""

    name = "tlx-ws-split-rows"

    groups: int = 2
    """Groups of warps."""

    def run(self, op: ModuleOp) -> None:
        """Handle all functions of the module."""
        for function in ops_of(op, tt.FuncOp):
            if (reason := split_rows(function, self.groups)) is not None:
                place = reason.place if isinstance(reason.place, Operation) else function
                report_remark(place, f"one group of warps has all rows: {reason.reason}")


def split_rows(function: tt.FuncOp, groups: int) -> WarpSpecializeRefusal | None:
    """Share the rows of the products of `function`, or their columns; return why the function stays, or None."""
    if groups == 1 or ops_of(function, ReplicaIdOp, ttg.WarpSpecializeOp):
        return None
    if not ops_of(function, *PRODUCTS):
        return refusal_at(function, "there is no product whose rows groups of warps could share")
    reasons: list[WarpSpecializeRefusal] = []
    for axis in (-2, -1):
        try:
            cuts = _cuts(function, groups, axis)
        except WarpSpecializeRefusal as reason:
            reasons.append(reason)
            continue
        Parts(function, cuts).make()
        function.attributes[REPLICAS] = IntegerAttr(groups, i32)
        return None
    rows, columns = reasons
    if rows.reason == columns.reason:
        return rows
    return refusal_at(rows.place or function, f"{rows.reason}; nor are the columns shared: {columns.reason}")


def _cuts(function: tt.FuncOp, groups: int, axis: int) -> Cuts:
    """Find what is cut.

    Raises WarpSpecializeRefusal where it can't be, or where it would not be the same or of no use.
    """
    cuts = Cuts(function, groups, axis)
    for product in ops_of(function, *PRODUCTS):
        result = product.results[0]
        shape = shape_of_value(result)
        rows = shape[-2] // groups if cuts.dims[result] == len(shape) - 2 else shape[-2]
        if rows % ROWS_OF_A_GROUP:
            raise refusal_at(product, f"{rows} rows for each of {groups} groups are no multiple of {ROWS_OF_A_GROUP}")
    check_accesses(function, cuts)
    return cuts
