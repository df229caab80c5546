// RUN: tlx-opt %s --split-input-file --verify-diagnostics

// CTAs of a cluster, TMA, tensor cores and views of buffers; in each function what comes first is right.

#own = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[1], [2]]}>
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[0], [0]]}>
#pairs = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[0], [1]]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-ctas" = 4 : i32} {
  tt.func @completion(%a: !ttg.memdesc<4xi64, #own, #smem>, %b: !ttg.memdesc<1xi64, #one, #smem>, %c: !ttg.memdesc<1xi64, #pairs, #smem>) {
    ttng.tc_gen5_commit %a : !ttg.memdesc<4xi64, #own, #smem>
    ttng.tc_gen5_commit %b : !ttg.memdesc<1xi64, #one, #smem>
    // expected-error @below {{the CGALayout of the barrier must be [[1], [2]], or zeros, found [[0], [1]]}}
    ttng.tc_gen5_commit %c : !ttg.memdesc<1xi64, #pairs, #smem>
    tt.return
  }
}

// -----

#own = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[1]]}>
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[0]]}>
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, CGALayout = [[1, 0]]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-ctas" = 2 : i32, "ttng.two-ctas" = false} {
  tt.func @copy_barrier(%d: !tt.tensordesc<64x64xf16, #tile>, %x: !ttg.memdesc<64x64xf16, #tile, #smem, mutable>, %a: !ttg.memdesc<2xi64, #own, #smem>, %b: !ttg.memdesc<1xi64, #one, #smem>, %i: i32, %p: i1) {
    ttng.async_tma_copy_global_to_local %d[%i, %i] %x, %a, %p : !tt.tensordesc<64x64xf16, #tile>, !ttg.memdesc<2xi64, #own, #smem> -> !ttg.memdesc<64x64xf16, #tile, #smem, mutable>
    // expected-error @below {{the CGALayout of the barrier must be [[1]], found [[0]]}}
    ttng.async_tma_copy_global_to_local %d[%i, %i] %x, %b, %p : !tt.tensordesc<64x64xf16, #tile>, !ttg.memdesc<1xi64, #one, #smem> -> !ttg.memdesc<64x64xf16, #tile, #smem, mutable>
    tt.return
  }
}

// -----

#own = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[1]]}>
#split = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, CGALayout = [[1, 0]]}>
#same = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, CGALayout = [[0, 0]]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-ctas" = 2 : i32} {
  tt.func @multicast(%d: !tt.tensordesc<64x64xf16>, %x: !ttg.memdesc<64x64xf16, #same, #smem, mutable>, %y: !ttg.memdesc<64x64xf16, #split, #smem, mutable>, %a: !ttg.memdesc<2xi64, #own, #smem>, %i: i32, %p: i1) {
    ttng.async_tma_copy_global_to_local %d[%i, %i] %x, %a, %p {multicast} : !tt.tensordesc<64x64xf16>, !ttg.memdesc<2xi64, #own, #smem> -> !ttg.memdesc<64x64xf16, #same, #smem, mutable>
    // expected-error @below {{a multicast needs CTAs that hold the same block, found the CGALayout [[1, 0]]}}
    ttng.async_tma_copy_global_to_local %d[%i, %i] %y, %a, %p {multicast} : !tt.tensordesc<64x64xf16>, !ttg.memdesc<2xi64, #own, #smem> -> !ttg.memdesc<64x64xf16, #split, #smem, mutable>
    tt.return
  }
}

// -----

#own = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[1]]}>
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[0]]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-ctas" = 2 : i32} {
  tt.func @response(%x: !ttg.memdesc<2xi64, #one, #smem>, %y: !ttg.memdesc<2xi64, #own, #smem>) {
    %0 = ttng.clc_load_result %x : !ttg.memdesc<2xi64, #one, #smem> -> i128
    // expected-error @below {{the CGALayout of a response must be zeros, found [[1]]}}
    %1 = ttng.clc_load_result %y : !ttg.memdesc<2xi64, #own, #smem> -> i128
    tt.return
  }
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#narrow = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @tile(%d: !tt.tensordesc<64x64xf16, #tile>, %x: !ttg.memdesc<64x64xf16, #tile, #smem>, %y: !ttg.memdesc<64x64xf16, #narrow, #smem>, %e: !tt.tensordesc<1x64x64xf16, #tile>, %i: i32) {
  ttng.async_tma_copy_local_to_global %d[%i, %i] %x : !tt.tensordesc<64x64xf16, #tile>, !ttg.memdesc<64x64xf16, #tile, #smem>
  // A buffer may lack leading dimensions of 1.
  ttng.async_tma_copy_local_to_global %e[%i, %i, %i] %x : !tt.tensordesc<1x64x64xf16, #tile>, !ttg.memdesc<64x64xf16, #tile, #smem>
  // expected-error @below {{descriptor and buffer must have one layout}}
  ttng.async_tma_copy_local_to_global %d[%i, %i] %y : !tt.tensordesc<64x64xf16, #tile>, !ttg.memdesc<64x64xf16, #narrow, #smem>
  tt.return
}

