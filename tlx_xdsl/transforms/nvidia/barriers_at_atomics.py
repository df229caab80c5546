"""`tlx-insert-barriers-at-atomics`: threads meet before an atomic operation that releases and after one that acquires.

What other threads of a program have stored is not released by the thread that does the atomic operation unless they
have met before ("PTX ISA", Memory Consistency Model, causality order). Upstream Triton 3.9 has a barrier of the thread
block on the side that the semantics ask for; before 3.9 there is none, and a lock is free while other threads still
store. Where the result of an operation on one address is used, all threads get it through shared memory, and so meet
after it anyway.

Before:
```mlir
tt.store %out, %values : tensor<128x!tt.ptr<f32>>
%old = tt.atomic_rmw exch, release, gpu, %lock, %zero : (!tt.ptr<i32>, i32) -> i32
```
After:
```mlir
tt.store %out, %values : tensor<128x!tt.ptr<f32>>
ttg.barrier all
%old = tt.atomic_rmw exch, release, gpu, %lock, %zero : (!tt.ptr<i32>, i32) -> i32
```
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl.dialects import tt, ttg
from tlx_xdsl.dialects.base import Sync, as_tensor, sync_of

from ..rewriting import Pass, ops_of


class InsertBarriersAtAtomicsPass(Pass):
    """Put barriers of the thread block beside atomic operations on global memory, where there are none."""

    name = "tlx-insert-barriers-at-atomics"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for atomic in ops_of(op, tt.AtomicRMWOp, tt.AtomicCASOp):
            sync = sync_of(atomic)
            if Sync.RELEASE in sync and not _is_barrier(atomic.prev_op):
                _insert(atomic, InsertPoint.before(atomic))
            if Sync.ACQUIRE in sync and not _hands_out(atomic) and not _is_barrier(atomic.next_op):
                _insert(atomic, InsertPoint.after(atomic))


def _is_barrier(op: Operation | None) -> bool:
    return isinstance(op, ttg.BarrierOp) and op.addr_space.value.data == ttg.AddrSpace.All


def _hands_out(atomic: tt.AtomicRMWOp | tt.AtomicCASOp) -> bool:
    """Whether all threads get the result of one."""
    return as_tensor(atomic.result.type) is None and bool(atomic.result.uses)


def _insert(atomic: Operation, place: InsertPoint) -> None:
    barrier = ttg.BarrierOp.of(ttg.AddrSpace.All)
    barrier.location = atomic.location
    Rewriter.insert_op(barrier, place)
