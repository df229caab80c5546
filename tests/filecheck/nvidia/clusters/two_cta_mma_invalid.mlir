// RUN: tlx-opt %s -p tlx-lower-2cta-mma --split-input-file --verify-diagnostics

#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1, twoCTAs = true>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @rows(%a: !ttg.memdesc<256x64xf16, #s, #smem>, %b: !ttg.memdesc<64x64xf16, #s, #smem>, %d: !ttg.memdesc<256x128xf32, #t, #ttng.tensor_memory, mutable>, %p: i1) {
    // expected-error @+1 {{an MMA of a pair of CTAs can be compiled with 64 or 128 rows of an f32 accumulator in each CTA only}}
    ttng.tc_gen5_mma %a, %b, %d, %p, %p {is_async, two_ctas} : !ttg.memdesc<256x64xf16, #s, #smem>, !ttg.memdesc<64x64xf16, #s, #smem>, !ttg.memdesc<256x128xf32, #t, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, twoCTAs = true>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @wide(%a: !ttg.memdesc<128x32xf32, #s, #smem>, %b: !ttg.memdesc<32x32xf32, #s, #smem>, %d: !ttg.memdesc<128x64xf32, #t, #ttng.tensor_memory, mutable>, %p: i1) {
    // expected-error @+1 {{an MMA of a pair of CTAs can be compiled with operands of f16, bf16 or 8-bit floats only}}
    ttng.tc_gen5_mma %a, %b, %d, %p, %p {is_async, two_ctas} : !ttg.memdesc<128x32xf32, #s, #smem>, !ttg.memdesc<32x32xf32, #s, #smem>, !ttg.memdesc<128x64xf32, #t, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

// More columns than an instruction has bits for.

#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 256, colStride = 1, twoCTAs = true>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @columns(%a: !ttg.memdesc<128x64xf16, #s, #smem>, %b: !ttg.memdesc<64x256xf16, #s, #smem>, %d: !ttg.memdesc<128x512xf32, #t, #ttng.tensor_memory, mutable>, %p: i1) {
    // expected-error @+1 {{an MMA of a pair of CTAs can be compiled with a multiple of 16 columns, at most 256 only}}
    ttng.tc_gen5_mma %a, %b, %d, %p, %p {is_async, two_ctas} : !ttg.memdesc<128x64xf16, #s, #smem>, !ttg.memdesc<64x256xf16, #s, #smem>, !ttg.memdesc<128x512xf32, #t, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

// Scales of half of the columns: the tensor core of each CTA multiplies all of them.

#a = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8}>
#b = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 8}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 256, colStride = 1, twoCTAs = true>
#sc = #ttng.tensor_memory_scales_encoding<>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @scales(%a: !ttg.memdesc<128x128xf8E4M3FN, #a, #smem>, %b: !ttg.memdesc<128x128xf8E4M3FN, #b, #smem>, %d: !ttg.memdesc<128x256xf32, #t, #ttng.tensor_memory, mutable>, %as: !ttg.memdesc<128x4xi8, #sc, #ttng.tensor_memory, mutable>, %bs: !ttg.memdesc<128x4xi8, #sc, #ttng.tensor_memory, mutable>, %p: i1) {
    // expected-error @+1 {{256 x 4 scales of B in the tensor memory of each CTA}}
    ttng.tc_gen5_mma_scaled %a, %b, %d, %as, %bs, %p, %p lhs = e4m3 rhs = e4m3 {is_async, two_ctas} : !ttg.memdesc<128x128xf8E4M3FN, #a, #smem>, !ttg.memdesc<128x128xf8E4M3FN, #b, #smem>, !ttg.memdesc<128x256xf32, #t, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x4xi8, #sc, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x4xi8, #sc, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

// A copy of what is no scales has no form for pairs here.

#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#w = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1, twoCTAs = true>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @copy(%a: !ttg.memdesc<128x64xf16, #s, #smem>, %b: !ttg.memdesc<64x64xf16, #s, #smem>, %c: !ttg.memdesc<128x128xf32, #w, #smem>, %d: !ttg.memdesc<128x128xf32, #t, #ttng.tensor_memory, mutable>, %p: i1) {
    // expected-error @+1 {{compiled with no copies to tensor memory but those of scales beside it only}}
    ttng.tmem_copy %c, %d : !ttg.memdesc<128x128xf32, #w, #smem>, !ttg.memdesc<128x128xf32, #t, #ttng.tensor_memory, mutable>
    ttng.tc_gen5_mma %a, %b, %d, %p, %p {is_async, two_ctas} : !ttg.memdesc<128x64xf16, #s, #smem>, !ttg.memdesc<64x64xf16, #s, #smem>, !ttg.memdesc<128x128xf32, #t, #ttng.tensor_memory, mutable>
    tt.return
  }
}
