// RUN: tlx-opt %s -p tlx-lower-cluster-barriers --split-input-file --verify-diagnostics

// Triton launches four warps for a partition of one; the other three would never arrive.

builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @idle() {
    ttg.warp_specialize()
    default {
      // expected-error @+1 {{a cluster barrier waits for all warps of the thread block, and 3 of them idle here: Triton fills the 1 warps of the partitions up to 4}}
      ttng.cluster_arrive {relaxed = false}
      ttng.cluster_wait
      ttg.warp_yield
    }
    partition0() num_warps(1) {
      ttng.cluster_arrive {relaxed = false}
      ttng.cluster_wait
      ttg.warp_return
    } : () -> ()
    tt.return
  }
}
