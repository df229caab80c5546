"""`expand-local-gather`: picking from a buffer as picking from registers, for Triton 3.6, which lacks the former.

Before:
```mlir
%1 = ttg.local_gather %0[%i] {axis = 0 : i32} : !ttg.memdesc<64xf32, ...>, tensor<32xi32> -> tensor<32xf32>
```
After `expand-local-gather`:
```mlir
%v = ttg.local_load %0 : !ttg.memdesc<64xf32, ...> -> tensor<64xf32>
%1 = tt.gather %v[%i] {axis = 0 : i32} : (tensor<64xf32>, tensor<32xi32>) -> tensor<32xf32>
```
Triton lowers the gather by shuffles or through scratch memory, which takes as much shared memory again for a large
buffer.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, TensorType

from tlx_xdsl.dialects import tt, ttg

from ..rewriting import Pass, insert_before, ops_of, replace


class ExpandLocalGatherPass(Pass):
    """Replace every `ttg.local_gather` by a load of the buffer and a gather."""

    name = "expand-local-gather"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for inner in ops_of(op, ttg.LocalGatherOp):
            buffer = ttg.memdesc_type(inner.src.type)
            whole = TensorType(buffer.element_type, buffer.shape)
            load = insert_before(inner, ttg.LocalLoadOp(operands=[inner.src, inner.token], result_types=[whole]))
            gather = tt.GatherOp(
                operands=[load.result, inner.indices],
                properties={"axis": inner.axis},
                result_types=[inner.result.type],
            )
            replace(inner, gather)
