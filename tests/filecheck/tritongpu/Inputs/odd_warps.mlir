#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 2 : i32} {
  tt.func public @k(%a: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x128xf16, #shared, #smem, mutable>) {
    %zero = arith.constant dense<0.0> : tensor<64x128xf32>
    %d = ttng.warp_group_dot %a, %b, %zero {isAsync = true} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x128xf16, #shared, #smem, mutable> -> tensor<64x128xf32>
    tt.return
  }
}
