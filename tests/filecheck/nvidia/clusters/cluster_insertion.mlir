// RUN: tlx-opt %s -p tlx-insert-cluster-barriers --split-input-file | filecheck %s

// The user has not written that the cluster waits: it does so after the initialisation and before the exit.

// CHECK-LABEL: @missing
// CHECK:         ttng.init_barrier
// CHECK-NEXT:    tlx.fence_mbarrier_init_cluster
// CHECK-NEXT:    ttng.cluster_arrive {relaxed = false}
// CHECK-NEXT:    ttng.cluster_wait
// CHECK:         tlx.arrive_remote
// CHECK-NEXT:    ttng.cluster_arrive {relaxed = false}
// CHECK-NEXT:    ttng.cluster_wait
// CHECK-NEXT:    tt.return
// An mbarrier of the own CTA that is allocated after the first use changes nothing.
// CHECK-LABEL: @own_later
// CHECK:         ttng.init_barrier %[[A:[a-z0-9_]+]], 1
// CHECK-NEXT:    tlx.fence_mbarrier_init_cluster
// CHECK-NEXT:    ttng.cluster_arrive
// CHECK-NEXT:    ttng.cluster_wait
// CHECK-NEXT:    tlx.map_to_remote %[[A]]
// CHECK:         ttg.local_alloc
// CHECK-NEXT:    ttng.init_barrier
// CHECK-NEXT:    ttng.cluster_arrive
// CHECK-NEXT:    ttng.cluster_wait
// CHECK-NEXT:    tt.return
// One that other CTAs use is initialised before the cluster's first barrier, whose block it may not even be in.
// CHECK-LABEL: @reached_later
// CHECK-NEXT:    %[[B:[a-z0-9_]+]] = ttg.local_alloc
// CHECK-NEXT:    ttng.init_barrier %[[B]], 2
// CHECK:         ttng.cluster_arrive
// CHECK:         tlx.map_to_remote
// CHECK-NOT:     ttng.init_barrier
// CHECK:         tlx.map_to_remote %[[B]]
// CHECK-LABEL: @after_a_return
// CHECK-NEXT:    %[[C:[a-z0-9_]+]] = ttg.local_alloc
// CHECK-NEXT:    ttng.init_barrier %[[C]], 1
// CHECK-NEXT:    tlx.fence_mbarrier_init_cluster
// CHECK-NEXT:    ttng.cluster_arrive
// CHECK-NEXT:    ttng.cluster_wait
// CHECK-NEXT:    cf.cond_br
// CHECK-COUNT-2: ttng.cluster_arrive
// With a barrier of the user's after it, it stays.
// CHECK-LABEL: @said
// CHECK:         tlx.map_to_remote
// CHECK:         ttng.init_barrier
// CHECK-NEXT:    ttng.cluster_arrive
// CHECK-NEXT:    ttng.cluster_wait
// CHECK-NEXT:    tlx.map_to_remote
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!bar = !ttg.memdesc<1xi64, #s, #smem, mutable>
!there = !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.cluster-dim-x" = 2 : i32, "ttg.cluster-dim-y" = 1 : i32, "ttg.cluster-dim-z" = 1 : i32} {
  tt.func public @missing(%rank: i32) {
    %a = ttg.local_alloc : () -> !bar
    ttng.init_barrier %a, 1 : !bar
    %r = tlx.map_to_remote %a, %rank : !bar -> !there
    tlx.arrive_remote %r, 1 : !there
    tt.return
  }
  tt.func public @own_later(%rank: i32) {
    %a = ttg.local_alloc : () -> !bar
    ttng.init_barrier %a, 1 : !bar
    %r = tlx.map_to_remote %a, %rank : !bar -> !there
    tlx.arrive_remote %r, 1 : !there
    %b = ttg.local_alloc : () -> !bar
    ttng.init_barrier %b, 1 : !bar
    tt.return
  }
  tt.func public @reached_later(%rank: i32) {
    %a = ttg.local_alloc : () -> !bar
    ttng.init_barrier %a, 1 : !bar
    %r = tlx.map_to_remote %a, %rank : !bar -> !there
    tlx.arrive_remote %r, 1 : !there
    %b = ttg.local_alloc : () -> !bar
    ttng.init_barrier %b, 2 : !bar
    %q = tlx.map_to_remote %b, %rank : !bar -> !there
    tlx.arrive_remote %q, 1 : !there
    tt.return
  }
  tt.func public @after_a_return(%rank: i32, %leaves: i1) {
    cf.cond_br %leaves, ^end, ^on
  ^end:
    tt.return
  ^on:
    %a = ttg.local_alloc : () -> !bar
    ttng.init_barrier %a, 1 : !bar
    %r = tlx.map_to_remote %a, %rank : !bar -> !there
    tlx.arrive_remote %r, 1 : !there
    tt.return
  }
  tt.func public @said(%rank: i32) {
    %a = ttg.local_alloc : () -> !bar
    ttng.init_barrier %a, 1 : !bar
    %r = tlx.map_to_remote %a, %rank : !bar -> !there
    tlx.arrive_remote %r, 1 : !there
    %b = ttg.local_alloc : () -> !bar
    ttng.init_barrier %b, 2 : !bar
    ttng.cluster_arrive {relaxed = false}
    ttng.cluster_wait
    %q = tlx.map_to_remote %b, %rank : !bar -> !there
    tlx.arrive_remote %q, 1 : !there
    tt.return
  }
}

