// RUN: not tlx-opt %s --split-input-file -p tlx-rewrite-local-alias{whole_views=true} 2>&1 | filecheck %s

// Triton 3.8 takes only views that are as large as their allocation.

#bytes = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!bytes = !ttg.memdesc<24x1024xi8, #bytes, #smem, mutable>
!a = !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
!a_i = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>

// Three buffers of 8192 bytes fill 24576: the view grows, the allocation does not; a single buffer is the first one.
// CHECK-LABEL: @fills
tt.func @fills(%i: i32) {
  // CHECK: %s = ttg.local_alloc : () -> !ttg.memdesc<24x1024xi8,
  %s = ttg.local_alloc : () -> !bytes
  // CHECK-NEXT: %a = ttg.memdesc_reinterpret %s : {{.*}} -> !ttg.memdesc<3x64x64xf16,
  %a = tlx.local_alias %s : !bytes -> !a
  // CHECK-NEXT: %[[ALL:.*]] = ttg.memdesc_reinterpret %s : {{.*}} -> !ttg.memdesc<3x64x64xf16,
  // CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : i32
  // CHECK-NEXT: %b = ttg.memdesc_index %[[ALL]][%[[ZERO]]]
  %b = tlx.local_alias %s : !bytes -> !a_i
  // CHECK: ttg.warp_specialize(%a)
  ttg.warp_specialize(%a)
  default {
    ttg.warp_yield
  }
  // CHECK: partition0(%inner: !ttg.memdesc<3x64x64xf16,
  partition0(%inner: !a) num_warps(4) {
    ttg.warp_return
  } : (!a) -> ()
  tt.return
}

// -----

#bytes = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!bytes = !ttg.memdesc<24x1024xi8, #bytes, #smem, mutable>

// CHECK: kernel.py:4:3: remark: this allocation grows by 8192 bytes, from 24576 to 32768: Triton 3.8 takes only views that are as large as their allocation
// CHECK-LABEL: @grows
tt.func @grows() {
  // CHECK: ttg.local_alloc {alignment = 1024 : i32} : () -> !ttg.memdesc<32x1024xi8,
  %s = ttg.local_alloc {alignment = 1024 : i32} : () -> !bytes loc("kernel.py":4:3)
  // CHECK-NEXT: ttg.memdesc_reinterpret {{.*}} -> !ttg.memdesc<2x128x64xf16,
  %a = tlx.local_alias %s : !bytes -> !ttg.memdesc<1x128x64xf16, #shared, #smem, mutable>
  // CHECK-NEXT: ttg.memdesc_reinterpret {{.*}} -> !ttg.memdesc<4x64x64xf16,
  %b = tlx.local_alias %s : !bytes -> !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!a = !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>
!a_i = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
!b = !ttg.memdesc<1x128x64xf16, #shared, #smem, mutable>

// An array whose memory another one reuses (%b takes 16384 bytes of its 24576) becomes a view itself where it must
// grow; loops carry it as it is then.
// CHECK: kernel.py:4:3: remark: this allocation grows by 8192 bytes, from 24576 to 32768
// CHECK-LABEL: @reused
tt.func @reused(%i: i32) {
  // CHECK: %[[MEMORY:.*]] = ttg.local_alloc {alignment = 1024 : i32} : () -> !ttg.memdesc<32x1024xi8,
  // CHECK-NEXT: %[[A:.*]] = ttg.memdesc_reinterpret %[[MEMORY]] : {{.*}} -> !ttg.memdesc<4x64x64xf16,
  %a = ttg.local_alloc : () -> !a loc("kernel.py":4:3)
  // CHECK-NEXT: %b = ttg.memdesc_reinterpret %[[MEMORY]] : {{.*}} -> !ttg.memdesc<2x128x64xf16,
  %b = tlx.local_alias %a : !a -> !b
  // CHECK-NEXT: scf.for {{.*}} iter_args(%x = %[[A]]) -> (!ttg.memdesc<4x64x64xf16,
  %r = scf.for %k = %i to %i step %i iter_args(%x = %a) -> (!a) : i32 {
    // CHECK-NEXT: ttg.memdesc_index %x[%k]
    %x_k = ttg.memdesc_index %x[%k] : !a -> !a_i
    scf.yield %x : !a
  }
  tt.return
}

// -----

#bytes = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!bytes = !ttg.memdesc<24x1024xi8, #bytes, #smem, mutable>
!a = !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>

// CHECK: kernel.py:6:3: error: under Triton 3.8 the array a grows to the size of its allocation, and 'ttg.local_dealloc' needs the whole array in one piece
tt.func @whole() {
  %s = ttg.local_alloc : () -> !bytes
  %a = tlx.local_alias %s : !bytes -> !a
  ttg.local_dealloc %a : !a loc("kernel.py":6:3)
  tt.return
}
