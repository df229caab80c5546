"""`linalg-mark-arguments`: what a kernel surely does with its arrays stands at its arguments, as LLVM says it.

An array that nothing writes through an argument is `llvm.readonly`. That two arrays do not overlap no kernel says:
Triton's may be the same. Who knows it of the launches says `distinct`, and all are `llvm.noalias`.

Before:
```mlir
func.func @scale(%x: memref<*xf32>, %y: memref<*xf32>, %pid_x: i32, %pid_y: i32, %pid_z: i32) {
```
After, with `distinct`:
```mlir
func.func @scale(%x: memref<*xf32> {llvm.noalias, llvm.readonly}, %y: memref<*xf32> {llvm.noalias}, ...) {
```
Upstream's `convert-func-to-llvm` puts attributes of an unranked memref on the address of its descriptor, in the
interface for C alone. Both of these hold there, since descriptors are only read. `llvm.writeonly`, and `llvm.align` for
`tt.divisibility`, would be false there, and so no argument has them.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, UnitAttr
from xdsl.ir import SSAValue

from tlx_xdsl.dialects.func import program_arguments
from tlx_xdsl.dialects.memref import is_memref
from tlx_xdsl.transforms.rewriting import Pass, ops_of

from ..codegen.forwarding import is_only_read


@dataclass(frozen=True)
class MarkArgumentsPass(Pass):
    """Mark the arguments of kernels."""

    name = "linalg-mark-arguments"

    distinct: bool = False
    """No two arrays of a launch overlap: a promise of whoever launches."""

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for function in ops_of(op, func.FuncOp):
            if program_arguments(function):
                function.arg_attrs = ArrayAttr(map(self._marks, function.body.blocks[0].args))

    def _marks(self, argument: SSAValue) -> DictionaryAttr:
        holds = {"llvm.noalias": self.distinct and is_memref(argument.type), "llvm.readonly": is_only_read(argument)}
        return DictionaryAttr({name: UnitAttr() for name, is_so in holds.items() if is_so})
