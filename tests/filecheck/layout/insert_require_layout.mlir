// RUN: tlx-opt %s -p tlx-insert-require-layout --split-input-file | filecheck %s

// An operand of 8-bit floats must lie along K: A does, B does not. B of 16 bits may lie either way.

// CHECK-DAG:   #[[TILE:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
// CHECK-DAG:   #[[TURNED:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = true, elementBitWidth = 8}>
// CHECK-LABEL: @along_k
// CHECK-NEXT:    [[B:%.*]] = tlx.require_layout %b : !ttg.memdesc<64x64xf8E4M3FN, #[[TILE]], #smem, mutable> -> !ttg.memdesc<64x64xf8E4M3FN, #[[TURNED]], #smem, mutable>
// CHECK-NEXT:    ttng.warp_group_dot %a, [[B]], %c
// CHECK-NEXT:    ttng.warp_group_dot %h, %h, %c
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
#tile16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @along_k(%a: !ttg.memdesc<64x64xf8E4M3FN, #tile, #smem, mutable>, %b: !ttg.memdesc<64x64xf8E4M3FN, #tile, #smem, mutable>, %h: !ttg.memdesc<64x64xf16, #tile16, #smem, mutable>, %c: tensor<64x64xf32>) {
  %0 = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x64xf8E4M3FN, #tile, #smem, mutable> * !ttg.memdesc<64x64xf8E4M3FN, #tile, #smem, mutable> -> tensor<64x64xf32>
  %1 = ttng.warp_group_dot %h, %h, %c : !ttg.memdesc<64x64xf16, #tile16, #smem, mutable> * !ttg.memdesc<64x64xf16, #tile16, #smem, mutable> -> tensor<64x64xf32>
  tt.return
}

// -----

// TMA writes row-major tiles; where the descriptor has a layout, that one. Rows of one dimension are tiles of one row.

// CHECK-DAG:   #[[WIDE:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-DAG:   #[[PLAIN:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 16}>
// CHECK-DAG:   #[[LINE:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 16, rank = 1}>
// CHECK-LABEL: @copies
// CHECK:         [[A:%.*]] = tlx.require_layout %a : {{.*}} -> !ttg.memdesc<64x64xf16, #[[WIDE]], #smem, mutable>
// CHECK-NEXT:    ttng.async_tma_copy_global_to_local %d[%i, %i] [[A]],
// CHECK-NEXT:    [[B:%.*]] = tlx.require_layout %a : {{.*}} -> !ttg.memdesc<64x64xf16, #[[PLAIN]], #smem, mutable>
// CHECK-NEXT:    ttng.async_tma_copy_local_to_global %e[%i, %i] [[B]]
// CHECK-NEXT:    [[V:%.*]] = tlx.require_layout %v : {{.*}} -> !ttg.memdesc<64xf16, #[[LINE]], #smem, mutable>
// CHECK-NEXT:    ttng.async_tma_copy_local_to_global %l[%i] [[V]]
#rows = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#line = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#plain = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @copies(%d: !tt.tensordesc<64x64xf16>, %e: !tt.tensordesc<64x64xf16, #plain>, %l: !tt.tensordesc<64xf16>, %a: !ttg.memdesc<64x64xf16, #rows, #smem, mutable>, %v: !ttg.memdesc<64xf16, #line, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #line, #smem, mutable>, %i: i32) {
  %true = arith.constant true
  ttng.async_tma_copy_global_to_local %d[%i, %i] %a, %bar, %true : !tt.tensordesc<64x64xf16>, !ttg.memdesc<1xi64, #line, #smem, mutable> -> !ttg.memdesc<64x64xf16, #rows, #smem, mutable>
  ttng.async_tma_copy_local_to_global %e[%i, %i] %a : !tt.tensordesc<64x64xf16, #plain>, !ttg.memdesc<64x64xf16, #rows, #smem, mutable>
  ttng.async_tma_copy_local_to_global %l[%i] %v : !tt.tensordesc<64xf16>, !ttg.memdesc<64xf16, #line, #smem, mutable>
  tt.return
}

// -----

// fp4 beside 8-bit floats takes two bytes for each pair; an accumulator of 16 bits is not packed; placeholders wait.

// CHECK-DAG:   #[[PADDED:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8, fp4Padded = true}>
// CHECK-DAG:   #[[LOOSE:.*]] = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 2>
// CHECK-LABEL: @blackwell
// CHECK:         [[A:%.*]] = tlx.require_layout %a : {{.*}} -> !ttg.memdesc<128x64xi8, #[[PADDED]], #smem, mutable>
// CHECK-NEXT:    ttng.tc_gen5_mma_scaled [[A]], %b, %d, %s, %s, %true, %true lhs = e2m1 rhs = e4m3
// CHECK-NEXT:    [[H:%.*]] = tlx.require_layout %h : {{.*}} -> !ttg.memdesc<128x128xf16, #[[LOOSE]], #ttng.tensor_memory, mutable>
// CHECK-NEXT:    ttng.tc_gen5_mma %x, %x, [[H]], %true, %true
// CHECK-NEXT:    tt.return
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
#tile_b = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8}>
#tile16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#acc = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>
#smem = #ttg.shared_memory
tt.func @blackwell(%a: !ttg.memdesc<128x64xi8, #tile, #smem, mutable>, %b: !ttg.memdesc<128x128xf8E4M3FN, #tile_b, #smem, mutable>, %d: !ttg.memdesc<128x128xf32, #acc, #ttng.tensor_memory, mutable>, %s: !ttg.memdesc<128x4xi8, #tlx.dummy_tmem_layout, #ttng.tensor_memory, mutable>, %x: !ttg.memdesc<128x128xf16, #tile16, #smem, mutable>, %h: !ttg.memdesc<128x128xf16, #acc, #ttng.tensor_memory, mutable>) {
  %true = arith.constant true
  ttng.tc_gen5_mma_scaled %a, %b, %d, %s, %s, %true, %true lhs = e2m1 rhs = e4m3 : !ttg.memdesc<128x64xi8, #tile, #smem, mutable>, !ttg.memdesc<128x128xf8E4M3FN, #tile_b, #smem, mutable>, !ttg.memdesc<128x128xf32, #acc, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x4xi8, #tlx.dummy_tmem_layout, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x4xi8, #tlx.dummy_tmem_layout, #ttng.tensor_memory, mutable>
  ttng.tc_gen5_mma %x, %x, %h, %true, %true : !ttg.memdesc<128x128xf16, #tile16, #smem, mutable>, !ttg.memdesc<128x128xf16, #tile16, #smem, mutable>, !ttg.memdesc<128x128xf16, #acc, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

// A dot whose layout is known wants what is loaded for it in that of an operand; one whose layout is not yet, nothing.

// CHECK-LABEL: @dot
// CHECK:         [[A:%.*]] = tlx.require_layout %a : tensor<64x64xf16> -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT:    tt.dot [[A]], %b, %c
// CHECK-NEXT:    tt.dot %a, %a, %c0 :
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
tt.func @dot(%buf: !ttg.memdesc<64x64xf16, #tile, #smem, mutable>, %b: tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>, %c: tensor<64x64xf32, #mma>, %c0: tensor<64x64xf32>) {
  %a = ttg.local_load %buf : !ttg.memdesc<64x64xf16, #tile, #smem, mutable> -> tensor<64x64xf16>
  %0 = tt.dot %a, %b, %c : tensor<64x64xf16> * tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x64xf32, #mma>
  %1 = tt.dot %a, %a, %c0 : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  tt.return
}
