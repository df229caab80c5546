"""Clusters of thread blocks (CTAs), each with tensors of its own; a CTA's rank is its number in the cluster."""

from __future__ import annotations

from ..arguments import Value
from ..core import builtin
from ..objects import tensor
from .types import B, buffered_tensor, mbarrier

__all__ = [
    "async_remote_shmem_copy",
    "async_remote_shmem_store",
    "cluster_barrier",
    "cluster_cta_rank",
    "cluster_size_1d",
    "remote_shmem_store",
    "remote_view",
]

_tlx = builtin("tlx")


@_tlx
def cluster_cta_rank() -> tensor:
    """The rank of this CTA, an int32.

    Example: `mine = tlx.cluster_cta_rank()`
    """
    ...


@_tlx
def cluster_size_1d() -> tensor:
    """The number of CTAs of the cluster, an int32.

    Example: `ctas = tlx.cluster_size_1d()`
    """
    ...


@_tlx
def cluster_barrier() -> None:
    """Wait for all threads of the cluster; what they wrote before is visible afterwards.

    Example: `tlx.cluster_barrier()`
    """


@_tlx
def remote_view(local_allocated_buffer: B, remote_cta_rank: Value) -> B:
    """The mbarrier at the same place in the CTA `remote_cta_rank`.

    Example: `theirs = tlx.remote_view(full[0], tlx.cluster_cta_rank() ^ 1)`
    """
    ...


@_tlx
def remote_shmem_store(dst: buffered_tensor, src: tensor, remote_cta_rank: Value) -> None:
    """Write the block `src` to the buffer at the place of `dst` in the CTA `remote_cta_rank`.

    Example: `tlx.remote_shmem_store(a[0], block, tlx.cluster_cta_rank() ^ 1)`
    """


@_tlx
def async_remote_shmem_store(dst: buffered_tensor, src: tensor, remote_cta_rank: Value, barrier: mbarrier) -> None:
    """Start `remote_shmem_store`; its bytes complete on that CTA's `barrier`.

    Example: `tlx.async_remote_shmem_store(a[0], block, tlx.cluster_cta_rank() ^ 1, full[0])`
    """


@_tlx
def async_remote_shmem_copy(
    dst: buffered_tensor, src: buffered_tensor, remote_cta_rank: Value, barrier: mbarrier
) -> None:
    """Start to copy the buffer `src` to the place of `dst` in another CTA, completing on that CTA's `barrier`.

    Example: `tlx.async_remote_shmem_copy(a[0], a[1], tlx.cluster_cta_rank() ^ 1, full[0])`
    """
