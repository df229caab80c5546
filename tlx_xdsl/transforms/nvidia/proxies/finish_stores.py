"""`tlx-finish-stores`: wait until TMA stores have written before the task releases memory to others.

A TMA store that was issued, or waited for with `read_only`, need not have written yet (PTX ISA, "async-group
completion"). Where the task that issued it then releases memory to other programs or GPUs, by an atomic operation or
a fence, the wait for its writes goes before that, unless the kernel has one.

Before:
```mlir
ttng.async_tma_copy_local_to_global %desc[%i, %j] %tile : ...
ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
%old = tt.atomic_rmw add, release, sys, %signal, %one, %true : ...
```
After:
```mlir
ttng.async_tma_copy_local_to_global %desc[%i, %j] %tile : ...
ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
ttng.async_tma_store_wait {pendings = 0 : i32}
%old = tt.atomic_rmw add, release, sys, %signal, %one, %true : ...
```
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32
from xdsl.ir import Operation

from tlx_xdsl.analysis.dataflow import Arrivals, ForwardWalk
from tlx_xdsl.dialects import tlx, tt, ttng
from tlx_xdsl.dialects.base import Group, Kind, Space, Sync, accesses_of, effects_of, sync_of
from tlx_xdsl.dialects.tt import MemSyncScope
from tlx_xdsl.dialects.tt.atomic import AtomicOp

from ...rewriting import Pass, insert_before


@dataclass
class _Unfinished(ForwardWalk[bool]):
    """Finds releases at which a store of the same task may not have written; a state says whether one may."""

    releases: set[Operation] = field(default_factory=set[Operation])

    def transfer(self, op: Operation, state: bool) -> bool:
        if isinstance(op, ttng.AsyncTMAStoreWaitOp):
            return state and (op.read_only is not None or op.pendings.value.data > 0)
        if effects_of(op).completes_on is Group.BULK:
            written = (each for each in accesses_of(op) or () if Kind.WRITE in each.kind)
            return state or any(each.space is Space.GLOBAL for each in written)
        if state and _releases_to_others(op):
            self.releases.add(op)
            return False
        return state

    def join(self, arrivals: Arrivals[bool]) -> bool:
        return any(state for _, state in arrivals)


def _releases_to_others(op: Operation) -> bool:
    """Return whether an operation releases memory to other programs."""
    if isinstance(op, tlx.FenceOp):
        return True
    return isinstance(op, AtomicOp) and Sync.RELEASE in sync_of(op) and op.reach is not MemSyncScope.CTA


class FinishStoresPass(Pass):
    """Put the waits that are missing."""

    name = "tlx-finish-stores"

    def run(self, op: ModuleOp) -> None:
        """Handle all functions of the module."""
        for func in [each for each in op.walk() if isinstance(each, tt.FuncOp)]:
            analysis = _Unfinished()
            analysis.run(func, state=False)
            for release in [each for each in func.walk() if each in analysis.releases]:
                insert_before(release, ttng.AsyncTMAStoreWaitOp(properties={"pendings": IntegerAttr(0, i32)}))
