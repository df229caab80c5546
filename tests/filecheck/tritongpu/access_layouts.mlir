// RUN: tlx-opt %s -p convert-triton-to-tritongpu --split-input-file | filecheck %s

// A bias that is added to the result of a dot is loaded in the dot's layout: no conversion lies between the two but
// those of the default layout, which go away together.

// CHECK:       #[[ROWS:.*]] = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK:       tt.func public @bias
// CHECK:         tt.load {{.*}} : tensor<64x64x!tt.ptr<f16>, #mma>
// What is stored goes in vectors of 16 bytes, 8 elements, along the rows.
// CHECK:         tt.store {{.*}} : tensor<64x64x!tt.ptr<f16>, #[[ROWS]]>
// CHECK-NEXT:    tt.return
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!tile = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @bias(%a: !tile, %b: !tile, %p: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %c64 = arith.constant dense<64> : tensor<64x1xi32>
    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %rows = tt.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %lines = arith.muli %rows, %c64 : tensor<64x1xi32>
    %columns = tt.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %lines2 = tt.broadcast %lines : tensor<64x1xi32> -> tensor<64x64xi32>
    %columns2 = tt.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
    %offsets = arith.addi %lines2, %columns2 : tensor<64x64xi32>
    %base = tt.splat %p : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
    %pointers = tt.addptr %base, %offsets : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %d = ttng.warp_group_dot %a, %b, %zero {isAsync = true} : !tile * !tile -> tensor<64x64xf32>
    %w = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : tensor<64x64xf32>
    %bias = tt.load %pointers : tensor<64x64x!tt.ptr<f16>>
    %wide = arith.extf %bias : tensor<64x64xf16> to tensor<64x64xf32>
    %sum = arith.addf %w, %wide : tensor<64x64xf32>
    %narrow = arith.truncf %sum : tensor<64x64xf32> to tensor<64x64xf16>
    tt.store %pointers, %narrow : tensor<64x64x!tt.ptr<f16>>
    tt.return
  }
}

// -----

// What does not meet a dot is coalesced, by the warps of its own task: along the axis that is contiguous in memory, here
// the first one, as wide as the pointers are aligned.

// CHECK-DAG:   #[[WIDE:.*]] = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 1], order = [0, 1]}>
// CHECK-DAG:   #[[NARROW:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 1], order = [0, 1]}>
// CHECK:       tt.func public @tasks
// CHECK:         partition0
// CHECK:           tt.load {{.*}} : tensor<64x64x!tt.ptr<f16>, #[[WIDE]]>
// CHECK:           tt.store {{.*}} : tensor<64x64x!tt.ptr<f16>, #[[NARROW]]>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!tile = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @tasks(%a: !tile, %b: !tile, %p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f16>) {
    ttg.warp_specialize(%a, %b, %p, %q)
    default {
      %zero = arith.constant dense<0.0> : tensor<64x64xf32>
      %d = ttng.warp_group_dot %a, %b, %zero : !tile * !tile -> tensor<64x64xf32>
      ttg.warp_yield
    }
    partition0(%a0: !tile, %b0: !tile, %p0: !tt.ptr<f16>, %q0: !tt.ptr<f16>) num_warps(1) {
      %c64 = arith.constant dense<64> : tensor<1x64xi32>
      %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
      %rows = tt.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %columns = tt.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %lines = arith.muli %columns, %c64 : tensor<1x64xi32>
      %lines2 = tt.broadcast %lines : tensor<1x64xi32> -> tensor<64x64xi32>
      %rows2 = tt.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
      %offsets = arith.addi %lines2, %rows2 : tensor<64x64xi32>
      %from = tt.splat %p0 : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
      %source = tt.addptr %from, %offsets : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
      %to = tt.splat %q0 : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
      %target = tt.addptr %to, %offsets : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
      %values = tt.load %source : tensor<64x64x!tt.ptr<f16>>
      tt.store %target, %values : tensor<64x64x!tt.ptr<f16>>
      ttg.warp_return
    } : (!tile, !tile, !tt.ptr<f16>, !tt.ptr<f16>) -> ()
    tt.return
  }
}

// -----

// What a thread has of an accumulator stays with it where a transposition has put its numbers side by side, four by four,
// and those of a warp's threads one after the other. In the order of the rows they are exchanged.

// CHECK-DAG:   #[[HELD:.*]] = #ttg.linear<{register = {{\[}}[1], [2], [128], [256], [512]], lane = {{\[}}[4], [8], [16], [32], [64]], warp = {{\[}}[1024], [2048]], block = []}>
// CHECK-DAG:   #[[SPREAD:.*]] = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK:       tt.func public @held
// CHECK:         tt.atomic_rmw {{.*}} : (tensor<4096x!tt.ptr<f32>, #[[HELD]]>
// CHECK:         tt.store {{.*}} : tensor<4096x!tt.ptr<f32>, #[[HELD]]>
// CHECK:         tt.store {{.*}} : tensor<4096x!tt.ptr<f32>, #[[SPREAD]]>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!tile = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @held(%a: !tile, %b: !tile, %p: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %true = arith.constant dense<true> : tensor<4096xi1>
    %range = tt.make_range {end = 4096 : i32, start = 0 : i32} : tensor<4096xi32>
    %base = tt.splat %p : !tt.ptr<f32> -> tensor<4096x!tt.ptr<f32>>
    %pointers = tt.addptr %base, %range : tensor<4096x!tt.ptr<f32>>, tensor<4096xi32>
    %d = ttng.warp_group_dot %a, %b, %zero {isAsync = true} : !tile * !tile -> tensor<64x64xf32>
    %w = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : tensor<64x64xf32>
    %apart = tt.reshape %w : tensor<64x64xf32> -> tensor<4x2x8x8x4x2xf32>
    %moved = tt.trans %apart {order = array<i32: 0, 3, 2, 4, 1, 5>} : tensor<4x2x8x8x4x2xf32> -> tensor<4x8x8x4x2x2xf32>
    %flat = tt.reshape %moved : tensor<4x8x8x4x2x2xf32> -> tensor<4096xf32>
    %old = tt.atomic_rmw fadd, relaxed, gpu, %pointers, %flat, %true : (tensor<4096x!tt.ptr<f32>>, tensor<4096xf32>, tensor<4096xi1>) -> tensor<4096xf32>
    tt.store %pointers, %flat : tensor<4096x!tt.ptr<f32>>
    %rows = tt.reshape %w : tensor<64x64xf32> -> tensor<4096xf32>
    tt.store %pointers, %rows : tensor<4096x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// Without matrix instructions stock Triton coalesces: the default layout is left to it.

// CHECK:       #[[LINE:.*]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK:       tt.func public @plain
// CHECK:         tt.load {{.*}} : tensor<1024x!tt.ptr<f16>, #[[LINE]]>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @plain(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %range = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
    %base = tt.splat %p : !tt.ptr<f16> -> tensor<1024x!tt.ptr<f16>>
    %pointers = tt.addptr %base, %range : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
    %values = tt.load %pointers : tensor<1024x!tt.ptr<f16>>
    tt.return
  }
}

// -----

// Pointers that have a layout keep it.

// CHECK:       #[[GIVEN:.*]] = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK:       tt.func public @given
// CHECK-NEXT:    tt.store %p, %x : tensor<64x64x!tt.ptr<f16>, #[[GIVEN]]>
#given = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @given(%p: tensor<64x64x!tt.ptr<f16>, #given>, %x: tensor<64x64xf16, #given>) {
    tt.store %p, %x : tensor<64x64x!tt.ptr<f16>, #given>
    tt.return
  }
}
