#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
builtin.module attributes {"ttg.num-warps" = 2 : i32, ttg.target = "cuda:100"} {
  tt.func public @k(%acc: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
    %loaded = ttng.tmem_load %acc : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32>
    tt.return
  }
}
