// RUN: tlx-opt %s -p convert-triton-to-tritongpu --split-input-file | filecheck %s

// A block without requirements gets the default layout of its region's warps; the operand of expand_dims
// is brought to a slice of the result's layout, the operand of broadcast to the result's layout.

// CHECK:       #[[LINE:.*]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NEXT:  #[[ROW:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>
// CHECK:       tt.func public @broadcast
// CHECK-NEXT:    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #[[LINE]]>
// CHECK-NEXT:    %[[SLICE:.*]] = ttg.convert_layout %range : tensor<64xi32, #[[LINE]]> -> tensor<64xi32, #ttg.slice<{dim = 0, parent = #[[ROW]]}>>
// CHECK-NEXT:    %rows = tt.expand_dims %[[SLICE]] {axis = 0 : i32} : {{.*}} -> tensor<1x64xi32, #[[ROW]]>
// CHECK-NEXT:    %tile = tt.broadcast %rows : tensor<1x64xi32, #[[ROW]]> -> tensor<64x64xi32, #[[ROW]]>
// CHECK-NEXT:    %twice = arith.addi %tile, %tile : tensor<64x64xi32, #[[ROW]]>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @broadcast() {
    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %rows = tt.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %tile = tt.broadcast %rows : tensor<1x64xi32> -> tensor<64x64xi32>
    %twice = arith.addi %tile, %tile : tensor<64x64xi32>
    tt.return
  }
}

// -----

// The accumulator has the layout of wgmma from its zero to its last wait: no conversion touches it in flight. What
// computes with it afterwards gets a conversion.

// CHECK:       #[[MMA:mma]] = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 128, 16]}>
// CHECK:       tt.func public @accumulator
// CHECK:         %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<64x128xf32, #[[MMA]]>
// CHECK:         %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[ZERO]]) -> (tensor<64x128xf32, #[[MMA]]>)
// CHECK-NEXT:      %[[DOT:.*]] = ttng.warp_group_dot %a, %b, %[[ACC]]
// CHECK-NEXT:      %[[WAIT:.*]] = ttng.warp_group_dot_wait %[[DOT]] {pendings = 1 : i32} : tensor<64x128xf32, #[[MMA]]>
// CHECK-NEXT:      scf.yield %[[WAIT]] : tensor<64x128xf32, #[[MMA]]>
// CHECK:         %[[DONE:.*]] = ttng.warp_group_dot_wait %[[SUM]] {pendings = 0 : i32}
// CHECK-NEXT:    %[[OUT:.*]] = ttg.convert_layout %[[DONE]] : tensor<64x128xf32, #[[MMA]]> -> tensor<64x128xf32, #[[B:.*]]>
// CHECK-NEXT:    arith.truncf %[[OUT]] : tensor<64x128xf32, #[[B]]> to tensor<64x128xf16, #[[B]]>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @accumulator(%a: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x128xf16, #shared, #smem, mutable>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x128xf32>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
      %d = ttng.warp_group_dot %a, %b, %acc {isAsync = true} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x128xf16, #shared, #smem, mutable> -> tensor<64x128xf32>
      %w = ttng.warp_group_dot_wait %d {pendings = 1 : i32} : tensor<64x128xf32>
      scf.yield %w : tensor<64x128xf32>
    }
    %done = ttng.warp_group_dot_wait %sum {pendings = 0 : i32} : tensor<64x128xf32>
    %out = arith.truncf %done : tensor<64x128xf32> to tensor<64x128xf16>
    tt.return
  }
}

// -----

// An accumulator that is scaled between two dots computes in the default layout, and is converted around that.

// CHECK:       tt.func public @rescaled
// CHECK:         scf.for {{.*}} -> (tensor<64x128xf32, #mma>)
// CHECK-NEXT:      ttg.convert_layout {{.*}} tensor<64x128xf32, #mma> -> tensor<64x128xf32, #blocked>
// CHECK-NEXT:      arith.mulf
// CHECK-NEXT:      ttg.convert_layout {{.*}} tensor<64x128xf32, #blocked> -> tensor<64x128xf32, #mma>
// CHECK-NEXT:      ttng.warp_group_dot
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @rescaled(%a: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %b: !ttg.memdesc<64x128xf16, #shared, #smem, mutable>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x128xf32>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
      %scaled = arith.mulf %acc, %acc : tensor<64x128xf32>
      %d = ttng.warp_group_dot %a, %b, %scaled {isAsync = true} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x128xf16, #shared, #smem, mutable> -> tensor<64x128xf32>
      %w = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : tensor<64x128xf32>
      scf.yield %w : tensor<64x128xf32>
    }
    tt.return
  }
}

// -----

// Each partition has layouts for its own warps.