// -----

#fours = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [1], warpsPerCTA = [1], order = [0]}>
#ones = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [1], warpsPerCTA = [1], order = [0]}>
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @rows(%d: !tt.tensordesc<1x64xf16>, %x: !ttg.memdesc<32x64xf16, #tile, #smem>, %r: tensor<32xi32, #fours>, %s: tensor<32xi32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>>, %i: i32) {
  ttng.async_tma_scatter %d[%r, %i] %x : !tt.tensordesc<1x64xf16>, tensor<32xi32, #fours>, i32, !ttg.memdesc<32x64xf16, #tile, #smem>
  // expected-error @below {{a thread must hold 4 consecutive row offsets}}
  ttng.async_tma_scatter %d[%s, %i] %x : !tt.tensordesc<1x64xf16>, tensor<32xi32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>>, i32, !ttg.memdesc<32x64xf16, #tile, #smem>
  tt.return
}

// -----

#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
tt.func @reductions(%d: !tt.tensordesc<64x32xf32>, %x: !ttg.memdesc<64x32xf32, #tile, #smem>, %i: i32) {
  ttng.async_tma_reduce add, %d[%i, %i] %x : !tt.tensordesc<64x32xf32>, !ttg.memdesc<64x32xf32, #tile, #smem>
  // expected-error @below {{TMA has no 'max' of f32}}
  ttng.async_tma_reduce max, %d[%i, %i] %x : !tt.tensordesc<64x32xf32>, !ttg.memdesc<64x32xf32, #tile, #smem>
  tt.return
}

// -----

// expected-error @below {{a block of im2col mode has two dimensions, found 3}}
tt.func @im2col(%d: !ttng.tensordesc_im2col<1x64x64xf16>) {
  tt.return
}

// -----

#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @im2col_coordinates(%d: !ttng.tensordesc_im2col<64x64xf16>, %b: !ttg.memdesc<64x64xf16, #tile, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem>, %i: i32, %p: i1) {
  // expected-error @below {{im2col mode takes 3 to 5 coordinates, found 2}}
  ttng.async_tma_copy_global_to_local %d[%i, %i] %b, %bar, %p : !ttng.tensordesc_im2col<64x64xf16>, !ttg.memdesc<1xi64, #bar, #smem> -> !ttg.memdesc<64x64xf16, #tile, #smem, mutable>
  tt.return
}

// -----

builtin.module attributes {"ttg.num-ctas" = 2 : i32} {
  tt.func public @kernel() attributes {noinline = true} {
    ttng.cluster_barrier
    tt.return
  }
  tt.func private @callee() attributes {noinline = true} {
    // expected-error @below {{must be in a kernel or in a function that is inlined}}
    ttng.cluster_barrier
    tt.return
  }
}

// -----

#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[0]]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func @init_in_a_task(%bar: !ttg.memdesc<1xi64, #one, #smem>) {
    ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #one, #smem>
    ttg.warp_specialize()
    default {
      // expected-error @below {{a barrier of several CTAs can't be initialised inside 'ttg.warp_specialize'}}
      ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #one, #smem>
      ttg.warp_yield
    } : () -> ()
    tt.return
  }
}

// -----

