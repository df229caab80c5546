"""`canonicalize`: upstream's rules and ours, folding and removal of dead code, with locations kept.

Before:
```mlir
%0 = tt.splat %c1 : i32 -> tensor<64xi32>
%1 = tt.expand_dims %0 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
```
After:
```mlir
%1 = arith.constant dense<1> : tensor<1x64xi32>
```
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.transforms.canonicalize import CanonicalizationRewritePattern
from xdsl.transforms.dead_code_elimination import region_dce

from .canonicalization import tt, ttg
from .driver import apply_patterns


class CanonicalizePass(ModulePass):
    """Apply all canonicalisation rules until none applies."""

    name = "canonicalize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Canonicalise the module."""
        ours = [pattern() for pattern in (*tt.PATTERNS, *ttg.PATTERNS)]
        patterns = [*ours, CanonicalizationRewritePattern()]
        apply_patterns(op, patterns, context=ctx, fold=True, after_walk=region_dce)
