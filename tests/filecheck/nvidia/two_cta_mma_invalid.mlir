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
    // expected-error @+1 {{an MMA of a pair of CTAs can be compiled with operands of f16 or bf16 only}}
    ttng.tc_gen5_mma %a, %b, %d, %p, %p {is_async, two_ctas} : !ttg.memdesc<128x32xf32, #s, #smem>, !ttg.memdesc<32x32xf32, #s, #smem>, !ttg.memdesc<128x64xf32, #t, #ttng.tensor_memory, mutable>
    tt.return
  }
}
