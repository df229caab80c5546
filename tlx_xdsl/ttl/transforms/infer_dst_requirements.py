"""`ttl-infer-dst-requirements`: mark the blocks whose tiles are in DST registers for the operations that use them.

Before:
```mlir
%a = ttl.cb_wait %a_cb : ...
%e = ttl.exp %a : ...
%m = ttl.matmul %e, %b : ...
ttl.store %m, %view : ...
```
After:
```mlir
%a = ttl.cb_wait %a_cb : ...
ttl.require_dst %a : ...
%e = ttl.exp %a : ...
%m = ttl.matmul %e, %b : ...
ttl.require_dst %m : ...
ttl.store %m, %view : ...
```
`%e` and `%b` have no marker: a product reads its operands from circular buffers, so `ttl-bufferize` writes `%e` to one.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.transforms.rewriting import Pass, insert_after_definition, ops_of

from ..analysis.block_values import needs_dst
from ..dialects import ttl


class InferDSTRequirementsPass(Pass):
    """Insert `ttl.require_dst` after the definitions."""

    name = "ttl-infer-dst-requirements"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place; markers of an earlier run are kept."""
        for thread in ops_of(op, ttl.ComputeThreadOp):
            for inner in [*thread.walk()]:
                for value in inner.results:
                    is_marked = any(isinstance(use.operation, ttl.RequireDSTOp) for use in value.uses)
                    if not is_marked and needs_dst(value):
                        insert_after_definition(value, ttl.RequireDSTOp(value))
