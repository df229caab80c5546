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
Both give the same number (IEEE 754: -0 - x is -x, for zeros too), and LLVM makes the same instruction of them. With
`from_zero` the constant is 0, as the frontend of 3.6 and 3.7 has it: that is what they make of a kernel by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects import arith, builtin
from xdsl.ir import Attribute

from tlx_xdsl.dialects.base import as_tensor

from ..rewriting import Pass, insert_before, ops_of, replace


@dataclass(frozen=True)
class ExpandNegfPass(Pass):
    """Replace every `arith.negf` of a tensor, and with `from_zero` those of numbers, too."""

    name = "expand-negf"

    from_zero: bool = False
    """Whether the constant is 0, and numbers are replaced, too: the frontend of Triton 3.6 and 3.7 does so."""

    def run(self, op: builtin.ModuleOp) -> None:
        """Rewrite the module in place."""
        for inner in ops_of(op, arith.NegfOp):
            value: Attribute
            if (tensor := as_tensor(inner.operand.type)) is not None:
                number = 0.0 if self.from_zero else -0.0
                value = builtin.DenseIntOrFPElementsAttr.from_list(cast(Any, tensor), [number])
            elif self.from_zero:
                value = builtin.FloatAttr(0.0, cast(Any, inner.operand.type))
            else:
                continue
            zero = insert_before(inner, arith.ConstantOp(cast(Any, value)))
            replace(inner, arith.SubfOp(zero.result, inner.operand))
