"""`tlx-annotate-program-addresses`: write down how addresses depend on the program's ids, beside the operations.

Before:
```mlir
%pid = tt.get_program_id x : i32
%start = arith.muli %pid, %c128 : i32
...
%a = tt.load %ptrs : tensor<128x!tt.ptr<f32>>
```
After, with attributes that no other tool reads:
```mlir
%pid = tt.get_program_id x {tlx.pid_info = "PID_INFO(axis=0, stride=1, offset=0)"} : i32
%start = arith.muli %pid, %c128 {tlx.pid_info = "PID_INFO(axis=0, stride=128, offset=0)"} : i32
...
%a = tt.load %ptrs {tlx.access = "PATTERN(PID_AFFINE, block_size=128, stride=512, coalesced=true)",
                    tlx.holds_while = ["pid_x <= 16777215"]} : tensor<128x!tt.ptr<f32>>
```
Integers are in elements, pointers and accesses in bytes; the lines are those of `addresses/report.py`.
With `grid` (and with `strict`, which drops facts that hold under conditions only) the launch is taken into account.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from tlx_xdsl.dialects import tt
from tlx_xdsl.grid import sizes_of

from . import Access, LaunchFacts, analyse_program_addresses
from .analysis import argument_names
from .report import access_text, conditions_text, report_lines, value_text

VALUE, ACCESS, CONDITIONS = "tlx.pid_info", "tlx.access", "tlx.holds_while"
"""The attributes."""


@dataclass(frozen=True)
class AnnotateProgramAddressesPass(ModulePass):
    """Annotate values that depend on the program's ids, and accesses to global memory."""

    name = "tlx-annotate-program-addresses"

    grid: tuple[int, ...] = ()
    """Programs along x, y and z; without it, facts hold under conditions on the grid."""
    strict: bool = False
    """Take back what only holds for some launches."""
    table: bool = False
    """Print the lines on standard error, too."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Set attributes, and change nothing else.

        Raises InputError for a grid that is none.
        """
        result = analyse_program_addresses(op, LaunchFacts(grid=self._grid()), strict=self.strict)
        accesses: dict[Operation, list[Access]] = {}
        for access in result.accesses:
            accesses.setdefault(access.op, []).append(access)
        for function in (inner for inner in op.walk() if isinstance(inner, tt.FuncOp) and inner.body.blocks):
            names = argument_names(function.body.blocks[0].args)
            for inner in function.body.walk():
                texts = [text for value in inner.results if (text := value_text(result, value, names)) is not None]
                if texts and inner not in accesses:
                    inner.attributes[VALUE] = StringAttr("; ".join(texts))
        for inner, found in accesses.items():
            inner.attributes[ACCESS] = StringAttr("; ".join(dict.fromkeys(map(access_text, found))))
            conditions = dict.fromkeys(text for access in found for text in conditions_text(access))
            if conditions:
                inner.attributes[CONDITIONS] = ArrayAttr(StringAttr(text) for text in conditions)
        if self.table:
            print("\n".join(report_lines(result)), file=sys.stderr)

    def _grid(self) -> tuple[int, int, int] | None:
        return sizes_of(self.grid, least=1) if self.grid else None
