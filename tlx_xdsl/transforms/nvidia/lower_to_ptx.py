"""`tlx-lower-to-ptx`: PTX for what upstream Triton has no operation for and needs no layout (`special_instructions`).

Before:
```mlir
%t = tlx.clock64
tlx.fence gpu
```
After:
```mlir
%t = tt.elementwise_inline_asm "mov.u64 $0, %clock64;" {constraints = "=l", ..., pure = false} -> i64
nvvm.inline_ptx "fence.acq_rel.gpu;"
```
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tlx_xdsl.transforms.driver import walk_and_apply_patterns
from tlx_xdsl.transforms.nvidia import special_instructions


class LowerToPTXPass(ModulePass):
    """Replace single instructions by their PTX."""

    name = "tlx-lower-to-ptx"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite each such operation of the module."""
        walk_and_apply_patterns(op, [pattern() for pattern in special_instructions.PATTERNS])
