// RUN: tlx-opt %s -p tlx-lower-scale-arrays --split-input-file --verify-diagnostics | filecheck %s

// An array of scales takes 4 columns for each 128 x 4; one buffer of scales stays what it is.

// CHECK-DAG:   #[[COLUMNS:.*]] = #ttng.tensor_memory_encoding<blockM = 128, blockN = 8, colStride = 1>
// CHECK-LABEL: @array
// CHECK-NEXT:    %one = ttng.tmem_alloc : () -> !ttg.memdesc<128x4xi8, #{{.*}}, #ttng.tensor_memory, mutable>
// CHECK-NEXT:    %s = ttng.tmem_alloc : () -> !ttg.memdesc<2x128x8xi32, #[[COLUMNS]], #ttng.tensor_memory, mutable>
// CHECK:         %r = scf.for {{.*}} iter_args(%t = %s) -> (!ttg.memdesc<2x128x8xi32, #[[COLUMNS]], #ttng.tensor_memory, mutable>)
// CHECK-NEXT:      [[C:%.*]] = ttg.memdesc_index %t[%i] : !ttg.memdesc<2x128x8xi32, {{.*}}> -> !ttg.memdesc<128x8xi32, #[[COLUMNS]], #ttng.tensor_memory, mutable>
// CHECK-NEXT:      %b = ttg.memdesc_reinterpret [[C]] : !ttg.memdesc<128x8xi32, {{.*}}> -> !ttg.memdesc<128x8xi8, #{{.*}}, #ttng.tensor_memory, mutable>
// CHECK-NEXT:      ttng.tmem_copy %src, %b :
#scales = #ttng.tensor_memory_scales_encoding<>
#rows = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
tt.func @array(%src: !ttg.memdesc<64x16xi8, #rows, #smem, mutable>, %c0: i32, %c1: i32, %n: i32) {
  %one = ttng.tmem_alloc : () -> !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory, mutable>
  %s = ttng.tmem_alloc : () -> !ttg.memdesc<2x128x8xi8, #scales, #ttng.tensor_memory, mutable>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %s) -> (!ttg.memdesc<2x128x8xi8, #scales, #ttng.tensor_memory, mutable>) : i32 {
    %b = ttg.memdesc_index %t[%i] : !ttg.memdesc<2x128x8xi8, #scales, #ttng.tensor_memory, mutable> -> !ttg.memdesc<128x8xi8, #scales, #ttng.tensor_memory, mutable>
    ttng.tmem_copy %src, %b : !ttg.memdesc<64x16xi8, #rows, #smem, mutable>, !ttg.memdesc<128x8xi8, #scales, #ttng.tensor_memory, mutable>
    scf.yield %t : !ttg.memdesc<2x128x8xi8, #scales, #ttng.tensor_memory, mutable>
  }
  tt.return
}

// -----

#scales = #ttng.tensor_memory_scales_encoding<>
tt.func @part() {
  %s = ttng.tmem_alloc : () -> !ttg.memdesc<2x128x8xi8, #scales, #ttng.tensor_memory, mutable>
  // expected-error @below {{'ttng.tmem_subslice' can't see a part of an array of scales: take one buffer first}}
  %p = ttng.tmem_subslice %s {offset = 4 : i32, dim = 2 : i32} : !ttg.memdesc<2x128x8xi8, #scales, #ttng.tensor_memory, mutable> -> !ttg.memdesc<2x128x4xi8, #scales, #ttng.tensor_memory, mutable, 2x128x8>
  tt.return
}
