// RUN: tlx-opt %s -p tlx-lower-pair-accumulators --split-input-file --verify-diagnostics | filecheck %s

// The columns are halved among the lanes: twice the rows, half of the columns; threads rearrange what they load.

#t = #ttng.tensor_memory_encoding<blockM = 64, blockN = 128, colStride = 1, twoCTAs = true>
#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
// CHECK: #[[T:.*]] = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, twoCTAs = true>
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  // CHECK-LABEL: @product
  tt.func public @product(%a: !ttg.memdesc<64x64xf16, #s, #smem>, %b: !ttg.memdesc<64x64xf16, #s, #smem>, %p: i1) -> tensor<64x128xf32> {
    // CHECK: ttng.tmem_alloc {tlx.pair_halves} : () -> !ttg.memdesc<128x64xf32, #[[T]], #ttng.tensor_memory, mutable>
    %d = ttng.tmem_alloc {tlx.pair_halves} : () -> !ttg.memdesc<64x128xf32, #t, #ttng.tensor_memory, mutable>
    // CHECK: ttng.tc_gen5_mma {{.*}} !ttg.memdesc<128x64xf32, #[[T]], #ttng.tensor_memory, mutable>
    ttng.tc_gen5_mma %a, %b, %d, %p, %p {is_async, two_ctas} : !ttg.memdesc<64x64xf16, #s, #smem>, !ttg.memdesc<64x64xf16, #s, #smem>, !ttg.memdesc<64x128xf32, #t, #ttng.tensor_memory, mutable>
    // CHECK: ttng.tmem_load {{.*}} -> tensor<128x64xf32
    // CHECK: tt.reshape {{.*}} -> tensor<2x64x64xf32>
    // CHECK-NEXT: tt.trans {{.*}} {order = array<i32: 1, 0, 2>} {{.*}} -> tensor<64x2x64xf32>
    // CHECK-NEXT: tt.reshape {{.*}} -> tensor<64x128xf32>
    %v = ttng.tmem_load %d : !ttg.memdesc<64x128xf32, #t, #ttng.tensor_memory, mutable> -> tensor<64x128xf32>
    // CHECK: tt.reshape {{.*}} -> tensor<64x2x64xf32>
    // CHECK-NEXT: tt.trans {{.*}} {order = array<i32: 1, 0, 2>} {{.*}} -> tensor<2x64x64xf32>
    // CHECK-NEXT: tt.reshape {{.*}} -> tensor<128x64xf32>
    // CHECK: ttng.tmem_store {{.*}} tensor<128x64xf32
    ttng.tmem_store %v, %d, %p : tensor<64x128xf32> -> !ttg.memdesc<64x128xf32, #t, #ttng.tensor_memory, mutable>
    tt.return %v : tensor<64x128xf32>
  }
}

// -----

#t = #ttng.tensor_memory_encoding<blockM = 64, blockN = 128, colStride = 1, twoCTAs = true>
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @part(%d: !ttg.memdesc<64x128xf32, #t, #ttng.tensor_memory, mutable>) {
    // expected-error @+1 {{an accumulator of 64 rows in each CTA of a pair is loaded and stored as a whole}}
    %0 = ttng.tmem_subslice %d {offset = 0 : i32} : !ttg.memdesc<64x128xf32, #t, #ttng.tensor_memory, mutable> -> !ttg.memdesc<64x32xf32, #t, #ttng.tensor_memory, mutable, 64x128>
    tt.return
  }
}
