// RUN: tlx-opt %s -p tlx-propagate-layout --split-input-file | filecheck %s

// A pinned layout goes on through arithmetic, whose other operands are converted, a reduction, an expansion and a
// broadcast, until a release without pin; a store takes the tensor without it.

// CHECK-LABEL: @arithmetic
// CHECK-NEXT:    [[X:%.*]] = ttg.convert_layout %x : tensor<128x64xf32> -> tensor<128x64xf32, #[[L:.*]]>
// CHECK-NEXT:    %one = arith.constant dense<1.000000e+00> : tensor<128x64xf32>
// CHECK-NEXT:    [[ONE:%.*]] = arith.constant dense<1.000000e+00> : tensor<128x64xf32, #[[L]]>
// CHECK-NEXT:    %a = arith.addf [[X]], [[ONE]] : tensor<128x64xf32, #[[L]]>
// CHECK-NEXT:    [[Y:%.*]] = ttg.convert_layout %y : tensor<128x64xf32> -> tensor<128x64xf32, #[[L]]>
// CHECK-NEXT:    %m = arith.mulf [[Y]], %a : tensor<128x64xf32, #[[L]]>
// CHECK-NEXT:    [[FREE:%.*]] = ttg.convert_layout %m : tensor<128x64xf32, #[[L]]> -> tensor<128x64xf32>
// CHECK:         %s = "tt.reduce"(%m)
// CHECK:         -> tensor<128xf32, #ttg.slice<{dim = 1, parent = #[[L]]}>>
// CHECK-NEXT:    %e = tt.expand_dims %s {axis = 1 : i32} : {{.*}} -> tensor<128x1xf32, #[[L]]>
// CHECK-NEXT:    %b = tt.broadcast %e : tensor<128x1xf32, #[[L]]> -> tensor<128x64xf32, #[[L]]>
// CHECK-NEXT:    %d = arith.subf %m, %b : tensor<128x64xf32, #[[L]]>
// CHECK-NEXT:    tt.store %p, [[FREE]]
// CHECK-NEXT:    ttg.local_store %d, %buf : tensor<128x64xf32, #[[L]]>
// CHECK-NEXT:    %f = ttg.convert_layout %d : tensor<128x64xf32, #[[L]]> -> tensor<128x64xf32>
// CHECK-NEXT:    arith.addf %f, %y : tensor<128x64xf32>
// CHECK-NEXT:    tt.return
#l = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
tt.func @arithmetic(%x: tensor<128x64xf32>, %y: tensor<128x64xf32>, %p: tensor<128x64x!tt.ptr<f32>>, %buf: !ttg.memdesc<128x64xf32, #shared, #smem, mutable>) {
  %r = tlx.require_layout %x {pin} : tensor<128x64xf32> -> tensor<128x64xf32, #l>
  %0 = tlx.release_layout %r {pin} : tensor<128x64xf32, #l> -> tensor<128x64xf32>
  %one = arith.constant dense<1.0> : tensor<128x64xf32>
  %a = arith.addf %0, %one : tensor<128x64xf32>
  %m = arith.mulf %y, %a : tensor<128x64xf32>
  %s = "tt.reduce"(%m) <{axis = 1 : i32}> ({
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    tt.reduce.return %w : f32
  }) : (tensor<128x64xf32>) -> tensor<128xf32>
  %e = tt.expand_dims %s {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
  %b = tt.broadcast %e : tensor<128x1xf32> -> tensor<128x64xf32>
  %d = arith.subf %m, %b : tensor<128x64xf32>
  tt.store %p, %m : tensor<128x64x!tt.ptr<f32>>
  ttg.local_store %d, %buf : tensor<128x64xf32> -> !ttg.memdesc<128x64xf32, #shared, #smem, mutable>
  %f0 = tlx.require_layout %d : tensor<128x64xf32> -> tensor<128x64xf32, #l>
  %f = tlx.release_layout %f0 : tensor<128x64xf32, #l> -> tensor<128x64xf32>
  %z = arith.addf %f, %y : tensor<128x64xf32>
  tt.return
}

// -----

// Round a loop and out of a branch: what comes in without the layout is converted; a transposition turns it.

// CHECK-LABEL: @control
// CHECK-NEXT:    [[X:%.*]] = ttg.convert_layout %x : tensor<128x64xf32> -> tensor<128x64xf32, #[[L:.*]]>
// CHECK-NEXT:    [[INIT:%.*]] = ttg.convert_layout %x : tensor<128x64xf32> -> tensor<128x64xf32, #[[L]]>
// CHECK-NEXT:    %loop = scf.for {{.*}} iter_args(%v = [[INIT]]) -> (tensor<128x64xf32, #[[L]]>)
// CHECK-NEXT:      %p = arith.addf %v, [[X]] : tensor<128x64xf32, #[[L]]>
// CHECK-NEXT:      scf.yield %p : tensor<128x64xf32, #[[L]]>
// CHECK:         %sel = scf.if %c -> (tensor<128x64xf32, #[[L]]>)
// CHECK-NEXT:      scf.yield %loop
// CHECK:           [[Y:%.*]] = ttg.convert_layout %y : tensor<128x64xf32> -> tensor<128x64xf32, #[[L]]>
// CHECK-NEXT:      scf.yield [[Y]]
// CHECK:         %t = tt.trans %sel {{.*}} -> tensor<64x128xf32, #linear>
// CHECK-NEXT:    [[BACK:%.*]] = ttg.convert_layout %t : {{.*}} -> tensor<64x128xf32>
// CHECK-NEXT:    tt.return [[BACK]] : tensor<64x128xf32>
#l = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
tt.func @control(%x: tensor<128x64xf32>, %y: tensor<128x64xf32>, %n: i32, %c: i1) -> tensor<64x128xf32> {
  %r = tlx.require_layout %x {pin} : tensor<128x64xf32> -> tensor<128x64xf32, #l>
  %0 = tlx.release_layout %r {pin} : tensor<128x64xf32, #l> -> tensor<128x64xf32>
  %loop = scf.for %i = %n to %n step %n iter_args(%v = %x) -> (tensor<128x64xf32>) : i32 {
    %p = arith.addf %v, %0 : tensor<128x64xf32>
    scf.yield %p : tensor<128x64xf32>
  }
  %sel = scf.if %c -> (tensor<128x64xf32>) {
    scf.yield %loop : tensor<128x64xf32>
  } else {
    scf.yield %y : tensor<128x64xf32>
  }
  %t = tt.trans %sel {order = array<i32: 1, 0>} : tensor<128x64xf32> -> tensor<64x128xf32>
  tt.return %t : tensor<64x128xf32>
}

// -----

// The accumulator of a dot in flight keeps the layout of the instruction: nothing is put between the dots.

// CHECK-LABEL: @accumulator
// CHECK:         %loop = scf.for {{.*}} iter_args(%v = %{{.*}}) -> (tensor<64x64xf32>)
// CHECK-NEXT:      %d = ttng.warp_group_dot %a, %a, %v {{.*}} -> tensor<64x64xf32>
// CHECK-NEXT:      scf.yield %d : tensor<64x64xf32>
#l = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @accumulator(%x: tensor<64x64xf32>, %a: !ttg.memdesc<64x64xf16, #tile, #smem, mutable>, %n: i32) {
  %r = tlx.require_layout %x {pin} : tensor<64x64xf32> -> tensor<64x64xf32, #l>
  %0 = tlx.release_layout %r {pin} : tensor<64x64xf32, #l> -> tensor<64x64xf32>
  %loop = scf.for %i = %n to %n step %n iter_args(%v = %0) -> (tensor<64x64xf32>) : i32 {
    %d = ttng.warp_group_dot %a, %a, %v {isAsync = true} : !ttg.memdesc<64x64xf16, #tile, #smem, mutable> * !ttg.memdesc<64x64xf16, #tile, #smem, mutable> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tt.return
}

// -----

// Shared memory is loaded straight into the layout; what is stored only to be loaded again is converted in registers,
// unless another operation takes the buffer.

// CHECK-LABEL: @loads
// CHECK-NEXT:    %v = ttg.local_load %buf : {{.*}} -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT:    [[W:%.*]] = ttg.convert_layout %x : tensor<64x64xf16> -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
// CHECK-NEXT:    tt.dot %v, [[W]], %c
// CHECK-NEXT:    %kept = ttg.local_alloc %x
// CHECK-NEXT:    ttg.local_load %kept
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
tt.func @loads(%buf: !ttg.memdesc<64x64xf16, #tile, #smem, mutable>, %x: tensor<64x64xf16>, %c: tensor<64x64xf32, #mma>, %ptr: !tt.ptr<f16>, %n: i32) {
  %v = ttg.local_load %buf : !ttg.memdesc<64x64xf16, #tile, #smem, mutable> -> tensor<64x64xf16>
  %a = tlx.require_layout %v : tensor<64x64xf16> -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
  %s = ttg.local_alloc %x : (tensor<64x64xf16>) -> !ttg.memdesc<64x64xf16, #tile, #smem>
  %w = ttg.local_load %s : !ttg.memdesc<64x64xf16, #tile, #smem> -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
  %0 = tt.dot %a, %w, %c : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x64xf32, #mma>
  %kept = ttg.local_alloc %x : (tensor<64x64xf16>) -> !ttg.memdesc<64x64xf16, #tile, #smem>
  %u = ttg.local_load %kept : !ttg.memdesc<64x64xf16, #tile, #smem> -> tensor<64x64xf16>
  tlx.async_bulk_store %kept, %ptr, %n : !ttg.memdesc<64x64xf16, #tile, #smem> -> !tt.ptr<f16>
  tt.return
}

// -----

// Through pointers that are computed from a pinned block: what is loaded has its layout, and what is stored gets it.

// CHECK-LABEL: @accesses
// CHECK:         %at = tt.addptr {{.*}} : tensor<128x64x!tt.ptr<f32>, #[[L:.*]]>, tensor<128x64xi32, #[[L]]>
// CHECK-NEXT:    [[MASK:%.*]] = ttg.convert_layout %mask : tensor<128x64xi1> -> tensor<128x64xi1, #[[L]]>
// CHECK-NEXT:    %v = tt.load %at, [[MASK]] : tensor<128x64x!tt.ptr<f32>, #[[L]]>
// CHECK-NEXT:    ttg.local_store %v, %buf : tensor<128x64xf32, #[[L]]>
// CHECK-NEXT:    [[X:%.*]] = ttg.convert_layout %x : tensor<128x64xf32> -> tensor<128x64xf32, #[[L]]>
// CHECK-NEXT:    tt.store %at, [[X]] : tensor<128x64x!tt.ptr<f32>, #[[L]]>
#l = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
tt.func @accesses(%o: tensor<128x64xi32>, %p: tensor<128x64x!tt.ptr<f32>>, %mask: tensor<128x64xi1>, %x: tensor<128x64xf32>, %buf: !ttg.memdesc<128x64xf32, #shared, #smem, mutable>) {
  %r = tlx.require_layout %o {pin} : tensor<128x64xi32> -> tensor<128x64xi32, #l>
  %0 = tlx.release_layout %r {pin} : tensor<128x64xi32, #l> -> tensor<128x64xi32>
  %at = tt.addptr %p, %0 : tensor<128x64x!tt.ptr<f32>>, tensor<128x64xi32>
  %v = tt.load %at, %mask : tensor<128x64x!tt.ptr<f32>>
  ttg.local_store %v, %buf : tensor<128x64xf32> -> !ttg.memdesc<128x64xf32, #shared, #smem, mutable>
  tt.store %at, %x : tensor<128x64x!tt.ptr<f32>>
  tt.return
}
