"""Clusters of thread blocks."""
# RUN: tlx compile %s:cluster --emit ttir -o - | filecheck %s

import tlx_xdsl
import tlx_xdsl.language as tl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def cluster(out):
    bars = tlx.alloc_barriers(1)
    here = tlx.local_alloc((64, 64), tl.float32, 1)[0]
    there = tlx.local_alloc((64, 64), tl.float32, 1)[0]
    # CHECK: %rank = tlx.cluster_cta_rank
    rank = tlx.cluster_cta_rank()
    # CHECK: %size = tlx.cluster_size
    size = tlx.cluster_size_1d()
    # CHECK: ttng.cluster_arrive {relaxed = false}
    # CHECK: ttng.cluster_wait
    tlx.cluster_barrier()
    # CHECK: [[BAR:%.*]] = ttg.memdesc_index %bars[%c0]
    # CHECK: %{{.*}} = tlx.map_to_remote [[BAR]], %c0 : !ttg.memdesc<1xi64, #{{.*}}, #smem, mutable> -> !ttg.memdesc<1xi64, #{{.*}}, #tlx.shared_cluster_memory, mutable>
    leader = tlx.remote_view(bars[0], 0)
    # CHECK: tlx.arrive_remote %{{.*}}, 2 :
    tlx.barrier_arrive(leader, 2)
    x = tlx.local_load(here)
    # CHECK: [[DST:%.*]] = tlx.map_to_remote %{{.*}}, %rank : !ttg.memdesc<64x64xf32,
    # CHECK: tlx.remote_store %x, [[DST]] : tensor<64x64xf32> -> !ttg.memdesc<64x64xf32, #{{.*}}, #tlx.shared_cluster_memory, mutable>
    tlx.remote_shmem_store(there, x, rank)
    # CHECK: [[DST:%.*]] = tlx.map_to_remote %{{.*}}, %rank : !ttg.memdesc<64x64xf32,
    # CHECK: [[BAR:%.*]] = tlx.map_to_remote %{{.*}}, %rank : !ttg.memdesc<1xi64,
    # CHECK: tlx.async_remote_store %x, [[DST]], [[BAR]] :
    tlx.async_remote_shmem_store(there, x, rank, bars[0])
    # CHECK: [[DST:%.*]] = tlx.map_to_remote %{{.*}}, %c1 : !ttg.memdesc<64x64xf32,
    # CHECK: [[BAR:%.*]] = tlx.map_to_remote %{{.*}}, %c1 : !ttg.memdesc<1xi64,
    # CHECK: tlx.async_remote_copy %{{.*}}, [[DST]], [[BAR]] :
    tlx.async_remote_shmem_copy(there, here, 1, bars[0])
    tl.store(out, size)


TLX_COMPILE = {"cluster": {"signature": {"out": "*i32"}}}
