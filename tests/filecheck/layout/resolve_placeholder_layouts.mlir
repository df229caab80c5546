// RUN: tlx-opt %s -p tlx-resolve-placeholder-layouts --split-input-file | filecheck %s

// Each region has warps of its own: 4 load rows, 8 share the columns. A value that goes round a loop, and what is
// computed from it, have one layout; where a buffer needs another one, the tensor is converted.

// CHECK-DAG:   #[[FOUR:.*]] = #ttg.linear<{register = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32{{\]\]}}, lane = {{.*}}, warp = {{\[\[}}32, 0], [64, 0{{\]\]}}, block = []}>
// CHECK-DAG:   #[[EIGHT:.*]] = #ttg.linear<{register = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 8], [0, 16{{\]\]}}, lane = {{.*}}, warp = {{\[\[}}32, 0], [64, 0], [0, 32{{\]\]}}, block = []}>
// CHECK-LABEL: @regions
// CHECK:           %four = ttng.tmem_load %acc : {{.*}} -> tensor<128x64xf32, #[[FOUR]]>
// CHECK-NEXT:      %sum = scf.for {{.*}} iter_args(%x = %four) -> (tensor<128x64xf32, #[[FOUR]]>)
// CHECK-NEXT:        %y = arith.addf %x, %x : tensor<128x64xf32, #[[FOUR]]>
// CHECK:           ttng.tmem_store %sum, %acc, %true : tensor<128x64xf32, #[[FOUR]]>
// CHECK:         partition0
// CHECK-NEXT:      %eight = ttng.tmem_load %b : {{.*}} -> tensor<128x64xf32, #[[EIGHT]]>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:100"} {
  tt.func @regions(%acc: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %n: i32) {
    ttg.warp_specialize(%acc)
    default {
      %true = arith.constant true
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %four = ttng.tmem_load %acc : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #tlx.dummy_register_layout<128x64xf32, tmem_compatible = true>>
      %sum = scf.for %i = %c0 to %n step %c1 iter_args(%x = %four) -> (tensor<128x64xf32, #tlx.dummy_register_layout<128x64xf32, tmem_compatible = true>>) : i32 {
        %y = arith.addf %x, %x : tensor<128x64xf32, #tlx.dummy_register_layout<128x64xf32, tmem_compatible = true>>
        scf.yield %y : tensor<128x64xf32, #tlx.dummy_register_layout<128x64xf32, tmem_compatible = true>>
      }
      ttng.tmem_store %sum, %acc, %true : tensor<128x64xf32, #tlx.dummy_register_layout<128x64xf32, tmem_compatible = true>> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
      ttg.warp_yield
    }
    partition0(%b: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) num_warps(8) {
      %eight = ttng.tmem_load %b : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #tlx.dummy_register_layout<128x64xf32, tmem_compatible = true>>
      ttg.warp_return
    } : (!ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>) -> ()
    tt.return
  }
}

// -----

// Two buffers of different blocks: the values are of the first one's layout, and the second store comes after a conversion.

// CHECK-LABEL: @two_buffers
// CHECK:         %v = ttng.tmem_load %wide : {{.*}} -> tensor<128x64xf32, #[[A:.*]]>
// CHECK-NEXT:    [[C:%.*]] = ttg.convert_layout %v : tensor<128x64xf32, #[[A]]> -> tensor<128x64xf32, #[[B:.*]]>
// CHECK-NEXT:    ttng.tmem_store [[C]], %narrow, %true
// CHECK-NEXT:    %w = ttng.tmem_load %narrow : {{.*}} -> tensor<128x64xf32, #[[B]]>
// CHECK-NEXT:    [[D:%.*]] = ttg.convert_layout %w : tensor<128x64xf32, #[[B]]> -> tensor<128x64xf32, #[[A]]>
// CHECK-NEXT:    arith.addf %v, [[D]] : tensor<128x64xf32, #[[A]]>
#wide = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#narrow = #ttng.tensor_memory_encoding<blockM = 64, blockN = 64, colStride = 1>
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:100"} {
  tt.func @two_buffers(%wide: !ttg.memdesc<128x64xf32, #wide, #ttng.tensor_memory, mutable>, %narrow: !ttg.memdesc<128x64xf32, #narrow, #ttng.tensor_memory, mutable>) {
    %true = arith.constant true
    %v = ttng.tmem_load %wide : !ttg.memdesc<128x64xf32, #wide, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #tlx.dummy_register_layout<128x64xf32, tmem_compatible = true>>
    ttng.tmem_store %v, %narrow, %true : tensor<128x64xf32, #tlx.dummy_register_layout<128x64xf32, tmem_compatible = true>> -> !ttg.memdesc<128x64xf32, #narrow, #ttng.tensor_memory, mutable>
    %w = ttng.tmem_load %narrow : !ttg.memdesc<128x64xf32, #narrow, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #tlx.dummy_register_layout<128x64xf32, tmem_compatible = true>>
    %0 = arith.addf %v, %w : tensor<128x64xf32, #tlx.dummy_register_layout<128x64xf32, tmem_compatible = true>>
    tt.return
  }
}

// -----

// Without tensor memory: the layout of an accumulator where it shall be compatible, else the default. Wrappers go,
// those of registers that say what the user chose stay for tlx-finalize-user-layouts.

// CHECK-DAG:   #[[LIKE:.*]] = #ttg.linear<{{.*}}>
// CHECK-DAG:   #[[DEFAULT:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>
// CHECK-DAG:   #[[KEPT:.*]] = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-LABEL: @alone
// CHECK-SAME:    %u: tensor<512xf32, #tlx.user_layout<#[[KEPT]]>>, %buf: !ttg.memdesc<64x64xf32, #shared, #smem, mutable>
// CHECK:         ttg.convert_layout %x : tensor<128x64xf32> -> tensor<128x64xf32, #[[LIKE]]>
// CHECK-NEXT:    ttg.convert_layout %x : tensor<128x64xf32> -> tensor<128x64xf32, #[[DEFAULT]]>
// CHECK-NEXT:    arith.constant dense<1.000000e+00> : tensor<128x64xf32, #[[DEFAULT]]>
#kept = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:100"} {
  tt.func @alone(%x: tensor<128x64xf32>, %u: tensor<512xf32, #tlx.user_layout<#tlx.no_verify_layout<#kept>>>, %buf: !ttg.memdesc<64x64xf32, #tlx.user_layout<#shared>, #smem, mutable>) {
    %0 = ttg.convert_layout %x : tensor<128x64xf32> -> tensor<128x64xf32, #tlx.dummy_register_layout<128x64xf32, tmem_compatible = true>>
    %1 = ttg.convert_layout %x : tensor<128x64xf32> -> tensor<128x64xf32, #tlx.dummy_register_layout<128x64xf32, tmem_compatible = false>>
    %2 = arith.constant dense<1.000000e+00> : tensor<128x64xf32, #tlx.dummy_register_layout<128x64xf32, tmem_compatible = false>>
    tt.return
  }
}
