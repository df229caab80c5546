"""Barriers and fences."""

from __future__ import annotations

from ..arguments import Int, Text, Value
from ..core import builtin
from .types import mbarrier

__all__ = [
    "alloc_barriers",
    "alloc_warp_barrier",
    "barrier_arrive",
    "barrier_expect_bytes",
    "barrier_wait",
    "fence",
    "fence_async_shared",
    "fence_mbarrier_init_cluster",
    "named_barrier_arrive",
    "named_barrier_wait",
]

_tlx = builtin("tlx")


@_tlx
def alloc_barriers(num_barriers: Int, arrive_count: Int = 1) -> mbarrier:
    """Allocate and initialise mbarriers whose phases complete after `arrive_count` arrivals.

    The result is an array: `bars[i]` is one mbarrier, of 8 bytes of shared memory. Each begins in phase 0, and goes on
    to the next phase when one is complete, so that it can be used any number of times.

    Example: `full = tlx.alloc_barriers(2)`
    """
    ...


@_tlx
def alloc_warp_barrier(num_barriers: Int, num_warps: Int = 1, num_arrivals: Int = 1) -> mbarrier:
    """Allocate mbarriers that `num_warps` warps arrive at without meeting: each thread counts for itself.

    A phase completes after `num_arrivals` calls of `barrier_arrive` by all of their threads.

    Example: `warps = tlx.alloc_warp_barrier(1, num_warps=4)`
    """
    ...


@_tlx
def barrier_expect_bytes(bar: mbarrier, size: Int, pred: Value | None = None) -> None:
    """Arrive once, and make the current phase also wait for `size` bytes of asynchronous copies.

    It comes before the copies; `size` is what all of them bring in this phase. `pred` says whether it happens.

    Example: `tlx.barrier_expect_bytes(full[0], 128 * 64 * tlx.size_of(tl.float16))`
    """


@_tlx
def barrier_wait(bar: mbarrier, phase: Value, pred: Value | None = None) -> None:
    """Block until the barrier's phase of parity `phase` (0 or 1) has completed.

    Phases count from 0, and the parity of a phase is its lowest bit. In a ring of SLOTS buffers whoever reads slot
    `t % SLOTS` in step t waits for parity `(t // SLOTS) & 1`; whoever fills it waits for the opposite one, `^ 1`, which
    passes at once in the first round: it is that of the phase before phase 0. `pred` says whether to wait at all.

    Example: `tlx.barrier_wait(full[0], 0)`
    """


@_tlx
def barrier_arrive(
    bar: mbarrier, arrive_count: Int = 1, remote_cta_rank: Value | None = None, pred: Value | None = None
) -> None:
    """Arrive `arrive_count` times, once per call and not per thread; at the barrier of the CTA `remote_cta_rank`.

    What this task has done before is seen by whoever waits for the phase. `pred` says whether it happens.

    Example: `tlx.barrier_arrive(full[0])`
    """


@_tlx
def named_barrier_wait(bar: Value, arrive_count: Int) -> None:
    """Arrive at the named barrier `bar`, 0 to 15, and block until `arrive_count` threads have arrived.

    Example: `tlx.named_barrier_wait(9, 128)`
    """


@_tlx
def named_barrier_arrive(bar: Value, arrive_count: Int) -> None:
    """Arrive at the named barrier `bar`, 0 to 15, that `arrive_count` threads take part in, without waiting.

    Example: `tlx.named_barrier_arrive(9, 256)`
    """


@_tlx
def fence(scope: Text) -> None:
    """Make this thread's earlier writes visible: to the GPU ("gpu"), to the system ("sys"), or to TMA, as
    `fence_async_shared` does ("async_shared"), or in global memory ("async_global").

    TMA and bulk copies see what threads have written to global memory after "async_global" only (PTX:
    fence.proxy.async.global), by who has written or by who has acquired it. The end of a launch needs none.

    Example: `tlx.fence("gpu")`
    """


@_tlx
def fence_async_shared() -> None:
    """Make this thread's shared-memory accesses visible to TMA and the tensor cores (PTX: fence.proxy.async).

    Example: `tlx.fence_async_shared()`
    """


@_tlx
def fence_mbarrier_init_cluster() -> None:
    """Make the initialisation of this CTA's mbarriers visible to the cluster.

    Example: `tlx.fence_mbarrier_init_cluster()`
    """
