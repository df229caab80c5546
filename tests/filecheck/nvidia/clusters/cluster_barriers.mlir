// RUN: tlx-opt %s -p tlx-insert-cluster-barriers,tlx-lower-cluster-barriers --split-input-file | filecheck %s

// The user has not written that the cluster waits: it does so after the initialisation and before the exit.

// CHECK-LABEL: @missing
// CHECK-SAME:    nvvm.cluster_dim = array<i32: 2, 1, 1>
// CHECK:         ttng.init_barrier
// CHECK-NEXT:    nvvm.fence.mbarrier.init
// After the fence nothing is left to release.
// CHECK-NEXT:    nvvm.cluster.arrive.relaxed {aligned}
// CHECK-NEXT:    nvvm.cluster.wait {aligned}
// CHECK:         tlx.arrive_remote
// CHECK-NEXT:    nvvm.cluster.arrive {aligned}
// CHECK-NEXT:    nvvm.cluster.wait {aligned}
// CHECK-NEXT:    tt.return
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.cluster-dim-x" = 2 : i32, "ttg.cluster-dim-y" = 1 : i32, "ttg.cluster-dim-z" = 1 : i32} {
  tt.func public @missing(%rank: i32) {
    %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #s, #smem, mutable>
    ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #s, #smem, mutable>
    %r = tlx.map_to_remote %bar, %rank : !ttg.memdesc<1xi64, #s, #smem, mutable> -> !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    tlx.arrive_remote %r, 1 : !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    tt.return
  }
}

// -----

// What the user has said is enough, and a kernel without a cluster has nothing to wait for.

// CHECK-LABEL: @said
// CHECK:         nvvm.fence.mbarrier.init
// CHECK-NEXT:    nvvm.cluster.arrive.relaxed {aligned}
// CHECK-NEXT:    nvvm.cluster.wait {aligned}
// CHECK-NOT:     nvvm.cluster
// CHECK:         tlx.arrive_remote
// CHECK:         nvvm.cluster.arrive {aligned}
// CHECK-NEXT:    nvvm.cluster.wait {aligned}
// CHECK-NOT:     nvvm.cluster
// CHECK:       @alone
// CHECK-NOT:     nvvm.
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @said(%rank: i32) {
    %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #s, #smem, mutable>
    ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #s, #smem, mutable>
    tlx.fence_mbarrier_init_cluster
    ttng.cluster_arrive {relaxed = true}
    ttng.cluster_wait
    %r = tlx.map_to_remote %bar, %rank : !ttg.memdesc<1xi64, #s, #smem, mutable> -> !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    tlx.arrive_remote %r, 1 : !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    ttng.cluster_arrive {relaxed = false}
    ttng.cluster_wait
    tt.return
  }
  tt.func private @alone() {
    ttg.warp_specialize()
    default {
      ttg.warp_yield
    }
    partition0() num_warps(1) {
      ttg.warp_return
    } : () -> ()
    tt.return
  }
}

// -----

// The warps of the partitions arrive, too: 5 are filled up to 8. After the tasks the cluster waits, as TLX has it.

// CHECK-LABEL: @tasks
// CHECK:         ttg.warp_specialize() attributes {tlx.no_ending_cluster_sync}
// CHECK-NEXT:    default {
// CHECK-NEXT:      nvvm.cluster.arrive.relaxed {aligned}
// CHECK-NEXT:      nvvm.cluster.wait {aligned}
// CHECK-NEXT:      ttg.warp_yield
// CHECK:         partition0() num_warps(8) {
// CHECK-NEXT:      nvvm.cluster.arrive.relaxed {aligned}
// CHECK-NEXT:      nvvm.cluster.wait {aligned}
// CHECK-NEXT:      ttg.warp_return
// CHECK:         ttg.warp_specialize() attributes {tlx.no_ending_cluster_sync}
// CHECK-NEXT:    default {
// CHECK-NEXT:      ttg.warp_yield
// CHECK:         partition1() num_warps(4)
// CHECK:         ttg.warp_specialize() attributes {tlx.no_ending_cluster_sync}
// CHECK:           nvvm.cluster.wait {aligned}
// CHECK:         partition0() num_warps(8)
// CHECK:         tt.return
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @tasks() {
    ttng.cluster_arrive {relaxed = false}
    ttng.cluster_wait
    ttg.warp_specialize()
    default {
      ttg.warp_yield
    }
    partition0() num_warps(1) {
      ttg.warp_return
    }
    partition1() num_warps(4) {
      ttg.warp_return
    } : () -> ()
    tt.return
  }
}

// -----

