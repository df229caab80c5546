// RUN: tlx-opt %s -p tlx-insert-tensor-memory-barriers | filecheck %s

#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>
#wide = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0], [0, 64]], block = []}>

// Eight warps: the bytes of a row that one has depend on the shape. In one shape each has its own.
// CHECK-LABEL: @eight
builtin.module attributes {"ttg.num-warps" = 8 : i32} {
  tt.func public @eight(%x: tensor<128x128xf32, #wide>, %h: tensor<128x128xf16, #wide>) {
    %true = arith.constant true
    %m = ttng.tmem_alloc : () -> !ttg.memdesc<128x128xf32, #tmem, #ttng.tensor_memory, mutable>
    %n = ttg.memdesc_reinterpret %m : !ttg.memdesc<128x128xf32, #tmem, #ttng.tensor_memory, mutable> -> !ttg.memdesc<128x128xf16, #tmem, #ttng.tensor_memory, mutable>
    // CHECK: ttng.tmem_store
    ttng.tmem_store %x, %m, %true : tensor<128x128xf32, #wide> -> !ttg.memdesc<128x128xf32, #tmem, #ttng.tensor_memory, mutable>
    // CHECK-NEXT: ttng.tmem_load
    %0 = ttng.tmem_load %m : !ttg.memdesc<128x128xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x128xf32, #wide>
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: ttng.tmem_store
    ttng.tmem_store %h, %n, %true : tensor<128x128xf16, #wide> -> !ttg.memdesc<128x128xf16, #tmem, #ttng.tensor_memory, mutable>
    // CHECK-NEXT: ttng.tmem_load
    %1 = ttng.tmem_load %n : !ttg.memdesc<128x128xf16, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x128xf16, #wide>
    tt.return
  }
}
