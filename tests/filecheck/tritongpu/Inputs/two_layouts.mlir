#wide = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#narrow = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @k(%d: !tt.tensordesc<64x64xf16>, %a: !ttg.memdesc<64x64xf16, #wide, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #narrow, #smem, mutable>) {
    %c0 = arith.constant 0 : i32
    ttng.async_tma_copy_local_to_global %d[%c0, %c0] %a : !tt.tensordesc<64x64xf16>, !ttg.memdesc<64x64xf16, #wide, #smem, mutable>
    ttng.async_tma_copy_local_to_global %d[%c0, %c0] %b : !tt.tensordesc<64x64xf16>, !ttg.memdesc<64x64xf16, #narrow, #smem, mutable>
    tt.return
  }
}