// A barrier at the start moves into the partitions that follow, for it only says that the other CTAs have started: they
// wait before they reach another CTA, or at their end. And as the user says so, no barrier ends the kernel.

// CHECK-LABEL: @sunk
// CHECK-NOT:     nvvm.cluster.
// CHECK:         ttng.barrier_expect
// CHECK-NEXT:    ttg.warp_specialize(
// CHECK-NEXT:    default {
// CHECK-NEXT:      nvvm.cluster.arrive.relaxed {aligned}
// CHECK-NEXT:      ttng.wait_barrier
// CHECK-NEXT:      nvvm.cluster.wait {aligned}
// CHECK-NEXT:      ttg.warp_yield
// CHECK:         partition0({{.*}}) num_warps(4) {
// CHECK-NEXT:      nvvm.cluster.arrive.relaxed {aligned}
// CHECK-NEXT:      ttng.wait_barrier
// CHECK-NEXT:      nvvm.cluster.wait {aligned}
// CHECK-NEXT:      tlx.map_to_remote
// CHECK-NOT:     nvvm.cluster.
// CHECK:         tt.return
// Where the main warps reach another CTA before the partitions start, they wait there.
// CHECK-LABEL: @not_sunk
// CHECK:         nvvm.cluster.wait {aligned}
// CHECK:         tlx.arrive_remote
// CHECK:         ttg.warp_specialize(
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.cluster-dim-x" = 2 : i32, "ttg.cluster-dim-y" = 1 : i32, "ttg.cluster-dim-z" = 1 : i32} {
  tt.func public @sunk(%rank: i32, %zero: i32, %true: i1) {
    %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #s, #smem, mutable>
    ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #s, #smem, mutable>
    tlx.fence_mbarrier_init_cluster
    ttng.cluster_arrive {relaxed = false}
    ttng.cluster_wait
    ttng.barrier_expect %bar, 64, %true : !ttg.memdesc<1xi64, #s, #smem, mutable>
    ttg.warp_specialize(%bar, %rank, %zero) attributes {tlx.no_ending_cluster_sync}
    default {
      ttng.wait_barrier %bar, %zero : !ttg.memdesc<1xi64, #s, #smem, mutable>
      ttg.warp_yield
    }
    partition0(%b: !ttg.memdesc<1xi64, #s, #smem, mutable>, %other: i32, %phase: i32) num_warps(4) {
      ttng.wait_barrier %b, %phase : !ttg.memdesc<1xi64, #s, #smem, mutable>
      %r = tlx.map_to_remote %b, %other : !ttg.memdesc<1xi64, #s, #smem, mutable> -> !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
      tlx.arrive_remote %r, 1 : !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
      ttg.warp_return
    } : (!ttg.memdesc<1xi64, #s, #smem, mutable>, i32, i32) -> ()
    tt.return
  }
  tt.func public @not_sunk(%rank: i32) {
    %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #s, #smem, mutable>
    ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #s, #smem, mutable>
    tlx.fence_mbarrier_init_cluster
    ttng.cluster_arrive {relaxed = false}
    ttng.cluster_wait
    %r = tlx.map_to_remote %bar, %rank : !ttg.memdesc<1xi64, #s, #smem, mutable> -> !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    tlx.arrive_remote %r, 1 : !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
    ttg.warp_specialize()
    default {
      ttg.warp_yield
    }
    partition0() num_warps(4) {
      ttg.warp_return
    } : () -> ()
    tt.return
  }
}

// -----

// The barrier releases what a thread has stored before it, and an initialisation without a fence, too.

// CHECK-LABEL: @stored
// CHECK:         ttg.local_store
// CHECK:         nvvm.cluster.arrive {aligned}
// CHECK:         tt.return
// CHECK-LABEL: @not_fenced
// CHECK:         ttng.init_barrier
// CHECK-NEXT:    nvvm.cluster.arrive {aligned}
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.cluster-dim-x" = 2 : i32, "ttg.cluster-dim-y" = 1 : i32, "ttg.cluster-dim-z" = 1 : i32} {
  tt.func public @stored(%values: tensor<64xf32>) {
    %buffer = ttg.local_alloc : () -> !ttg.memdesc<64xf32, #s, #smem, mutable>
    ttg.local_store %values, %buffer : tensor<64xf32> -> !ttg.memdesc<64xf32, #s, #smem, mutable>
    ttng.cluster_arrive {relaxed = false}
    ttng.cluster_wait
    tt.return
  }
  tt.func public @not_fenced() {
    %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #s, #smem, mutable>
    ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #s, #smem, mutable>
    ttng.cluster_arrive {relaxed = false}
    ttng.cluster_wait
    tt.return
  }
}
