"""Accesses before which the threads of a task must meet, because one of them stores to other CTAs' memory.

A store of threads to the memory of other CTAs may be to that of their own, or follow another one to the same place, and
upstream Triton sees neither in the PTX that it becomes. Its barriers order what the threads of a task do with a buffer
by its own operations alone: which thread stores an element and which one loads it is up to layouts.

Before:
```mlir
tlx.remote_store %v, %there : ...
%w = ttg.local_load %buffer : ...
```
After:
```mlir
tlx.remote_store %v, %there : ...
ttg.barrier local
%w = ttg.local_load %buffer : ...
```
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tlx_xdsl.dialects import nvvm, tlx, tt, ttg
from tlx_xdsl.dialects.base import Kind, Sync, accesses_of, sync_of

from .buffer_users import accesses, task_of
from .value_classes import ValueClasses
from .ways import BODIES, ways

_STORES = (tlx.RemoteStoreOp, tlx.AsyncRemoteStoreOp)


def unordered_accesses(module: ModuleOp) -> Iterator[Operation]:
    """Accesses that threads must meet before, each once there is a barrier before those that were given so far."""
    for func in module.ops:
        if not isinstance(func, tt.FuncOp) or not any(isinstance(op, _STORES) for op in func.walk()):
            continue
        classes = ValueClasses.of(func, ttg.MemDescType)
        allocations = [op for op in func.walk() if isinstance(op, ttg.LocalAllocOp)]
        for alloc in allocations:
            for first, second in _pairs(accesses(alloc.result, classes)):
                if any(not _meet(way) for way in ways(first, second)):
                    yield second


def _pairs(users: list[Operation]) -> Iterator[tuple[Operation, Operation]]:
    """Accesses of one task's threads of which one is a remote store, in the order in which they may need a barrier."""
    by_threads = [op for op in users if _is_by_threads(op)]
    for store in users:
        if not isinstance(store, _STORES):
            continue
        for other in by_threads:
            if other is store or task_of(other) != task_of(store) or _are_by_same_threads(store, other):
                continue
            yield other, store
            # The end of an asynchronous one is that of a phase of its mbarrier.
            if isinstance(store, tlx.RemoteStoreOp) and not isinstance(other, tlx.RemoteStoreOp):
                yield store, other


def _is_by_threads(op: Operation) -> bool:
    """True if each thread accesses the elements that it has, before its next instruction."""
    return any(
        access.kind & (Kind.READ | Kind.WRITE) and not access.is_async and not isinstance(access.completes_on, str)
        for access in accesses_of(op) or ()
    )


def _are_by_same_threads(store: Operation, other: Operation) -> bool:
    """True if two remote stores have each element of a buffer from the same thread: they differ in CTA or slot."""
    if type(store) is not type(other):
        return False
    types = [[operand.type for operand in op.operands] for op in (store, other)]
    buffer = ttg.memdesc_type(store.operands[1].type)
    return types[0] == types[1] and buffer.shape == buffer.alloc_shape[-len(buffer.shape) :]


def _meet(way: list[Operation]) -> bool:
    """True if the threads of the task surely meet on a way."""
    inner = [op for each in way if not isinstance(each, BODIES) for op in each.walk()]
    arrivals = [op for op in inner if isinstance(op, nvvm.ClusterArriveOp)]
    return any(map(_is_meeting, inner)) or (
        bool(arrivals) and any(isinstance(op, nvvm.ClusterWaitOp) for op in inner[inner.index(arrivals[0]) :])
    )


def _is_meeting(op: Operation) -> bool:
    """True for a barrier of the threads, and for what becomes PTX after one."""
    if isinstance(op, tlx.ArriveRemoteOp | tlx.AsyncRemoteCopyOp):
        return True
    sync = sync_of(op)
    return Sync.THREADS in sync and (Sync.ACQUIRE in sync or Sync.NAMED not in sync)
