// RUN: tlx-opt %s | filecheck %s
// RUN: TLX_ROUNDTRIP

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CGALayout = [[1]]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[1]]}>
#smem = #ttg.shared_memory

// Tensors and barriers of a cluster span its CTAs.
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @cluster(
tt.func @cluster(%v: tensor<256xi32, #blocked>, %buf: !ttg.memdesc<256xi32, #shared, #smem, mutable>, %bar: !ttg.memdesc<2xi64, #shared, #smem, mutable>) {
  // CHECK: ttng.fence_mbarrier_init_release_cluster
  ttng.fence_mbarrier_init_release_cluster
  // CHECK: ttng.cluster_barrier
  ttng.cluster_barrier
  // CHECK: ttng.cluster_barrier {relaxed = true}
  ttng.cluster_barrier {relaxed = true}
  // CHECK: ttng.arrive_barrier %bar, 1 {multicastCTA = 1 : i32} : !ttg.memdesc<2xi64, #{{.*}}, #smem, mutable>
  ttng.arrive_barrier %bar, 1 {multicastCTA = 1 : i32} : !ttg.memdesc<2xi64, #shared, #smem, mutable>
  // CHECK: ttng.async_shared_store %v, %buf, %bar : tensor<256xi32, #{{.*}}> -> !ttg.memdesc<256xi32, #{{.*}}, #smem, mutable>, !ttg.memdesc<2xi64, #{{.*}}, #smem, mutable>
  ttng.async_shared_store %v, %buf, %bar : tensor<256xi32, #blocked> -> !ttg.memdesc<256xi32, #shared, #smem, mutable>, !ttg.memdesc<2xi64, #shared, #smem, mutable>
  tt.return
}
}