// CHECK:       #[[FOUR:.*]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NEXT:  #[[ONE:.*]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
// CHECK:       tt.func public @partitions
// CHECK:         default
// CHECK-NEXT:      tt.make_range {{.*}} : tensor<128xi32, #[[FOUR]]>
// CHECK:         partition0
// CHECK-NEXT:      tt.make_range {{.*}} : tensor<128xi32, #[[ONE]]>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @partitions() {
    ttg.warp_specialize()
    default {
      %0 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
      ttg.warp_yield
    }
    partition0() num_warps(1) {
      %1 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
      ttg.warp_return
    } : () -> ()
    tt.return
  }
}

// -----

// A descriptor gets the layout of the buffers that it is copied to, inside of partitions too.

// CHECK:       tt.func public @descriptors(%d: !tt.tensordesc<64x64xf16, #shared>, %unused: !tt.tensordesc<32x32xf32, #shared{{[0-9]*}}>
// CHECK:         partition0(%{{.*}}: !tt.tensordesc<64x64xf16, #shared>
// CHECK:         : (!tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @descriptors(%d: !tt.tensordesc<64x64xf16>, %unused: !tt.tensordesc<32x32xf32>, %buf: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>) {
    ttg.warp_specialize(%d, %buf)
    default {
      ttg.warp_yield
    }
    partition0(%pd: !tt.tensordesc<64x64xf16>, %pbuf: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>) num_warps(1) {
      %c0 = arith.constant 0 : i32
      ttng.async_tma_copy_local_to_global %pd[%c0, %c0] %pbuf : !tt.tensordesc<64x64xf16>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttg.warp_return
    } : (!tt.tensordesc<64x64xf16>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>) -> ()
    tt.return
  }
}

// -----

// A descriptor that a loop carries has the layout under all of its names, and so has what it may be exchanged with.

// CHECK:       tt.func public @carried(%a: !tt.tensordesc<64x64xf16, #shared>, %b: !tt.tensordesc<64x64xf16, #shared>
// CHECK:         scf.for {{.*}} iter_args(%{{.*}} = %a, %{{.*}} = %b) -> (!tt.tensordesc<64x64xf16, #shared>, !tt.tensordesc<64x64xf16, #shared>)
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @carried(%a: !tt.tensordesc<64x64xf16>, %b: !tt.tensordesc<64x64xf16>, %n: i32, %buf: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %y = %b) -> (!tt.tensordesc<64x64xf16>, !tt.tensordesc<64x64xf16>) : i32 {
      ttng.async_tma_reduce add, %x[%i, %c0] %buf : !tt.tensordesc<64x64xf16>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      scf.yield %y, %x : !tt.tensordesc<64x64xf16>, !tt.tensordesc<64x64xf16>
    }
    tt.return
  }
}

// -----

// Layouts that stand in the text stay, and converting twice changes nothing.

// CHECK:       tt.func public @explicit
// CHECK-NEXT:    tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
// CHECK-NEXT:    tt.expand_dims
// CHECK-NEXT:    tt.return
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @explicit() {
    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %rows = tt.expand_dims %range {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x64xi32, #blocked>
    tt.return
  }
}

// -----

// A reduction takes the layout of its operand; its result is a slice of it. Asynchronous copies take pointers, mask
// and other values in one layout.

// CHECK:       #[[TILE:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT:  #[[LINE:.*]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK:       tt.func public @reduction
// CHECK-NEXT:    %zero = arith.constant dense<0.000000e+00> : tensor<64x32xf32, #[[TILE]]>
// CHECK-NEXT:    %sums = "tt.reduce"(%zero)
// CHECK:         }) : (tensor<64x32xf32, #[[TILE]]>) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #[[TILE]]}>>
// CHECK-NEXT:    %[[SUMS:.*]] = ttg.convert_layout %sums : {{.*}} -> tensor<64xf32, #[[LINE]]>
// CHECK-NEXT:    %twice = arith.addf %[[SUMS]], %[[SUMS]] : tensor<64xf32, #[[LINE]]>
// CHECK-NEXT:    %pointers = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #[[LINE]]>
// CHECK-NEXT:    %token = ttg.async_copy_global_to_local %pointers, %buffer : tensor<64x!tt.ptr<f32>, #[[LINE]]>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @reduction(%p: !tt.ptr<f32>, %buffer: !ttg.memdesc<64xf32, #shared, #smem, mutable>) {
    %zero = arith.constant dense<0.0> : tensor<64x32xf32>
    %sums = "tt.reduce"(%zero) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<64x32xf32>) -> tensor<64xf32>
    %twice = arith.addf %sums, %sums : tensor<64xf32>
    %pointers = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %token = ttg.async_copy_global_to_local %pointers, %buffer : tensor<64x!tt.ptr<f32>> -> <64xf32, #shared, #smem, mutable>
    tt.return
  }
}
