// RUN: tlx-opt %s --canonicalize | filecheck %s

#a = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#sharedT = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory

// Conversions there and back cancel; a conversion that stays, stays.

// CHECK-LABEL: @conversions
// CHECK-NEXT:    %x = tt.load %p
// CHECK-NEXT:    %[[Y:.*]] = ttg.convert_layout %x
// CHECK-NEXT:    tt.store %p, %x
// CHECK-NEXT:    tt.store %q, %[[Y]]
tt.func public @conversions(%p: tensor<128x!tt.ptr<f32>, #a>, %q: tensor<128x!tt.ptr<f32>, #b>) {
  %x = tt.load %p : tensor<128x!tt.ptr<f32>, #a>
  %0 = ttg.convert_layout %x : tensor<128xf32, #a> -> tensor<128xf32, #b>
  %1 = ttg.convert_layout %0 : tensor<128xf32, #b> -> tensor<128xf32, #a>
  tt.store %p, %1 : tensor<128x!tt.ptr<f32>, #a>
  tt.store %q, %0 : tensor<128x!tt.ptr<f32>, #b>
  tt.return
}

// Views of views are views.

// CHECK-LABEL: @views
// CHECK-NEXT:    %[[V:.*]] = ttg.memdesc_reinterpret %m : {{.*}} -> !ttg.memdesc<2x64x64xf16,
// CHECK-NEXT:    ttg.local_dealloc %[[V]]
// CHECK-NEXT:    ttg.local_dealloc %t
tt.func public @views(%m: !ttg.memdesc<16x1024xi8, #bar, #smem, mutable>, %t: !ttg.memdesc<64x32xf16, #shared, #smem, mutable>) {
  %0 = ttg.memdesc_reinterpret %m : !ttg.memdesc<16x1024xi8, #bar, #smem, mutable> -> !ttg.memdesc<4x64x32xf16, #shared, #smem, mutable>
  %1 = ttg.memdesc_reinterpret %0 : !ttg.memdesc<4x64x32xf16, #shared, #smem, mutable> -> !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
  ttg.local_dealloc %1 : !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
  %2 = ttg.memdesc_trans %t {order = array<i32: 1, 0>} : !ttg.memdesc<64x32xf16, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf16, #sharedT, #smem, mutable>
  %3 = ttg.memdesc_trans %2 {order = array<i32: 1, 0>} : !ttg.memdesc<32x64xf16, #sharedT, #smem, mutable> -> !ttg.memdesc<64x32xf16, #shared, #smem, mutable>
  ttg.local_dealloc %3 : !ttg.memdesc<64x32xf16, #shared, #smem, mutable>
  tt.return
}

// Barriers are not touched, however idle they look.

// CHECK-LABEL: @barriers
// CHECK:         ttng.init_barrier
// CHECK-NEXT:    ttng.arrive_barrier
// CHECK-NEXT:    ttng.arrive_barrier
// CHECK-NEXT:    ttng.fence_async_shared
// CHECK-NEXT:    ttng.fence_async_shared
// CHECK-NEXT:    ttng.inval_barrier
tt.func public @barriers() {
  %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #bar, #smem, mutable>
  ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #bar, #smem, mutable>
  ttng.arrive_barrier %bar, 1 : !ttg.memdesc<1xi64, #bar, #smem, mutable>
  ttng.arrive_barrier %bar, 1 : !ttg.memdesc<1xi64, #bar, #smem, mutable>
  ttng.fence_async_shared {bCluster = false}
  ttng.fence_async_shared {bCluster = false}
  ttng.inval_barrier %bar : !ttg.memdesc<1xi64, #bar, #smem, mutable>
  tt.return
}