#twos = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CGALayout = [[0]]}>
#ones = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CGALayout = [[0]]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[0]]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func @store_width(%x: tensor<256xf16, #twos>, %y: tensor<256xf16, #ones>, %b: !ttg.memdesc<256xf16, #shared, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #shared, #smem>) {
    ttng.async_shared_store %x, %b, %bar : tensor<256xf16, #twos> -> !ttg.memdesc<256xf16, #shared, #smem, mutable>, !ttg.memdesc<1xi64, #shared, #smem>
    // expected-error @below {{each thread must store 32 bits in a row, the layouts allow 16}}
    ttng.async_shared_store %y, %b, %bar : tensor<256xf16, #ones> -> !ttg.memdesc<256xf16, #shared, #smem, mutable>, !ttg.memdesc<1xi64, #shared, #smem>
    tt.return
  }
}

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 3, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @k_width(%a: tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>, %x: tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>>, %b: !ttg.memdesc<64x64xf16, #tile, #smem>, %c: tensor<64x64xf32, #mma>) {
  %0 = ttng.warp_group_dot %a, %b, %c : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * !ttg.memdesc<64x64xf16, #tile, #smem> -> tensor<64x64xf32, #mma>
  // expected-error @below {{operand a in registers needs a kWidth of 2, found 4}}
  %1 = ttng.warp_group_dot %x, %b, %c : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>> * !ttg.memdesc<64x64xf16, #tile, #smem> -> tensor<64x64xf32, #mma>
  tt.return
}

// -----

