// RUN: tlx-opt %s -p tlx-lower-remote-memory | filecheck %s

// A store to a CTA's memory that may be the own one: threads meet before others load what it has written, or it
// overwrites what others load.

// CHECK-LABEL: @own
// CHECK:         st.shared::cluster
// CHECK:         ttg.barrier local
// CHECK-NEXT:    ttg.local_load
// CHECK-NEXT:    ttg.barrier local
// CHECK:         st.shared::cluster
// CHECK:         tt.return
// An arrival after the store brings a barrier, and needs none besides.
// CHECK-LABEL: @signalled
// CHECK:         st.shared::cluster
// CHECK:         ttg.barrier local
// CHECK:         mbarrier.arrive
// CHECK-NOT:     ttg.barrier
// CHECK:         ttg.local_load
// Two stores of one tensor's layout to the slots of several CTAs have the same thread for each element.
// CHECK-LABEL: @to_all
// CHECK-NOT:     ttg.barrier
// CHECK:         tt.return
#l = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!box = !ttg.memdesc<128xi32, #s, #smem, mutable>
!box_there = !ttg.memdesc<128xi32, #s, #tlx.shared_cluster_memory, mutable>
!bar = !ttg.memdesc<1xi64, #s, #smem, mutable>
!there = !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90", "ttg.cluster-dim-x" = 2 : i32, "ttg.cluster-dim-y" = 1 : i32, "ttg.cluster-dim-z" = 1 : i32} {
  tt.func public @own(%v: tensor<128xi32, #l>, %rank: i32) {
    %box = ttg.local_alloc : () -> !box
    %r = tlx.map_to_remote %box, %rank : !box -> !box_there
    tlx.remote_store %v, %r : tensor<128xi32, #l> -> !box_there
    %w = ttg.local_load %box : !box -> tensor<128xi32, #l>
    %q = tlx.map_to_remote %box, %rank : !box -> !box_there
    tlx.remote_store %w, %q : tensor<128xi32, #l> -> !box_there
    tt.return
  }
  tt.func public @signalled(%v: tensor<128xi32, #l>, %rank: i32, %zero: i32) {
    %box = ttg.local_alloc : () -> !box
    %bar = ttg.local_alloc : () -> !bar
    %r = tlx.map_to_remote %box, %rank : !box -> !box_there
    tlx.remote_store %v, %r : tensor<128xi32, #l> -> !box_there
    %b = tlx.map_to_remote %bar, %rank : !bar -> !there
    tlx.arrive_remote %b, 1 : !there
    ttng.wait_barrier %bar, %zero : !bar
    %w = ttg.local_load %box : !box -> tensor<128xi32, #l>
    tt.return
  }
  tt.func public @to_all(%v: tensor<128xi32, #l>, %one: i32, %two: i32) {
    %box = ttg.local_alloc : () -> !box
    %r = tlx.map_to_remote %box, %one : !box -> !box_there
    tlx.remote_store %v, %r : tensor<128xi32, #l> -> !box_there
    %q = tlx.map_to_remote %box, %two : !box -> !box_there
    tlx.remote_store %v, %q : tensor<128xi32, #l> -> !box_there
    tt.return
  }
}
