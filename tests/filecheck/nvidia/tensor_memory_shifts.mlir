// RUN: tlx-opt %s -p tlx-lower-to-ptx-with-layouts --split-input-file --verify-diagnostics | filecheck %s

#acc = #ttng.tensor_memory_encoding<blockM = 128, blockN = 16, colStride = 1>

// The thread that upstream Triton's commits are by issues an instruction for every 8 columns, after the stores of all.
// CHECK-LABEL: @shift
// CHECK:         ttg.barrier local
// CHECK:         %[[THREAD:.*]] = llvm.extractvalue
// CHECK:         %[[WARP:.*]] = arith.constant 32 : i32
// CHECK:         %[[AT:.*]] = llvm.ptrtoint
// CHECK:         nvvm.inline_ptx "{ .reg .pred p; .reg .b32 e; elect.sync e|p, 0xffffffff; setp.lt.and.s32 p, $0, $1, p; @p tcgen05.shift.cta_group::1.down [$2+0]; @p tcgen05.shift.cta_group::1.down [$2+8]; }" ro(%[[THREAD]], %[[WARP]], %[[AT]] : i32, i32, i32)
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @shift(%t: !ttg.memdesc<128x16xf32, #acc, #ttng.tensor_memory, mutable>) {
    tlx.tmem_shift %t : !ttg.memdesc<128x16xf32, #acc, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#acc = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#pair = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, twoCTAs = true>
#tiles = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory

// PTX has instructions of one CTA in a kernel, or of two.
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @beside_a_pair(%t: !ttg.memdesc<128x64xf32, #acc, #ttng.tensor_memory, mutable>, %d: !ttg.memdesc<128x64xf32, #pair, #ttng.tensor_memory, mutable>, %a: !ttg.memdesc<128x64xf16, #tiles, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #tiles, #smem, mutable>, %c: i1) {
    // expected-error @+1 {{tlx.tmem_shift can't stand in a kernel with MMAs of pairs of CTAs}}
    tlx.tmem_shift %t : !ttg.memdesc<128x64xf32, #acc, #ttng.tensor_memory, mutable>
    ttng.tc_gen5_mma %a, %b, %d, %c, %c {is_async, two_ctas} : !ttg.memdesc<128x64xf16, #tiles, #smem, mutable>, !ttg.memdesc<64x64xf16, #tiles, #smem, mutable>, !ttg.memdesc<128x64xf32, #pair, #ttng.tensor_memory, mutable>
    tt.return
  }
}
