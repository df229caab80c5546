"""Barriers of the thread block that single versions of upstream Triton leave out.

`tlx-insert-barriers-at-atomics`: threads meet before an atomic operation that releases and after one that acquires.

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

`tlx-insert-barrier-before-tasks`: threads meet before tasks whose captures take the place of other data.

Upstream Triton 3.6 stores what tasks capture to shared memory, at bytes that a reduction or a conversion may have used
just before, and puts no barrier in between: a fast warp overwrites what a slow one still reads. The PTX machine reports
it. Later versions have the barrier.

Before:
```mlir
%sum = "tt.reduce"(%values) <{axis = 0 : i32}> ({...}) : (tensor<32xi32, #layout>) -> i32
ttg.warp_specialize(%sum) ...
```
After:
```mlir
%sum = "tt.reduce"(%values) <{axis = 0 : i32}> ({...}) : (tensor<32xi32, #layout>) -> i32
ttg.barrier local
ttg.warp_specialize(%sum) ...
```

`tlx-insert-tensor-memory-barriers`: warps meet between accesses to tensor memory in two shapes. Eight warps share its
lanes by fours, and which columns a warp has depends on the shape. Upstream Triton before 3.8 knows no order in tensor
memory but that of a warp, so through an alias a fast warp overwrites what a slow one still reads.

Before:
```mlir
%scores = ttng.tmem_load %s : !ttg.memdesc<128x128xf32, #wide, ...> -> tensor<128x128xf32, #layout>
ttng.tmem_store %p, %alias_of_s, %true : tensor<128x128xf16, #other> -> !ttg.memdesc<128x128xf16, #narrow, ...>
```
After:
```mlir
%scores = ttng.tmem_load %s : !ttg.memdesc<128x128xf32, #wide, ...> -> tensor<128x128xf32, #layout>
ttg.barrier local
ttng.tmem_store %p, %alias_of_s, %true : tensor<128x128xf16, #other> -> !ttg.memdesc<128x128xf16, #narrow, ...>
```
"""

from __future__ import annotations

from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from tlx_xdsl.analysis.dataflow import Arrivals, ForwardWalk
from tlx_xdsl.analysis.value_classes import ValueClasses
from tlx_xdsl.dialects import tt, ttg, ttng
from tlx_xdsl.dialects.base import Sync, as_tensor, num_warps_of, sync_of
from tlx_xdsl.layouts.distributed import WARPS_PER_WARP_GROUP

from ..rewriting import Pass, insert_before, ops_of


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
    """Return whether all threads get the result of one."""
    return as_tensor(atomic.result.type) is None and bool(atomic.result.uses)


def _insert(atomic: Operation, place: InsertPoint) -> None:
    barrier = ttg.BarrierOp.of(ttg.AddrSpace.All)
    barrier.location = atomic.location
    Rewriter.insert_op(barrier, place)


class InsertBarrierBeforeTasksPass(Pass):
    """Put a barrier before each `ttg.warp_specialize` with captures, in functions that work on tensors outside of it.

    Which of their operations need shared memory is decided by later passes; scalars never do.
    """

    name = "tlx-insert-barrier-before-tasks"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for function in ops_of(op, tt.FuncOp):
            if any(map(_has_tensor, _outside_of_tasks(function))):
                for tasks in ops_of(function, ttg.WarpSpecializeOp):
                    if tasks.partitions.operands:
                        insert_before(tasks, ttg.BarrierOp.of(ttg.AddrSpace.Local))


def _outside_of_tasks(op: Operation) -> list[Operation]:
    found: list[Operation] = []
    for region in op.regions:
        for inner in region.walk():
            found.append(inner)
    tasks = {id(each) for inner in found if isinstance(inner, ttg.WarpSpecializeOp) for each in inner.walk()}
    return [inner for inner in found if id(inner) not in tasks]


def _has_tensor(op: Operation) -> bool:
    return any(as_tensor(value.type) is not None for value in (*op.operands, *op.results))


class InsertTensorMemoryBarriersPass(Pass):
    """Put a barrier between accesses to tensor memory in two shapes, of which one writes, by more than four warps."""

    name = "tlx-insert-tensor-memory-barriers"

    def run(self, op: ModuleOp) -> None:
        """Rewrite the module in place."""
        for function in ops_of(op, tt.FuncOp):
            if ops_of(function, ttng.TMEMStoreOp, ttng.TMEMAllocOp):
                walk = _TensorMemory(function)
                walk.run(function, frozenset())
                for access in walk.late:
                    insert_before(access, ttg.BarrierOp.of(ttg.AddrSpace.Local))


_Access: TypeAlias = tuple[SSAValue, Attribute, bool]
"""The allocation, the type of the view, and whether it writes."""


class _TensorMemory(ForwardWalk[frozenset[_Access]]):
    """Follows the accesses since the last barrier; `late` gets those that need one before them."""

    def __init__(self, function: tt.FuncOp):
        self.late: dict[Operation, None] = {}
        self._classes = ValueClasses.of(function, ttg.MemDescType)
        for op in function.walk():
            views = [value for value in (*op.operands, *op.results) if isinstance(value.type, ttg.MemDescType)]
            if any(isinstance(result.type, ttg.MemDescType) for result in op.results):
                self._classes.join(*views)

    def transfer(self, op: Operation, state: frozenset[_Access]) -> frozenset[_Access]:
        """Return the accesses since the last barrier, with that of `op`."""
        if isinstance(op, ttg.BarrierOp | ttg.WarpSpecializeOp):
            return frozenset()
        if isinstance(op, ttng.TMEMLoadOp):
            view, writes = op.src, False
        elif isinstance(op, ttng.TMEMStoreOp):
            view, writes = op.dst, True
        elif isinstance(op, ttng.TMEMAllocOp) and op.src is not None:
            view, writes = op.results[0], True
        else:
            return state
        if (num_warps_of(op) or 0) <= WARPS_PER_WARP_GROUP:
            return state
        root = self._classes.representative(view)
        if any(root is other and view.type != type_ and (writes or wrote) for other, type_, wrote in state):
            self.late[op] = None
        before = frozenset[_Access]() if op in self.late else state
        return before | {(root, view.type, writes)}

    def join(self, arrivals: Arrivals[frozenset[_Access]]) -> frozenset[_Access]:
        """Return what has been accessed on some way."""
        return frozenset[_Access]().union(*(state for _, state in arrivals))
