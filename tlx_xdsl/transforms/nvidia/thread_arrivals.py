"""Arrivals of single threads at an mbarrier (PTX ISA, "mbarrier.arrive").

An arrival releases what its own thread has done before, so the warps do not wait for each other first.

Before:
```mlir
tlx.arrive_per_thread %bar : !ttg.memdesc<1xi64, ...>
```
After (`%mbar` is the address of `%bar`):
```mlir
nvvm.inline_ptx "mbarrier.arrive.shared::cta.b64 _, [$0];" ro(%mbar : i32)
```
"""

from __future__ import annotations

from xdsl.dialects.builtin import i32
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tlx_xdsl.dialects import tlx
from tlx_xdsl.dialects.arith import ExtUIOp

from ..rewriting import insert_before
from .emit.ptx import inline_ptx
from .emit.shared_address import shared_address

_ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [$0];"


class LowerThreadArrival(RewritePattern):
    """Replaces an arrival of every thread by PTX."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tlx.ArrivePerThreadOp, rewriter: PatternRewriter) -> None:
        """Rewrite `op`."""
        address = shared_address(op, op.alloc)
        if op.pred is None:
            rewriter.replace(op, inline_ptx(_ARRIVE, [address]))
            return
        # A predicate as an operand breaks where it is a constant.
        code = f"{{ .reg .pred p; setp.ne.b32 p, $1, 0; @p {_ARRIVE} }}"
        rewriter.replace(op, inline_ptx(code, [address, insert_before(op, ExtUIOp(op.pred, i32)).result]))
