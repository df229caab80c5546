"""`ttl-bufferize`: tensors become memory, and operations on blocks `ttl.compute` operations that write it.

Before:
```mlir
%a = ttl.cb_wait %a_cb : !ttl.cb<...> -> tensor<2x2x!tile>
%b = ttl.cb_wait %b_cb : !ttl.cb<...> -> tensor<2x2x!tile>
%s = ttl.add %a, %b : tensor<2x2x!tile>, tensor<2x2x!tile> -> tensor<2x2x!tile>
%e = ttl.exp %s : tensor<2x2x!tile> -> tensor<2x2x!tile>
ttl.cb_pop %a_cb
ttl.cb_pop %b_cb
%c = ttl.cb_reserve %c_cb : !ttl.cb<...> -> tensor<2x2x!tile>
ttl.store %e, %c : tensor<2x2x!tile>, tensor<2x2x!tile>
ttl.cb_push %c_cb
```
After:
```mlir
%a = ttl.cb_wait %a_cb : !ttl.cb<...> -> memref<2x2x!tile>
%b = ttl.cb_wait %b_cb : !ttl.cb<...> -> memref<2x2x!tile>
%c = ttl.cb_reserve %c_cb : !ttl.cb<...> -> memref<2x2x!tile>
ttl.compute ins(%a, %b : memref<2x2x!tile>, memref<2x2x!tile>) outs(%c : memref<2x2x!tile>) {...} {
^bb0(%x: !tile, %y: !tile, %z: !tile):
  %0 = ttl.tile_add %x, %y : !tile
  %1 = ttl.tile_exp %0 : !tile
  ttl.yield %1 : !tile
}
ttl.cb_pop %a_cb
ttl.cb_pop %b_cb
ttl.cb_push %c_cb
```
Each store is the destination of what is stored, so that no block but those of circular buffers is in memory. What a
product, a reduction, a transposition or a broadcast reads must be in one: where it is computed, it is written to a
buffer of the compiler's own first, as are products and reductions which further operations use. A `ttl.pack_tile` with
what its tile is computed from becomes a `ttl.compute` of one tile of each block (`compute.packs`).
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from tlx_xdsl.transforms.rewriting import Pass, insert_before, ops_of, replace

from ..analysis.block_values import needs_buffer
from ..analysis.protocol import check_progress
from ..analysis.store_groups import store_groups
from ..dialects import ttl
from .compute.chains import Chain, check_writable
from .compute.compiler_buffers import CompilerBuffers
from .compute.packs import compute_of_pack
from .compute.releases import release_after_last_use, sink_releases
from .compute.views import retype_arguments, retype_views


class BufferizePass(Pass):
    """Bufferize all kernels."""

    name = "ttl-bufferize"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place.

        Raises CompilationError for blocks that are used where they are not in memory any more.
        """
        for kernel in ops_of(op, ttl.KernelOp):
            retype_arguments(kernel)
            retype_views(kernel)
            threads = [each for each in kernel.threads if isinstance(each, ttl.ComputeThreadOp)]
            # A pop that comes later may be what another thread waits for.
            if any([_bufferize(kernel, thread) for thread in threads]):
                check_progress(kernel)


def _bufferize(kernel: ttl.KernelOp, thread: ttl.ComputeThreadOp) -> bool:
    """Bufferize a thread; whether it pops blocks later than it did."""
    for marker in ops_of(thread, ttl.RequireDSTOp):
        Rewriter.erase_op(marker)
    _erase_unused(thread)
    compiler = CompilerBuffers(kernel, thread)
    for reduction in ops_of(thread, ttl.ReduceOp):
        if reduction.scaler is None:
            compiler.ones(reduction)
    stores = {group[-1]: group for group in store_groups(thread)}
    buffers: dict[SSAValue, SSAValue] = {}
    for op in ops_of(thread, ttl.PackTileOp):
        _locate_end(compute_of_pack(op))
    for op in [*thread.walk()]:
        if isinstance(op, ttl.BlockComputeOp) and needs_buffer(op.result):
            reserve, block = compiler.buffer(op)
            push = reserve.next_op
            assert push is not None
            compute = Chain(buffers, compiler.ones).compute([op.result], [reserve.view])
            _locate_end(insert_before(push, compute, located_at=op))
            buffers[op.result] = block
        elif isinstance(op, ttl.StoreOp) and op in stores:
            _bufferize_stores(stores[op], Chain(buffers, compiler.ones))
    _erase_unused(thread)
    for wait in compiler.waits:
        release_after_last_use(wait)
    return sink_releases(thread)


def _bufferize_stores(group: list[ttl.StoreOp], chain: Chain) -> None:
    """Replace stores by one compute at the last one."""
    for store in group:
        check_writable(store)
    *others, last = group
    is_accumulation = last.accumulate is not None
    values, views = [store.value for store in group], [store.view for store in group]
    _locate_end(replace(last, chain.compute(values, views, accumulate=is_accumulation, first=last.first)))
    for store in others:
        Rewriter.erase_op(store)


def _locate_end(compute: ttl.ComputeOp) -> None:
    end = compute.body.block.last_op
    assert end is not None, "a body ends in a ttl.yield"
    end.location = compute.location


def _erase_unused(thread: ttl.ComputeThreadOp) -> None:
    for op in reversed([*thread.walk()]):
        if isinstance(op, ttl.BlockComputeOp) and op.result.first_use is None:
            Rewriter.erase_op(op)
