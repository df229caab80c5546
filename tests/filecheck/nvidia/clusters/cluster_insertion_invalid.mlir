// RUN: tlx-opt %s -p tlx-insert-cluster-barriers --split-input-file --verify-diagnostics

// A loop initialises it again in each turn, and may have other turns in another CTA.

#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!bar = !ttg.memdesc<1xi64, #s, #smem, mutable>
!there = !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.cluster-dim-x" = 2 : i32, "ttg.cluster-dim-y" = 1 : i32, "ttg.cluster-dim-z" = 1 : i32} {
  tt.func public @in_a_loop(%rank: i32, %zero: i32, %one: i32, %turns: i32) {
    scf.for %t = %zero to %turns step %one : i32 {
      %a = ttg.local_alloc : () -> !bar
      // expected-error @+1 {{other CTAs use this mbarrier, and nothing says that they wait for its initialisation: allocate it before the loop, or put a tlx.cluster_barrier() after it, before the first use}}
      ttng.init_barrier %a, 1 : !bar
      %r = tlx.map_to_remote %a, %rank : !bar -> !there
      tlx.arrive_remote %r, 1 : !there
      scf.yield
    }
    tt.return
  }
}

// -----

// The function would have to wait for the cluster, and the warps of tasks don't come there.

#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!bar = !ttg.memdesc<1xi64, #s, #smem, mutable>
!there = !ttg.memdesc<1xi64, #s, #tlx.shared_cluster_memory, mutable>
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.cluster-dim-x" = 2 : i32, "ttg.cluster-dim-y" = 1 : i32, "ttg.cluster-dim-z" = 1 : i32} {
  tt.func public @tasks(%rank: i32) {
    ttg.warp_specialize(%rank)
    default {
      ttg.warp_yield
    }
    partition0(%to: i32) num_warps(4) {
      tt.call @owner(%to) : (i32) -> ()
      ttg.warp_return
    } : (i32) -> ()
    tt.return
  }
  tt.func private @owner(%rank: i32) {
    // expected-error @+1 {{other CTAs use this buffer of a function that is called, and in a kernel with tasks not all warps come here to wait for the cluster: allocate it in the kernel before tlx.async_tasks, and pass it}}
    %a = ttg.local_alloc : () -> !bar
    ttng.init_barrier %a, 1 : !bar
    %r = tlx.map_to_remote %a, %rank : !bar -> !there
    tlx.arrive_remote %r, 1 : !there
    tt.return
  }
}
