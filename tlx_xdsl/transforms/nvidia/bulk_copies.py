"""`tlx-lower-bulk-copies`: copies of bytes that follow each other, and prefetches of tiles, as PTX of one thread.

PTX ISA, "cp.async.bulk" and "cp.async.bulk.prefetch.tensor". A store commits a group of its own, for which
`ttng.async_tma_store_wait` waits in the thread that has issued it; so the other threads wait for that thread behind
it. A tile that takes several boxes of its descriptor is prefetched box by box; cache policies of prefetches are hints
to a hint, and are dropped.

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

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from tlx_xdsl.dialects import tlx, tt, ttng
from tlx_xdsl.dialects.tt.types import descriptor_type
from tlx_xdsl.dialects.ttg.attrs import layout_of
from tlx_xdsl.layouts.encodings import SharedLayout
from tlx_xdsl.layouts.tma_box import tma_box, tma_corners
from tlx_xdsl.text.diagnostics import error_at
from tlx_xdsl.transforms.nvidia.integers import Integers
from tlx_xdsl.transforms.nvidia.one_thread import run_in_one_thread, wait_for_region
from tlx_xdsl.transforms.nvidia.shared_address import descriptor_address, shared_address
from tlx_xdsl.transforms.rewriting import insert_before

_LOAD = "@p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [{0}], [{1}], {2}, [{3}];"
_STORE = "@p cp.async.bulk.global.shared::cta.bulk_group [{0}], [{1}], {2}; @p cp.async.bulk.commit_group;"


@dataclass(frozen=True)
class LowerBulkCopiesPass(ModulePass):
    """Replace bulk copies and prefetches of tiles by their PTX."""

    name = "tlx-lower-bulk-copies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite every copy of the module, and let the waits for stores hold for all threads."""
        ops = list(op.walk())
        if any(isinstance(inner, tlx.AsyncBulkStoreOp) for inner in ops):
            for inner in ops:
                if isinstance(inner, ttng.AsyncTMAStoreWaitOp) and inner.next_op is not None:
                    wait_for_region(inner.next_op)
        for inner in ops:
            match inner:
                case tlx.AsyncBulkLoadOp():
                    target, barrier = shared_address(inner, inner.result), shared_address(inner, inner.barrier)
                    wait_for_region(inner)
                    run_in_one_thread(inner, _LOAD, [target, _address(inner, inner.src), inner.size, barrier])
                    Rewriter.erase_op(inner)
                case tlx.AsyncBulkStoreOp():
                    source = shared_address(inner, inner.src)
                    wait_for_region(inner)
                    run_in_one_thread(inner, _STORE, [_address(inner, inner.dst), source, inner.size])
                    Rewriter.erase_op(inner)
                case tlx.AsyncTMAPrefetchOp():
                    _prefetch(inner)
                case _:
                    pass


def _address(anchor: Operation, pointer: SSAValue) -> SSAValue:
    return insert_before(anchor, tt.PtrToIntOp(operands=[pointer], result_types=[i64])).result


def _prefetch(op: tlx.AsyncTMAPrefetchOp) -> None:
    type_ = descriptor_type(op.desc.type)
    layout = layout_of(type_.encoding)
    if not isinstance(layout, SharedLayout):
        raise error_at(op, f"the boxes of {type_} are not known: it has no layout")
    box = tma_box(layout, type_.shape, type_.element_bits)
    rank, integers = len(box), Integers(op)
    operands: list[SSAValue] = [descriptor_address(op, op.desc)]
    code = ""
    for corner in tma_corners(type_.shape, box):
        # PTX counts dimensions from the fastest one.
        places = [integers.value(integers.add(at, more)) for at, more in zip(op.coord, corner, strict=True)][::-1]
        names = ", ".join(f"{{{len(operands) + number}}}" for number in range(rank))
        operands += places
        code += f"@p cp.async.bulk.prefetch.tensor.{rank}d.L2.global.tile [{{0}}, {{{{{names}}}}}]; "
    run_in_one_thread(op, code.strip(), operands, predicate=op.pred)
    Rewriter.erase_op(op)
