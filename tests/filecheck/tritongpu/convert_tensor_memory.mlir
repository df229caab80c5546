// RUN: tlx-opt %s -p tlx-propagate-layout,tlx-resolve-placeholder-layouts,convert-triton-to-tritongpu --split-input-file | filecheck %s
// RUN: not tlx-opt %S/Inputs/tmem_two_warps.mlir -p convert-triton-to-tritongpu 2>&1 | filecheck %s --check-prefix=WARPS

// WARPS: error: tensor memory is read and written by whole warp groups of 4 warps, 2 run this code

// A thread reaches one lane of tensor memory: its row. The frontend's placeholder and its release become that layout
// and a conversion from it.

// CHECK:       #[[ROWS:.*]] = #ttg.linear<{register = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], lane = {{\[\[}}1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = {{\[\[}}32, 0], [64, 0]], block = []}>
// CHECK:       tt.func public @load_and_store
// CHECK:         %loaded = ttng.tmem_load %acc : {{.*}} -> tensor<128x64xf32, #[[ROWS]]>
// CHECK-NEXT:    %free = ttg.convert_layout %loaded : tensor<128x64xf32, #[[ROWS]]> -> tensor<128x64xf32, #[[B:.*]]>
// CHECK-NEXT:    %twice = arith.addf %free, %free : tensor<128x64xf32, #[[B]]>
// CHECK-NEXT:    %[[BACK:.*]] = ttg.convert_layout %twice : tensor<128x64xf32, #[[B]]> -> tensor<128x64xf32, #[[ROWS]]>
// CHECK-NEXT:    ttng.tmem_store %[[BACK]], %acc, %true
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:100"} {
  tt.func public @load_and_store(%acc: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
    %true = arith.constant true
    %loaded = ttng.tmem_load %acc : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #tlx.dummy_register_layout<128x64xf32, tmem_compatible = true>>
    %free = tlx.release_layout %loaded : tensor<128x64xf32, #tlx.dummy_register_layout<128x64xf32, tmem_compatible = true>> -> tensor<128x64xf32>
    %twice = arith.addf %free, %free : tensor<128x64xf32>
    ttng.tmem_store %twice, %acc, %true : tensor<128x64xf32> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
    tt.return
  }
}

// -----

// Two warp groups share the columns.

// CHECK:       #ttg.linear<{register = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], lane = {{.*}}, warp = {{\[\[}}32, 0], [64, 0], [0, 32]], block = []}>
// CHECK:       tt.func public @eight_warps
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
builtin.module attributes {"ttg.num-warps" = 8 : i32, ttg.target = "cuda:100"} {
  tt.func public @eight_warps(%acc: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
    %loaded = ttng.tmem_load %acc : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32>
    tt.return
  }
}
