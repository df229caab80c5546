// RUN: tlx-opt %s -p tlx-dump-layout 2>&1 >/dev/null | filecheck %s --match-full-lines --strict-whitespace --check-prefix=REPORT
// RUN: tlx-opt %s -p tlx-dump-layout 2>/dev/null | filecheck %s

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#same = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]], block = []}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#rows = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#padded = #ttg.padded_shared<[64:+8] {order = [1, 0], shape = [64, 64]}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 2, colStride = 1>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// The operations are gone, what they look at stays.
// CHECK-LABEL:  tt.func @buffers(
// CHECK-NOT:      tlx.
// CHECK:          ttg.local_store
// CHECK-NEXT:     ttg.local_store
// CHECK-NEXT:     ttg.local_load
// CHECK-NEXT:     tt.return
tt.func @buffers(%a: tensor<64x64xf16, #mma>, %i: i32) {
  %ring = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>
  %tile = ttg.memdesc_index %ring[%i] : !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  // REPORT:// tlx.dump_layout @ user.py:3:5
  // REPORT-NEXT://   !ttg.memdesc<3x64x64xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>, #ttg.shared_memory, mutable>
  // REPORT-NEXT://   cute: Swizzle<3,3,3> o (_3,_64,_64):(_4096,_64,_1)
  // REPORT-NEXT://   line 7: threads write: stmatrix, 128 bits per lane, no bank conflicts (16 wavefronts per warp)
  // REPORT-NEXT://   stock Triton may still choose other layouts for registers
  tlx.dump_layout %ring : !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable> loc("user.py":3:5)
  // Another view of the same buffers is accessed as they are.
  %other = ttg.memdesc_index %ring[%i] : !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  // REPORT-NEXT:// tlx.dump_layout @ user.py:3:9
  // REPORT-NEXT://   !ttg.memdesc<64x64xf16, {{.*}}>
  // REPORT-NEXT://   cute: Swizzle<3,3,3> o (_64,_64):(_64,_1)
  // REPORT-NEXT://   line 7: threads write: stmatrix, 128 bits per lane, no bank conflicts (16 wavefronts per warp)
  // REPORT-NEXT://   stock Triton may still choose other layouts for registers
  tlx.dump_layout %other : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> loc("user.py":3:9)
  %flat = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #rows, #smem, mutable>
  // REPORT-NEXT:// tlx.dump_layout @ user.py:4:5
  // REPORT-NEXT://   !ttg.memdesc<64x64xf16, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>, #ttg.shared_memory, mutable>
  // REPORT-NEXT://   cute: (_64,_64):(_64,_1)
  // REPORT-NEXT://   line 8: threads write: stmatrix, 128 bits per lane, 8-way bank conflicts (128 instead of 16 wavefronts per warp)
  // REPORT-NEXT://   line 9: threads read: 128 bits per lane, no bank conflicts (16 wavefronts per warp)
  // REPORT-NEXT://   stock Triton may still choose other layouts for registers
  tlx.dump_layout %flat : !ttg.memdesc<64x64xf16, #rows, #smem, mutable> loc("user.py":4:5)
  ttg.local_store %a, %tile : tensor<64x64xf16, #mma> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable> loc("user.py":7:1)
  ttg.local_store %a, %flat : tensor<64x64xf16, #mma> -> !ttg.memdesc<64x64xf16, #rows, #smem, mutable> loc("user.py":8:1)
  %b = ttg.local_load %flat : !ttg.memdesc<64x64xf16, #rows, #smem, mutable> -> tensor<64x64xf16, #blocked> loc("user.py":9:1)
  tt.return
}

// A padded layout has no form in CuTe's terms, nor has tensor memory.
tt.func @spelled_out(%padded: !ttg.memdesc<64x64xf16, #padded, #smem, mutable>, %tmem: !ttg.memdesc<128x2xf32, #tmem, #ttng.tensor_memory, mutable>) {
  // REPORT-NEXT:// tlx.dump_layout @ user.py:12:5
  // REPORT-NEXT://   !ttg.memdesc<64x64xf16, {{.*}}>
  // REPORT-NEXT://   linear layout:
  // REPORT-NEXT://     offset: (0, 1) (0, 2) (0, 4) (0, 8) (0, 16) (0, 32) (1, 0) (2, 0) (4, 0) (8, 0) (16, 0) (32, 0)
  // REPORT-NEXT://     block:
  // REPORT-NEXT://     -> dim0: 64, dim1: 64
  // REPORT-NEXT://     8 more elements after every 64
  // REPORT-NEXT:// tlx.dump_layout @ user.py:13:5
  // REPORT-NEXT://   !ttg.memdesc<128x2xf32, {{.*}}>
  // REPORT-NEXT://   linear layout:
  // REPORT-NEXT://     row: (1, 0) (2, 0) (4, 0) (8, 0) (16, 0) (32, 0) (64, 0)
  // REPORT-NEXT://     col: (0, 1)
  // REPORT-NEXT://     block:
  // REPORT-NEXT://     -> dim0: 128, dim1: 2
  tlx.dump_layout %padded : !ttg.memdesc<64x64xf16, #padded, #smem, mutable> loc("user.py":12:5)
  tlx.dump_layout %tmem : !ttg.memdesc<128x2xf32, #tmem, #ttng.tensor_memory, mutable> loc("user.py":13:5)
  tt.return
}

// Marks around a layout do not hide it.
// CHECK-LABEL:  tt.func @tensors(
// CHECK-NEXT:     tt.return
tt.func @tensors(%x: tensor<64x64xf16, #blocked>, %marked: tensor<64x64xf16, #tlx.user_layout<#tlx.no_verify_layout<#blocked>>>, %spelled: tensor<64x64xf16, #same>) {
  // REPORT-NEXT:// tlx.dump_layout @ user.py:20:5
  // REPORT-NEXT://   tensor<64x64xf16, #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>
  // REPORT-NEXT://   cute: ((_32,_4),(_8,_4)):((_8,_256),(_1,_1024))
  // REPORT-NEXT://   global memory that is contiguous along dimension 1: 128 bits per lane, 16 sectors per request, 100% of their bytes used
  // REPORT-NEXT://   stock Triton may still choose other layouts for registers
  tlx.dump_layout %x : tensor<64x64xf16, #blocked> loc("user.py":20:5)
  // REPORT-NEXT:// tlx.dump_layout @ user.py:21:5
  // REPORT-NEXT://   tensor<64x64xf16, #tlx.user_layout<{{.*}}>>>
  // REPORT-NEXT://   cute: ((_32,_4),(_8,_4)):((_8,_256),(_1,_1024))
  // REPORT-NEXT://   global memory {{.*}}
  // REPORT-NEXT://   stock Triton {{.*}}
  tlx.dump_layout %marked : tensor<64x64xf16, #tlx.user_layout<#tlx.no_verify_layout<#blocked>>> loc("user.py":21:5)
  // One layout in three spellings.
  tlx.assert_same_layout %x, %marked : tensor<64x64xf16, #blocked>, tensor<64x64xf16, #tlx.user_layout<#tlx.no_verify_layout<#blocked>>>
  tlx.assert_same_layout %x, %spelled : tensor<64x64xf16, #blocked>, tensor<64x64xf16, #same>
  tlx.assert_same_layout_expected %spelled {expected = #tlx.user_layout<#blocked>} : tensor<64x64xf16, #same>
  tt.return
}
}
