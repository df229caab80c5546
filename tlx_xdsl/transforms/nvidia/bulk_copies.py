"""Copies of bytes that follow each other, and prefetches of tiles, as PTX of one thread.

PTX ISA, "cp.async.bulk" and "cp.async.bulk.prefetch.tensor". A store commits a group of its own, for which
`ttng.async_tma_store_wait` waits in the thread that has issued it; so the other threads wait for that thread after it.
Without `read_only` it waits for the writes, too, also of TMA stores. It becomes PTX then: stock Triton before 3.9 waits
for the reads alone.
A tile that takes several boxes of its descriptor is prefetched box by box; cache policies of prefetches are hints to a
hint, and are dropped.

Before:
```mlir
tlx.async_bulk_load %p, %b, %size, %bar : !tt.ptr<f16> -> !ttg.memdesc<64xf16, ...>, !ttg.memdesc<1xi64, ...>
```
After (`%dst` and `%mbar` are addresses in shared memory, and `%t` is the number of the thread):
```mlir
ttg.barrier local
%src = tt.ptr_to_int %p : !tt.ptr<f16> -> i64
nvvm.inline_ptx "{ .reg .pred p; setp.eq.s32 p, $0, $1; @p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::
bytes [$2], [$3], $4, [$5]; }" ro(%t, %c0, %dst, %src, %size, %mbar : ...)
```
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import Operation, SSAValue
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern, op_type_rewrite_pattern

from tlx_xdsl.dialects import tlx, tt, ttng
from tlx_xdsl.dialects.base import layout_of
from tlx_xdsl.layouts.conversion.shared import tma_box, tma_corners
from tlx_xdsl.layouts.encodings import SharedLayout
from tlx_xdsl.text.diagnostics import error_at

from ..rewriting import insert_before, ops_of
from .emit.integers import Integers
from .emit.ptx import inline_ptx, run_in_one_thread, wait_for_region
from .emit.shared_address import descriptor_address, shared_address

_LOAD = "@p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{0}], [{1}], {2}, [{3}];"
_STORE = "@p cp.async.bulk.global.shared::cta.bulk_group [{0}], [{1}], {2}; @p cp.async.bulk.commit_group;"


class LowerBulkLoad(RewritePattern):
    """Copies from global memory, and completes on an mbarrier."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tlx.AsyncBulkLoadOp, rewriter: PatternRewriter) -> None:
        """Rewrite `op`."""
        target, barrier = shared_address(op, op.result), shared_address(op, op.barrier)
        wait_for_region(op)
        run_in_one_thread(op, _LOAD, [target, _address(op, op.src), op.size, barrier])
        rewriter.erase(op)


class LowerBulkStore(RewritePattern):
    """Copies to global memory, in a group of its own."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tlx.AsyncBulkStoreOp, rewriter: PatternRewriter) -> None:
        """Rewrite `op`."""
        source = shared_address(op, op.src)
        wait_for_region(op)
        run_in_one_thread(op, _STORE, [_address(op, op.dst), source, op.size])
        rewriter.erase(op)


class WaitForStores(RewritePattern):
    """Lets a wait hold for all threads, in a module that has bulk stores or where it is one for writes."""

    def __init__(self, module: ModuleOp):
        self.has_stores = bool(ops_of(module, tlx.AsyncBulkStoreOp))

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ttng.AsyncTMAStoreWaitOp, rewriter: PatternRewriter) -> None:
        """Have the threads wait for each other after `op`; one for writes becomes PTX."""
        if (self.has_stores or op.read_only is None) and op.next_op is not None:
            wait_for_region(op.next_op)
        if op.read_only is None:
            rewriter.replace(op, inline_ptx(f"cp.async.bulk.wait_group {op.pendings.value.data};"))


class LowerTilePrefetch(RewritePattern):
    """Prefetches a tile box by box.

    Raises CompilationError for a descriptor without a layout.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: tlx.AsyncTMAPrefetchOp, rewriter: PatternRewriter) -> None:
        """Rewrite `op`."""
        type_ = tt.descriptor_type(op.desc.type)
        layout = layout_of(type_.encoding)
        if not isinstance(layout, SharedLayout):
            raise error_at(op, f"the boxes of {type_} are not known: it has no layout")
        box = tma_box(layout, type_.shape, type_.element_bits)
        rank, integers = len(box), Integers(op)
        operands: list[SSAValue] = [descriptor_address(op, op.desc)]
        code = ""
        for corner in tma_corners(type_.shape, box):
            # PTX counts dimensions from the fastest one.
            coordinates = integers.sums(op.coord, corner)[::-1]
            names = ", ".join(f"{{{len(operands) + number}}}" for number in range(rank))
            operands += coordinates
            code += f"@p cp.async.bulk.prefetch.tensor.{rank}d.L2.global.tile [{{0}}, {{{{{names}}}}}]; "
        run_in_one_thread(op, code.strip(), operands, predicate=op.pred)
        rewriter.erase(op)


def _address(anchor: Operation, pointer: SSAValue) -> SSAValue:
    return insert_before(anchor, tt.PtrToIntOp(operands=[pointer], result_types=[i64])).result


def patterns(module: ModuleOp) -> list[RewritePattern]:
    """The patterns of this file, for `module`."""
    return [LowerBulkLoad(), LowerBulkStore(), WaitForStores(module), LowerTilePrefetch()]
