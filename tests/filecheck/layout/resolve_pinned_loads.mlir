// RUN: tlx-opt %s -p tlx-resolve-placeholder-layouts | filecheck %s

// A load from tensor memory has the layout that the user pins on it, if threads can hold whole words of one row so.

#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [8, 1], order = [1, 0]}>
#rows = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 64]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0], [0, 32]], block = []}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>

builtin.module attributes {"ttg.num-warps" = 8 : i32} {
  // CHECK-DAG: [[ROWS:#[a-z0-9]+]] = #ttg.linear<{register = {{.*}}[0, 64]], lane = {{.*}}, warp = {{\[\[}}32, 0], [64, 0], [0, 32]]
  // CHECK-DAG: [[USUAL:#[a-z0-9]+]] = #ttg.linear<{register = {{.*}}[0, 32]], lane = {{.*}}, warp = {{\[\[}}32, 0], [64, 0], [0, 64]]

  // CHECK-LABEL: @rows
  // CHECK-NEXT:    ttng.tmem_load %b : {{.*}} -> tensor<128x128xf32, [[ROWS]]>
  tt.func public @rows(%b: !ttg.memdesc<128x128xf32, #tmem, #ttng.tensor_memory, mutable>, %p: tensor<128x128x!tt.ptr<f32>, #rows>) {
    %0 = ttng.tmem_load %b : !ttg.memdesc<128x128xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x128xf32, #tlx.dummy_register_layout<128x128xf32, tmem_compatible = true>>
    %1 = ttg.convert_layout %0 : tensor<128x128xf32, #tlx.dummy_register_layout<128x128xf32, tmem_compatible = true>> -> tensor<128x128xf32>
    %2 = ttg.convert_layout %1 : tensor<128x128xf32> -> tensor<128x128xf32, #rows>
    tt.store %p, %2 : tensor<128x128x!tt.ptr<f32>, #rows>
    tt.return
  }

  // Threads of a warp would hold words of 2 rows: a conversion remains.
  // CHECK-LABEL: @scattered
  // CHECK-NEXT:    ttng.tmem_load %b : {{.*}} -> tensor<128x128xf32, [[USUAL]]>
  tt.func public @scattered(%b: !ttg.memdesc<128x128xf32, #tmem, #ttng.tensor_memory, mutable>, %p: tensor<128x128x!tt.ptr<f32>, #blocked>) {
    %0 = ttng.tmem_load %b : !ttg.memdesc<128x128xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x128xf32, #tlx.dummy_register_layout<128x128xf32, tmem_compatible = true>>
    %1 = ttg.convert_layout %0 : tensor<128x128xf32, #tlx.dummy_register_layout<128x128xf32, tmem_compatible = true>> -> tensor<128x128xf32>
    %2 = ttg.convert_layout %1 : tensor<128x128xf32> -> tensor<128x128xf32, #blocked>
    tt.store %p, %2 : tensor<128x128x!tt.ptr<f32>, #blocked>
    tt.return
  }

  // Two users want two layouts.
  // CHECK-LABEL: @shared
  // CHECK-NEXT:    ttng.tmem_load %b : {{.*}} -> tensor<128x128xf32, [[USUAL]]>
  tt.func public @shared(%b: !ttg.memdesc<128x128xf32, #tmem, #ttng.tensor_memory, mutable>, %p: tensor<128x128x!tt.ptr<f32>, #rows>, %q: tensor<128x128x!tt.ptr<f32>>) {
    %0 = ttng.tmem_load %b : !ttg.memdesc<128x128xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x128xf32, #tlx.dummy_register_layout<128x128xf32, tmem_compatible = true>>
    %1 = ttg.convert_layout %0 : tensor<128x128xf32, #tlx.dummy_register_layout<128x128xf32, tmem_compatible = true>> -> tensor<128x128xf32>
    %2 = ttg.convert_layout %1 : tensor<128x128xf32> -> tensor<128x128xf32, #rows>
    tt.store %p, %2 : tensor<128x128x!tt.ptr<f32>, #rows>
    tt.store %q, %1 : tensor<128x128x!tt.ptr<f32>>
    tt.return
  }
}
