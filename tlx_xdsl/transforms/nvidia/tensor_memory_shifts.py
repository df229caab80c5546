"""Shifts of the rows of tensor memory as PTX (PTX ISA, "tcgen05.shift"): 32 bytes of all rows by one instruction.

A commit tracks what its own thread has issued. Upstream Triton's is by the thread of the region's first warp that
`elect.sync` elects, always the same one, and so are these.

Before:
```mlir
tlx.tmem_shift %t : !ttg.memdesc<128x16xf32, #tmem, #ttng.tensor_memory, mutable>
```
After (`%n` is the number of the thread, `%a` the address of `%t`):
```mlir
ttg.barrier local
nvvm.inline_ptx "{ .reg .pred p; .reg .b32 e; elect.sync e|p, 0xffffffff; setp.lt.and.s32 p, $0, $1, p;
  @p tcgen05.shift.cta_group::1.down [$2+0]; @p tcgen05.shift.cta_group::1.down [$2+8]; }"
  ro(%n, %c32, %a : i32, i32, i32)
```
"""

from __future__ import annotations

from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tlx_xdsl.dialects import tlx, ttg, ttng
from tlx_xdsl.dialects.base import outermost
from tlx_xdsl.layouts.distributed import WARP_SIZE
from tlx_xdsl.text.diagnostics import error_at

from .emit.integers import Integers
from .emit.ptx import inline_ptx, wait_for_region
from .emit.shared_address import tensor_memory_address
from .emit.threads import thread_number

_ELECTED = "{ .reg .pred p; .reg .b32 e; elect.sync e|p, 0xffffffff; setp.lt.and.s32 p, $0, $1, p;"


class LowerTensorMemoryShift(RewritePattern):
    """Replaces a shift of rows by PTX, after a barrier: the stores of all warps come before it.

    Raises CompilationError in a kernel with MMAs of pairs of CTAs, where all instructions are of pairs.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tlx.TMEMShiftOp, rewriter: PatternRewriter) -> None:
        """Rewrite `op`."""
        if ttng.has_pair_products(outermost(op)):
            raise error_at(op, "tlx.tmem_shift can't stand in a kernel with MMAs of pairs of CTAs")
        wait_for_region(op)
        columns = range(0, ttng.columns_of(ttg.memdesc_type(op.src.type)), tlx.SHIFTED_COLUMNS)
        shifts = " ".join(f"@p tcgen05.shift.cta_group::1.down [$2+{column}];" for column in columns)
        operands = [thread_number(op), Integers(op).value(WARP_SIZE), tensor_memory_address(op, op.src)]
        rewriter.replace(op, inline_ptx(f"{_ELECTED} {shifts} }}", operands))
