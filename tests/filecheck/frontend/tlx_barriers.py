"""mbarriers, named barriers and fences."""
# RUN: tlx compile %s:barriers --emit ttir -o - | filecheck %s
# RUN: tlx compile %s:shared_tensors --emit ttir -o - | filecheck %s --check-prefix=CLUSTER

import tlx_xdsl
import tlx_xdsl.language.tlx as tlx


@tlx_xdsl.jit
def barriers(n):
    # CHECK: %bars = ttg.local_alloc : () -> !ttg.memdesc<2x1xi64, #shared, #smem, mutable>
    # CHECK: [[FIRST:%.*]] = ttg.memdesc_index %bars[%c0] : {{.*}} -> !ttg.memdesc<1xi64, #shared, #smem, mutable>
    # CHECK: ttng.init_barrier [[FIRST]], 3 :
    # CHECK: ttng.init_barrier %{{.*}}, 3 :
    bars = tlx.alloc_barriers(2, arrive_count=3)
    # Each of 4 * 32 threads counts for itself, twice.
    # CHECK: %warp = ttg.local_alloc : () -> !ttg.memdesc<1x1xi64,
    # CHECK: ttng.init_barrier %{{.*}}, 256 :
    warp = tlx.alloc_warp_barrier(1, num_warps=4, num_arrivals=2)
    # CHECK: [[BAR:%.*]] = ttg.memdesc_index %bars[%n]
    bar = bars[n]
    # CHECK: [[SOME:%.*]] = arith.cmpi sgt, %n, %c0
    # CHECK: ttng.barrier_expect [[BAR]], 1024, [[SOME]] :
    tlx.barrier_expect_bytes(bar, 1024, n > 0)
    # CHECK: ttng.wait_barrier [[BAR]], %n, %true :
    tlx.barrier_wait(bar, n)
    # CHECK: [[SOME:%.*]] = arith.cmpi sgt, %n, %c0
    # CHECK: ttng.wait_barrier [[BAR]], %c1, [[SOME]] :
    tlx.barrier_wait(bar, 1, n > 0)
    # CHECK: ttng.arrive_barrier [[BAR]], 1 :
    tlx.barrier_arrive(bar)
    # CHECK: ttng.arrive_barrier [[BAR]], 2, %{{.*}} :
    tlx.barrier_arrive(bar, 2, pred=n > 1)
    # CHECK: tlx.arrive_per_thread %{{.*}} :
    tlx.barrier_arrive(warp[0])
    # CHECK: [[OTHER:%.*]] = tlx.map_to_remote [[BAR]], %c1 : {{.*}} -> !ttg.memdesc<1xi64, #shared, #tlx.shared_cluster_memory, mutable>
    # CHECK: tlx.arrive_remote [[OTHER]], 1 :
    tlx.barrier_arrive(bar, remote_cta_rank=1)
    # CHECK: tlx.named_barrier_wait %c3, 256
    tlx.named_barrier_wait(3, 256)
    # CHECK: tlx.named_barrier_arrive %n, 128
    tlx.named_barrier_arrive(n, 128)
    # CHECK: tlx.fence gpu
    tlx.fence("gpu")
    # CHECK: tlx.fence sys
    tlx.fence("sys")
    # CHECK-COUNT-2: ttng.fence_async_shared {bCluster = false}
    tlx.fence("async_shared")
    tlx.fence_async_shared()
    # CHECK: tlx.fence_mbarrier_init_cluster
    tlx.fence_mbarrier_init_cluster()


@tlx_xdsl.jit
def shared_tensors():
    # Where several CTAs share a tensor, stock Triton has the operation.
    # CLUSTER: ttng.fence_mbarrier_init_release_cluster
    tlx.fence_mbarrier_init_cluster()


TLX_COMPILE = {"barriers": {"signature": {"n": "i32"}}, "shared_tensors": {"num_ctas": 2}}
