"""The `tlx` language of kernels: `import tlx_xdsl.language.tlx as tlx`.

Names and meaning are those of Meta's TLX. A *buffered tensor* is an array of buffers in shared or tensor memory;
`buf[i]` is buffer `i` of it. An *mbarrier array* holds barriers; `bars[i]` is barrier `i`. Sizes are in elements
unless a name or a sentence says bytes. One module per topic: buffers (`memory`), `barriers`, `cluster`, copies to and
from global memory (`copies`), the tensor cores (`mma`), `tasks`, cluster launch control (`clc`), `layouts`, `utility`.
"""

from __future__ import annotations

from typing import Any

from tlx_xdsl.language.tlx.amd import amd_only
from tlx_xdsl.language.tlx.barriers import (
    alloc_barriers,
    alloc_warp_barrier,
    barrier_arrive,
    barrier_expect_bytes,
    barrier_wait,
    fence,
    fence_async_shared,
    fence_mbarrier_init_cluster,
    named_barrier_arrive,
    named_barrier_wait,
)
from tlx_xdsl.language.tlx.clc import (
    _alloc_clc_responses,  # pyright: ignore[reportPrivateUsage]
    _clc_issue,  # pyright: ignore[reportPrivateUsage]
    _clc_query,  # pyright: ignore[reportPrivateUsage]
    clc_consumer,
    clc_create_context,
    clc_producer,
)
from tlx_xdsl.language.tlx.cluster import (
    async_remote_shmem_copy,
    async_remote_shmem_store,
    cluster_barrier,
    cluster_cta_rank,
    cluster_size_1d,
    remote_shmem_store,
    remote_view,
)
from tlx_xdsl.language.tlx.copies import (
    allocate_tensor_descriptor,
    async_descriptor_load,
    async_descriptor_prefetch_tensor,
    async_descriptor_store,
    async_descriptor_store_wait,
    async_load,
    async_load_commit_group,
    async_load_wait_group,
    async_store,
    make_tensor_descriptor,
    prefetch,
    reinterpret_tensor_descriptor,
)
from tlx_xdsl.language.tlx.layouts import (
    DummyRegisterLayoutEncoding,
    TMemCTAMode,
    assert_same_layout,
    dump_layout,
    layout,
    layout_encoding,
    nv_mma_shared_layout_encoding,
    padded_shared_layout_encoding,
    release_layout,
    require_layout,
    shared_layout_encoding,
    shared_linear_layout_encoding,
    swizzled_layout,
    swizzled_shared_layout_encoding,
    tensor_memory_layout_encoding,
)
from tlx_xdsl.language.tlx.memory import (
    local_alloc,
    local_gather,
    local_load,
    local_reinterpret,
    local_reshape,
    local_scatter,
    local_slice,
    local_store,
    local_trans,
    local_view,
    subslice,
    tmem_copy,
    zeros,
)
from tlx_xdsl.language.tlx.mma import async_dot, async_dot_scaled, async_dot_wait, dot_scaled, tcgen05_commit
from tlx_xdsl.language.tlx.tasks import async_task, async_task_replica_id, async_tasks
from tlx_xdsl.language.tlx.types import (
    CLCPipelineContext,
    async_token,
    buffered_tensor,
    buffered_tensor_type,
    clc_response,
    mbarrier,
    reuse_group,
    reuse_group_ir_type,
    reuse_group_type,
    storage_alias_spec,
    storage_alias_spec_type,
    storage_alias_spec_type_class,
    storage_kind,
    tensor_descriptor_ptr,
)
from tlx_xdsl.language.tlx.utility import (
    assume_uniform,
    clock64,
    dtype_of,
    get_bufidx_phase,
    get_fp8_format_name,
    size_of,
    stoch_round,
    thread_id,
    vote_ballot_sync,
)

__all__ = [
    "CLCPipelineContext",
    "DummyRegisterLayoutEncoding",
    "TMemCTAMode",
    "_alloc_clc_responses",
    "_clc_issue",
    "_clc_query",
    "alloc_barriers",
    "alloc_warp_barrier",
    "allocate_tensor_descriptor",
    "assert_same_layout",
    "assume_uniform",
    "async_descriptor_load",
    "async_descriptor_prefetch_tensor",
    "async_descriptor_store",
    "async_descriptor_store_wait",
    "async_dot",
    "async_dot_scaled",
    "async_dot_wait",
    "async_load",
    "async_load_commit_group",
    "async_load_wait_group",
    "async_remote_shmem_copy",
    "async_remote_shmem_store",
    "async_store",
    "async_task",
    "async_task_replica_id",
    "async_tasks",
    "async_token",
    "barrier_arrive",
    "barrier_expect_bytes",
    "barrier_wait",
    "buffered_tensor",
    "buffered_tensor_type",
    "clc_consumer",
    "clc_create_context",
    "clc_producer",
    "clc_response",
    "clock64",
    "cluster_barrier",
    "cluster_cta_rank",
    "cluster_size_1d",
    "dot_scaled",
    "dtype_of",
    "dump_layout",
    "fence",
    "fence_async_shared",
    "fence_mbarrier_init_cluster",
    "get_bufidx_phase",
    "get_fp8_format_name",
    "layout",
    "layout_encoding",
    "local_alloc",
    "local_gather",
    "local_load",
    "local_reinterpret",
    "local_reshape",
    "local_scatter",
    "local_slice",
    "local_store",
    "local_trans",
    "local_view",
    "make_tensor_descriptor",
    "mbarrier",
    "named_barrier_arrive",
    "named_barrier_wait",
    "nv_mma_shared_layout_encoding",
    "padded_shared_layout_encoding",
    "prefetch",
    "reinterpret_tensor_descriptor",
    "release_layout",
    "remote_shmem_store",
    "remote_view",
    "require_layout",
    "reuse_group",
    "reuse_group_ir_type",
    "reuse_group_type",
    "shared_layout_encoding",
    "shared_linear_layout_encoding",
    "size_of",
    "stoch_round",
    "storage_alias_spec",
    "storage_alias_spec_type",
    "storage_alias_spec_type_class",
    "storage_kind",
    "subslice",
    "swizzled_layout",
    "swizzled_shared_layout_encoding",
    "tcgen05_commit",
    "tensor_descriptor_ptr",
    "tensor_memory_layout_encoding",
    "thread_id",
    "tmem_copy",
    "vote_ballot_sync",
    "zeros",
]


def __getattr__(name: str) -> Any:
    """Names that exist for AMD GPUs only, so that a kernel that uses one gets an error that says so."""
    found = amd_only(name)
    if found is None:
        raise AttributeError(f"module 'tlx_xdsl.language.tlx' has no attribute '{name}'")
    return found
