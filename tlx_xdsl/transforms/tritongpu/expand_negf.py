"""`expand-negf`: negation of tensors as a subtraction, because upstream Triton 3.6 and 3.7 do not lower `arith.negf`.

Before:
```mlir
%1 = arith.negf %0 : tensor<64xf32>
```
After `expand-negf`:
```mlir
%cst = arith.constant dense<-0.000000e+00> : tensor<64xf32>
%1 = arith.subf %cst, %0 : tensor<64xf32>
```
Both give the same number (IEEE 754: -0 - x is -x, for zeros too), and LLVM makes the same instruction of them.
"""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects import arith, builtin

from tlx_xdsl.dialects.base import as_tensor

from ..rewriting import Pass, insert_before, ops_of, replace


class ExpandNegfPass(Pass):
    """Replace every `arith.negf` of a tensor."""

    name = "expand-negf"

    def run(self, op: builtin.ModuleOp) -> None:
        """Rewrite the module in place."""
        for inner in ops_of(op, arith.NegfOp):
            if (tensor := as_tensor(inner.operand.type)) is not None:
                zero = arith.ConstantOp(builtin.DenseIntOrFPElementsAttr.from_list(cast(Any, tensor), [-0.0]))
                replace(inner, arith.SubfOp(insert_before(inner, zero).result, inner.operand))
