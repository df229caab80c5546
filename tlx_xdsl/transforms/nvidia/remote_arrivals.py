"""`tlx-relax-remote-arrivals`: relax the memory ordering of arrivals at other CTAs' mbarriers.

A release to the cluster waits until all accesses of the CTA's threads have reached the GPU's L2 cache (SASS:
MEMBAR.ALL.GPU); beside that of an MMA this is most of an arrival's time. `analysis.remote_releases` says what
a function's arrivals must release, and each of them gets one of three forms:

- *cluster*: `mbarrier.arrive.release.cluster`. Everything is released.
- *shared*: `fence.release.sync_restrict::shared::cta.cluster` and `mbarrier.arrive.relaxed.cluster`, which are a
  release pattern for the accesses to the own shared memory (PTX ISA, "Memory Consistency Model", "Release and Acquire
  Patterns"; "fence", `.sync_restrict`: the fence orders operations on objects in `.shared::cta`, for the cluster).
- *cta*: `mbarrier.arrive.release.cta`, which is `mbarrier.arrive` without more (PTX ISA, "mbarrier.arrive", `.sem`,
  `.scope`). The threads of the own CTA that wait for the barrier, which may be the own one, may rely on all; for those
  of others nothing is left to release. A relaxed arrival would cost the same and be less: ptxas moves accesses of the
  threads across it.

What remains without a release are asynchronous operations that were waited for. `wgmma.wait_group`, `tcgen05.wait`, a
completed phase of an mbarrier and `cp.async.bulk.wait_group` say that they are performed: a read has its value then, so
that no write to come can change it, and a write is in memory, where whoever reads later finds it.

The other side waits by `mbarrier.try_wait`, which acquires from the own CTA unless it says more (PTX ISA,
"mbarrier.try_wait"). Where arrivals hand over global memory, `fence.acquire.cluster` follows the waits, since the L1
cache may hold what was there before (SASS: CCTL.IVALL); where it is shared memory, which is not cached,
`fence.acquire.sync_restrict::shared::cluster.cluster` does, of which ptxas makes no instruction (12.8 to 13.5, sm_90a).

Before:
```mlir
ttng.wait_barrier %full, %phase : ...
%c = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : ...
tlx.arrive_remote %empty, 1 : ...
```
After:
```mlir
ttng.wait_barrier %full, %phase : ...
%c = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : ...
tlx.arrive_remote %empty, 1 releases cta : ...
```
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tlx_xdsl.analysis.remote_releases import remote_releases
from tlx_xdsl.dialects import tlx, tt

from ..rewriting import Pass, ops_of
from .emit.ptx import run

_ACQUIRE = "fence.acquire.cluster;"
_ACQUIRE_SHARED = "fence.acquire.sync_restrict::shared::cluster.cluster;"


class RelaxRemoteArrivalsPass(Pass):
    """Set what arrivals at other CTAs' mbarriers release."""

    name = "tlx-relax-remote-arrivals"

    def run(self, op: ModuleOp) -> None:
        """Handle every function of a module with such arrivals, or stores that complete on other CTAs' mbarriers."""
        if not ops_of(op, tlx.ArriveRemoteOp, tlx.AsyncRemoteStoreOp):
            return
        for func in ops_of(op, tt.FuncOp):
            _relax(func)


def _relax(func: tt.FuncOp) -> None:
    found = remote_releases(func)
    for waits, code in ((found.acquires, _ACQUIRE), (found.shared_acquires, _ACQUIRE_SHARED)):
        for wait in waits:
            assert wait.next_op is not None, "a block ends in a terminator"
            run(wait.next_op, code)
    for op in ops_of(func, tlx.ArriveRemoteOp):
        if op.releases is None and found.releases is not tlx.Releases.CLUSTER:
            op.properties["releases"] = found.releases.attr
