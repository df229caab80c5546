"""Clusters of thread blocks (CTAs), each with tensors of its own; a CTA's rank is its number in the cluster."""

from __future__ import annotations

from typing import Any

from tlx_xdsl.language.core import builtin

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
def cluster_cta_rank() -> Any:
    """The rank of this CTA, an int32."""


@_tlx
def cluster_size_1d() -> Any:
    """The number of CTAs of the cluster, an int32."""


@_tlx
def cluster_barrier() -> Any:
    """Wait for all threads of the cluster; what they wrote before is visible afterwards."""


@_tlx
def remote_view(local_allocated_buffer: Any, remote_cta_rank: Any) -> Any:
    """The mbarrier at the same place in the CTA `remote_cta_rank`."""


@_tlx
def remote_shmem_store(dst: Any, src: Any, remote_cta_rank: Any) -> Any:
    """Write the block `src` to the buffer at the place of `dst` in the CTA `remote_cta_rank`."""


@_tlx
def async_remote_shmem_store(dst: Any, src: Any, remote_cta_rank: Any, barrier: Any) -> Any:
    """Start `remote_shmem_store`; its bytes complete on that CTA's `barrier`."""


@_tlx
def async_remote_shmem_copy(dst: Any, src: Any, remote_cta_rank: Any, barrier: Any) -> Any:
    """Start to copy the buffer `src` to the place of `dst` in another CTA, completing on that CTA's `barrier`."""
