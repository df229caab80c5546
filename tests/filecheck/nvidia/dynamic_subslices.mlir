// RUN: tlx-opt %s -p tlx-lower-dynamic-subslices --split-input-file --verify-diagnostics | filecheck %s

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#turned = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory

// Rows of 128 bytes: 64 of them are a buffer of their own, and so is what is transposed of them.

// CHECK-LABEL: @rows
// CHECK-NEXT:    %c0 = arith.constant 0 : i32
// CHECK-NEXT:    %[[TILES:.*]] = ttg.memdesc_reinterpret %b : !ttg.memdesc<128x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
// CHECK-NEXT:    %[[SIZE:.*]] = arith.constant 64 : i32
// CHECK-NEXT:    %[[NUMBER:.*]] = arith.divsi %i, %[[SIZE]] : i32
// CHECK-NEXT:    %[[PART:.*]] = ttg.memdesc_index %[[TILES]][%[[NUMBER]]] : !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
// CHECK-NEXT:    ttg.memdesc_trans %[[PART]] {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
builtin.module {
  tt.func public @rows(%b: !ttg.memdesc<128x64xf16, #shared, #smem, mutable>, %i: i32) {
    %c0 = arith.constant 0 : i32
    %p = tlx.memdesc_dynamic_subslice %b[%i, %c0] : !ttg.memdesc<128x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable, 128x64>
    %t = ttg.memdesc_trans %p {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable, 128x64> -> !ttg.memdesc<64x64xf16, #turned, #smem, mutable, 64x128>
    %v = ttg.local_load %t : !ttg.memdesc<64x64xf16, #turned, #smem, mutable, 64x128> -> tensor<64x64xf16>
    tt.return
  }
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory

// Columns as wide as the swizzle are boxes that follow each other.

// CHECK-LABEL: @columns
// CHECK:         ttg.memdesc_reinterpret %b : {{.*}} -> !ttg.memdesc<4x128x64xf16, #shared, #smem, mutable>
// CHECK:         arith.divsi %i
builtin.module {
  tt.func public @columns(%b: !ttg.memdesc<128x256xf16, #shared, #smem, mutable>, %i: i32) {
    %c0 = arith.constant 0 : i32
    %p = tlx.memdesc_dynamic_subslice %b[%c0, %i] : !ttg.memdesc<128x256xf16, #shared, #smem, mutable> -> !ttg.memdesc<128x64xf16, #shared, #smem, mutable, 128x256>
    %v = ttg.local_load %p : !ttg.memdesc<128x64xf16, #shared, #smem, mutable, 128x256> -> tensor<128x64xf16>
    tt.return
  }
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory

// It has no use any more: its users have become addresses.

// CHECK-LABEL: @unused
// CHECK-NEXT:    tt.return
builtin.module {
  tt.func public @unused(%b: !ttg.memdesc<128x64xf16, #shared, #smem, mutable>, %i: i32) {
    %p = tlx.memdesc_dynamic_subslice %b[%i, %i] : !ttg.memdesc<128x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable, 128x64>
    tt.return
  }
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory

// Of two boxes beside each other, each has a part of the rows.

builtin.module {
  tt.func public @interleaved(%b: !ttg.memdesc<128x128xf16, #shared, #smem, mutable>, %i: i32) {
    %c0 = arith.constant 0 : i32
    // expected-error @+1 {{64x128 elements of 128x128 can't be taken at an offset that is known at run time only: the elements of a tile do not follow each other in shared memory}}
    %p = tlx.memdesc_dynamic_subslice %b[%i, %c0] : !ttg.memdesc<128x128xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x128xf16, #shared, #smem, mutable, 128x128>
    %v = ttg.local_load %p : !ttg.memdesc<64x128xf16, #shared, #smem, mutable, 128x128> -> tensor<64x128xf16>
    tt.return
  }
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory

// The swizzle has a period of eight rows: four of them are swizzled differently in each half of it.

builtin.module {
  tt.func public @half_a_swizzle(%b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %i: i32) {
    %c0 = arith.constant 0 : i32
    // expected-error @+1 {{4x64 elements of 64x64 can't be taken at an offset that is known at run time only}}
    %p = tlx.memdesc_dynamic_subslice %b[%i, %c0] : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<4x64xf16, #shared, #smem, mutable, 64x64>
    %v = ttg.local_load %p : !ttg.memdesc<4x64xf16, #shared, #smem, mutable, 64x64> -> tensor<4x64xf16>
    tt.return
  }
}