// -----

// In a task it becomes a capture; a buffer that others write is allocated before the barrier, too, and the source of a
// copy, whose end is signalled to another CTA.

// CHECK-LABEL: @in_a_task
// CHECK-NEXT:    %[[TO:[a-z0-9_]+]] = ttg.local_alloc : () -> !ttg.memdesc<64xi32
// CHECK-NEXT:    %[[FROM:[a-z0-9_]+]] = ttg.local_alloc : () -> !ttg.memdesc<64xi32
// CHECK-NEXT:    %[[BAR:[a-z0-9_]+]] = ttg.local_alloc : () -> !ttg.memdesc<1xi64
// CHECK-NEXT:    ttng.init_barrier %[[BAR]], 1
// CHECK:         ttng.cluster_arrive
// CHECK:         ttg.warp_specialize(%rank, %[[BAR]], %[[FROM]], %[[TO]])
// CHECK:         partition0(%{{.*}}: i32, %[[B:[a-z0-9_]+]]: !ttg.memdesc<1xi64{{.*}}, %[[F:[a-z0-9_]+]]: !ttg.memdesc<64xi32{{.*}}, %[[T:[a-z0-9_]+]]: !ttg.memdesc<64xi32
// CHECK-NOT:     ttg.local_alloc
// CHECK:         tlx.map_to_remote %[[T]]
// CHECK:         tlx.map_to_remote %[[B]]
// CHECK:         tlx.async_remote_copy %[[F]]
// The kernel waits for what a function needs that it calls; that has no barrier of its own.
// CHECK-LABEL: tt.func public @calls
// CHECK:         ttng.cluster_wait
// CHECK-NEXT:    tt.call @called
// CHECK-NEXT:    ttng.cluster_arrive
// CHECK-LABEL: tt.func private @called
// CHECK-NOT:     ttng.cluster
// CHECK:         tt.return
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!bar = !ttg.memdesc<1xi64, #s, #smem, mutable>
!there = !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
!box = !ttg.memdesc<64xi32, #s, #smem, mutable>
!box_there = !ttg.memdesc<64xi32, #s, #tlx.shared_cluster_memory, mutable>
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.cluster-dim-x" = 2 : i32, "ttg.cluster-dim-y" = 1 : i32, "ttg.cluster-dim-z" = 1 : i32} {
  tt.func public @in_a_task(%rank: i32) {
    ttg.warp_specialize(%rank)
    default {
      ttg.warp_yield
    }
    partition0(%to: i32) num_warps(4) {
      %bar = ttg.local_alloc : () -> !bar
      ttng.init_barrier %bar, 1 : !bar
      %from = ttg.local_alloc : () -> !box
      %box = ttg.local_alloc : () -> !box
      %r = tlx.map_to_remote %box, %to : !box -> !box_there
      %q = tlx.map_to_remote %bar, %to : !bar -> !there
      tlx.async_remote_copy %from, %r, %q : !box -> !box_there, !there
      ttg.warp_return
    } : (i32) -> ()
    tt.return
  }
  tt.func public @calls(%rank: i32) {
    %a = ttg.local_alloc : () -> !bar
    ttng.init_barrier %a, 1 : !bar
    tt.call @called(%a, %rank) : (!bar, i32) -> ()
    tt.return
  }
  tt.func private @called(%a: !bar, %rank: i32) {
    %r = tlx.map_to_remote %a, %rank : !bar -> !there
    tlx.arrive_remote %r, 1 : !there
    tt.return
  }
}