#rows = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#parts = #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [16, 2], warpsPerCTA = [4, 1], order = [0, 1]}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
tt.func @whole_rows(%t: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory>) {
  %0, %1 = ttng.tmem_load %t {redOp = #ttng.redOp<min>} : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory> -> tensor<128x64xf32, #rows>, tensor<128xf32, #ttg.slice<{dim = 1, parent = #rows}>>
  // expected-error @below {{a reducing load needs whole rows in each thread}}
  %2, %3 = ttng.tmem_load %t {redOp = #ttng.redOp<min>} : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory> -> tensor<128x64xf32, #parts>, tensor<128xf32, #ttg.slice<{dim = 1, parent = #parts}>>
  tt.return
}

// -----

#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#h = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
tt.func @packed(%f: tensor<512xf32, #b>, %h: tensor<512xf16, #b>, %e: tensor<512xf8E4M3FN, #b>, %p: tensor<256xi8, #h>) {
  %0 = ttng.packed_arith add %h, %f : (tensor<512xf16, #b>, tensor<512xf32, #b>) -> tensor<512xf32, #b>
  %1 = ttng.packed_arith mul %p, %e : (tensor<256xi8, #h>, tensor<512xf8E4M3FN, #b>) -> tensor<512xf8E4M3FN, #b>
  // expected-error @below {{there is no 'min' of (f32, f32) that gives f32}}
  %2 = ttng.packed_arith min %f, %f : (tensor<512xf32, #b>, tensor<512xf32, #b>) -> tensor<512xf32, #b>
  tt.return
}

// -----

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
tt.func @packed_lanes(%f: tensor<128xf32, #b>) {
  // expected-error @below {{each thread must hold a multiple of 2 elements of the result, found 1}}
  %0 = ttng.packed_arith add %f, %f : (tensor<128xf32, #b>, tensor<128xf32, #b>) -> tensor<128xf32, #b>
  tt.return
}

// -----

#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
tt.func @packed_pairs(%p: tensor<128xi8, #b>, %e: tensor<512xf8E4M3FN, #b>) {
  // expected-error @below {{pairs of fp4 halve the same dimension}}
  %0 = ttng.packed_arith mul %p, %e : (tensor<128xi8, #b>, tensor<512xf8E4M3FN, #b>) -> tensor<512xf8E4M3FN, #b>
  tt.return
}

// -----

#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#c = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
tt.func @packed_layouts(%f: tensor<512xf32, #b>, %g: tensor<512xf32, #c>) {
  // expected-error @below {{operands must have the layout of the result}}
  %0 = ttng.packed_arith add %f, %g : (tensor<512xf32, #b>, tensor<512xf32, #c>) -> tensor<512xf32, #b>
  tt.return
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
tt.func @reinterpret(%x: !ttg.memdesc<16x16xf16, #shared, #smem, mutable>, %y: !ttg.memdesc<16x8xf16, #shared, #smem, mutable, 16x16>) {
  %0 = ttg.memdesc_reinterpret %x : !ttg.memdesc<16x16xf16, #shared, #smem, mutable> -> !ttg.memdesc<8x16xf32, #shared, #smem, mutable>
  %1 = ttg.memdesc_reinterpret %y : !ttg.memdesc<16x8xf16, #shared, #smem, mutable, 16x16> -> !ttg.memdesc<1x8xf16, #shared, #smem, mutable>
  // expected-error @below {{the result takes 256 bytes, the source has 16 that follow each other}}
  %2 = ttg.memdesc_reinterpret %y : !ttg.memdesc<16x8xf16, #shared, #smem, mutable, 16x16> -> !ttg.memdesc<8x16xf16, #shared, #smem, mutable>
  tt.return
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
tt.func @reinterpret_mutable(%x: !ttg.memdesc<16x16xf16, #shared, #smem>) {
  // expected-error @below {{both are mutable, or neither}}
  %0 = ttg.memdesc_reinterpret %x : !ttg.memdesc<16x16xf16, #shared, #smem> -> !ttg.memdesc<16x16xf16, #shared, #smem, mutable>
  tt.return
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#padded = #ttg.padded_shared<[16:+4] {order = [1, 0], shape = [16, 16]}>
#smem = #ttg.shared_memory
tt.func @reinterpret_padded(%x: !ttg.memdesc<16x16xf16, #padded, #smem>) {
  // expected-error @below {{both have a padded layout, or neither}}
  %0 = ttg.memdesc_reinterpret %x : !ttg.memdesc<16x16xf16, #padded, #smem> -> !ttg.memdesc<16x16xf16, #shared, #smem>
  tt.return
}

// -----

#padded = #ttg.padded_shared<[16:+4] {order = [1, 0], shape = [16, 16]}>
#smem = #ttg.shared_memory
tt.func @padded_parts(%x: !ttg.memdesc<2x16x16xf16, #padded, #smem>) {
  // expected-error @below {{cannot take a part of an array of padded buffers}}
  %0 = ttg.memdesc_subslice %x[0, 8, 0] : !ttg.memdesc<2x16x16xf16, #padded, #smem> -> !ttg.memdesc<2x8x16xf16, #padded, #smem, 2x16x16>
  tt.return
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
tt.func @index(%x: !ttg.memdesc<2x16x16xf16, #shared, #smem>, %i: i32) {
  %0 = ttg.memdesc_index %x[%i] : !ttg.memdesc<2x16x16xf16, #shared, #smem> -> !ttg.memdesc<16x16xf16, #shared, #smem>
  // expected-error @below {{a buffer of an array is an allocation of its own shape}}
  %1 = ttg.memdesc_index %x[%i] : !ttg.memdesc<2x16x16xf16, #shared, #smem> -> !ttg.memdesc<16x16xf16, #shared, #smem, 2x16x16>
  tt.return
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @bits() {
  // expected-error @below {{elements in shared memory are whole bytes, found i1}}
  %0 = ttg.local_alloc : () -> !ttg.memdesc<8xi1, #shared, #smem, mutable>
  tt.return
}

// -----

#a = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
#b = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = true, elementBitWidth = 8}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 256, colStride = 1>
#rows = #ttng.tensor_memory_scales_encoding<>
#columns = #ttng.tensor_memory_scales_encoding<blockRepOrder = kThenMn>
#smem = #ttg.shared_memory
builtin.module attributes {ttg.target = "cuda:107"} {
  tt.func @order_of_scales(%a: !ttg.memdesc<256x64xi8, #a, #smem>, %b: !ttg.memdesc<64x256xi8, #b, #smem>, %d: !ttg.memdesc<256x256xf32, #tmem, #ttng.tensor_memory, mutable>, %r: !ttg.memdesc<256x8xf8E4M3FN, #rows, #ttng.tensor_memory>, %c: !ttg.memdesc<256x8xf8E4M3FN, #columns, #ttng.tensor_memory>, %p: i1) {
    ttng.tc_gen5_mma_scaled %a, %b, %d, %c, %r, %p, %p lhs = e2m1 rhs = e2m1 : !ttg.memdesc<256x64xi8, #a, #smem>, !ttg.memdesc<64x256xi8, #b, #smem>, !ttg.memdesc<256x256xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<256x8xf8E4M3FN, #columns, #ttng.tensor_memory>, !ttg.memdesc<256x8xf8E4M3FN, #rows, #ttng.tensor_memory>
    // expected-error @below {{a_scale must have blockRepOrder = kThenMn, found mnThenK}}
    ttng.tc_gen5_mma_scaled %a, %b, %d, %r, %r, %p, %p lhs = e2m1 rhs = e2m1 : !ttg.memdesc<256x64xi8, #a, #smem>, !ttg.memdesc<64x256xi8, #b, #smem>, !ttg.memdesc<256x256xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<256x8xf8E4M3FN, #rows, #ttng.tensor_memory>, !ttg.memdesc<256x8xf8E4M3FN, #rows, #ttng.tensor_memory>
    tt.return
  }
}
