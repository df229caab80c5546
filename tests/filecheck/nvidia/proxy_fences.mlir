// RUN: tlx-opt %s -p tlx-insert-proxy-fences --split-input-file | filecheck %s

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

// Another task copies what was written: the fence is before the arrival that releases the write.

// CHECK-LABEL: @hand_over
// CHECK:         ttg.local_store
// CHECK-NEXT:    ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT:    ttng.arrive_barrier
// CHECK:       partition0
// CHECK-NOT:     ttng.fence_async_shared
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @hand_over(%v: tensor<64x64xf16>, %d: !tt.tensordesc<64x64xf16>, %x: i32) {
    %tile = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %full = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #bar, #smem, mutable>
    ttng.init_barrier %full, 1 : !ttg.memdesc<1xi64, #bar, #smem, mutable>
    ttg.warp_specialize(%tile, %full, %d, %x)
    default {
      ttg.local_store %v, %tile : tensor<64x64xf16> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttng.arrive_barrier %full, 1 : !ttg.memdesc<1xi64, #bar, #smem, mutable>
      ttg.warp_yield
    }
    partition0(%t: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %e: !tt.tensordesc<64x64xf16>, %i: i32) num_warps(1) {
      %c0 = arith.constant 0 : i32
      ttng.wait_barrier %b, %c0 : !ttg.memdesc<1xi64, #bar, #smem, mutable>
      ttng.async_tma_copy_local_to_global %e[%i, %i] %t : !tt.tensordesc<64x64xf16>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttg.warp_return
    } : (!ttg.memdesc<64x64xf16, #shared, #smem, mutable>, !ttg.memdesc<1xi64, #bar, #smem, mutable>, !tt.tensordesc<64x64xf16>, i32) -> ()
    tt.return
  }
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

// Threads read what was written, or the reader has a fence of its own: none is missing.

// CHECK-LABEL: @nothing_is_missing
// CHECK-COUNT-1: ttng.fence_async_shared
// CHECK-NOT:     ttng.fence_async_shared
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @nothing_is_missing(%v: tensor<64x64xf16>, %d: !tt.tensordesc<64x64xf16>, %x: i32) {
    %tile = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %other = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %full = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #bar, #smem, mutable>
    ttng.init_barrier %full, 1 : !ttg.memdesc<1xi64, #bar, #smem, mutable>
    ttg.warp_specialize(%tile, %other, %full, %d, %x)
    default {
      ttg.local_store %v, %tile : tensor<64x64xf16> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttg.local_store %v, %other : tensor<64x64xf16> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttng.arrive_barrier %full, 1 : !ttg.memdesc<1xi64, #bar, #smem, mutable>
      ttg.warp_yield
    }
    partition0(%t: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %o: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %e: !tt.tensordesc<64x64xf16>, %i: i32) num_warps(1) {
      %c0 = arith.constant 0 : i32
      ttng.wait_barrier %b, %c0 : !ttg.memdesc<1xi64, #bar, #smem, mutable>
      %w = ttg.local_load %o : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16>
      ttng.fence_async_shared {bCluster = false}
      ttng.async_tma_copy_local_to_global %e[%i, %i] %t : !tt.tensordesc<64x64xf16>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttg.warp_return
    } : (!ttg.memdesc<64x64xf16, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, !ttg.memdesc<1xi64, #bar, #smem, mutable>, !tt.tensordesc<64x64xf16>, i32) -> ()
    tt.return
  }
}
