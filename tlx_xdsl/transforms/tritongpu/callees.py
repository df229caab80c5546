"""A copy of each function for each number of warps that call it.

Layouts are those of the warps that run the code: a function that a task of 1 warp and one of 4 warps call is two
functions, and says so in an attribute where the number is not that of the module. Triton inlines both later.

Before, in a kernel of 4 warps:
```mlir
default { tt.call @f() : () -> () ... }
partition0() num_warps(1) { tt.call @f() : () -> () ... }
```
After:
```mlir
default { tt.call @f() : () -> () ... }
partition0() num_warps(1) { tt.call @f__1_warps() : () -> () ... }
```
with a second function `tt.func private @f__1_warps() attributes {"ttg.num-warps" = 1 : i32}`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, SymbolRefAttr, i32
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl.analysis.module_attrs import NUM_WARPS
from tlx_xdsl.dialects import tt

from ..rewriting import callee_of, functions_of, ops_of
from .accumulators import regions_with_warps


def functions_by_warps(module: ModuleOp, num_warps: int) -> dict[tt.FuncOp, int]:
    """The functions of `module` with the warps that run each; one that other warps call too is copied for them.

    `num_warps` is that of the kernel, and of functions without a call.
    """
    called = {callee_of(op) for op in ops_of(module, tt.CallOp)}
    versions = _Versions(module, num_warps)
    # After functions that others call come cycles of functions that only call each other.
    for name in sorted(versions.functions, key=lambda name: name in called):
        if not versions.has(name):
            versions.get(name, num_warps)
    return versions.warps


class _Versions:
    """The functions by name and warps."""

    def __init__(self, module: ModuleOp, usual: int):
        self._usual = usual
        self.functions = functions_of(module)
        self.warps: dict[tt.FuncOp, int] = {}
        self._made: dict[tuple[str, int], str] = {}
        self._original: dict[str, str] = {}

    def has(self, name: str) -> bool:
        """True if the function has warps."""
        return self.functions[name] in self.warps

    def get(self, name: str, warps: int) -> str:
        """The name of the function for so many warps, whose calls are directed to such functions as well."""
        if (name, warps) in self._made:
            return self._made[name, warps]
        function, version = self.functions[name], name
        if self.has(name):
            version = f"{name}__{warps}_warps"
            original, function = function, function.clone()
            function.properties["sym_name"] = StringAttr(version)
            Rewriter.insert_op(function, InsertPoint.after(original))
        self._made[name, warps] = version
        self._original[version] = name
        self.warps[function] = warps
        if warps != self._usual:
            function.attributes[NUM_WARPS] = IntegerAttr(warps, i32)
        self._direct(function, warps)
        return version

    def _direct(self, op: Operation, warps: int) -> None:
        for region, inside in regions_with_warps(op, warps):
            for inner in (inner for block in region.blocks for inner in block.ops):
                if isinstance(inner, tt.CallOp):
                    # A copy was made when the calls in the original were directed: its calls name versions.
                    original = self._original.get(callee_of(inner), callee_of(inner))
                    inner.properties["callee"] = SymbolRefAttr(self.get(original, inside))
                self._direct(inner, inside)
