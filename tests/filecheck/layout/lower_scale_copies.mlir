// RUN: tlx-opt %s -p tlx-lower-scale-copies --split-input-file --verify-diagnostics | filecheck %s

// Lines of 16 scales are seen as the matrix that they are; a copy of what is a matrix already, or of no scales, stays.

// CHECK-DAG:   #[[BLOCKS:.*]] = #ttg.shared_linear<{offset = {{\[\[}}0, 1], [0, 2], [32, 0], [64, 0], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 4{{\]\]}}}, alignment = 128>
// CHECK-LABEL: @lines
// CHECK-NEXT:    [[S:%.*]] = ttg.memdesc_reinterpret %s : !ttg.memdesc<64x16xi8, #{{.*}}, #smem, mutable> -> !ttg.memdesc<128x8xi8, #[[BLOCKS]], #smem, mutable>
// CHECK-NEXT:    ttng.tmem_copy [[S]], %t :
// CHECK-NEXT:    ttng.tmem_copy %m, %t :
// CHECK-NEXT:    ttng.tmem_copy %x, %acc :
#lines = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 8}>
#blocks = #ttg.shared_linear<{offset = [[0, 1], [0, 2], [32, 0], [64, 0], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 4]]}, alignment = 128>
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#scales = #ttng.tensor_memory_scales_encoding<>
#acc = #ttng.tensor_memory_encoding<blockM = 128, blockN = 32, colStride = 1>
#smem = #ttg.shared_memory
tt.func @lines(%s: !ttg.memdesc<64x16xi8, #lines, #smem, mutable>, %m: !ttg.memdesc<128x8xi8, #blocks, #smem, mutable>, %t: !ttg.memdesc<128x8xi8, #scales, #ttng.tensor_memory, mutable>, %x: !ttg.memdesc<128x32xf32, #tile, #smem, mutable>, %acc: !ttg.memdesc<128x32xf32, #acc, #ttng.tensor_memory, mutable>) {
  ttng.tmem_copy %s, %t : !ttg.memdesc<64x16xi8, #lines, #smem, mutable>, !ttg.memdesc<128x8xi8, #scales, #ttng.tensor_memory, mutable>
  ttng.tmem_copy %m, %t : !ttg.memdesc<128x8xi8, #blocks, #smem, mutable>, !ttg.memdesc<128x8xi8, #scales, #ttng.tensor_memory, mutable>
  ttng.tmem_copy %x, %acc : !ttg.memdesc<128x32xf32, #tile, #smem, mutable>, !ttg.memdesc<128x32xf32, #acc, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

#swizzled = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 4, order = [1, 0]}>
#scales = #ttng.tensor_memory_scales_encoding<>
#smem = #ttg.shared_memory
tt.func @swizzled(%s: !ttg.memdesc<32x16xi8, #swizzled, #smem, mutable>, %t: !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory, mutable>) {
  // expected-error @below {{scales are copied from lines that follow each other in shared memory}}
  ttng.tmem_copy %s, %t : !ttg.memdesc<32x16xi8, #swizzled, #smem, mutable>, !ttg.memdesc<128x4xi8, #scales, #ttng.tensor_memory, mutable>
  tt.return
}
