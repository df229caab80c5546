// RUN: tlx-opt %s --split-input-file --verify-diagnostics

// Layouts that follow from others, and what runs the code; in each function the first operation is right.

#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#pairs = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#apart = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [16, 2], warpsPerCTA = [4, 1], order = [1, 0]}>
tt.func @join(%x: tensor<128xf32, #line>) {
  %0 = tt.join %x, %x : tensor<128xf32, #line> -> tensor<128x2xf32, #pairs>
  // expected-error @below {{each thread must hold both elements of a pair, in registers}}
  %1 = tt.join %x, %x : tensor<128xf32, #line> -> tensor<128x2xf32, #apart>
  tt.return
}

// -----

#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
tt.func @join_without_layout(%x: tensor<128xf32, #line>) {
  // expected-error @below {{both tensors need a layout, or neither}}
  %0 = tt.join %x, %x : tensor<128xf32, #line> -> tensor<128x2xf32>
  tt.return
}

// -----

#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#twos = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#pairs = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
tt.func @split(%x: tensor<256x2xf32, #pairs>) {
  %a, %b = tt.split %x : tensor<256x2xf32, #pairs> -> tensor<256xf32, #line>
  // expected-error @below {{the layout of a half is not that of the pairs without the last dimension}}
  %c, %d = tt.split %x : tensor<256x2xf32, #pairs> -> tensor<256xf32, #twos>
  tt.return
}

// -----

#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
tt.func @trans(%x: tensor<32x64xf32, #rows>) {
  %0 = tt.trans %x {order = array<i32: 1, 0>} : tensor<32x64xf32, #rows> -> tensor<64x32xf32, #columns>
  // expected-error @below {{the layout of the result is not that of the source, transposed}}
  %1 = tt.trans %x {order = array<i32: 1, 0>} : tensor<32x64xf32, #rows> -> tensor<64x32xf32, #rows>
  tt.return
}

// -----

#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#column = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#row = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
tt.func @reshape(%x: tensor<128xf32, #line>) {
  %0 = tt.reshape %x : tensor<128xf32, #line> -> tensor<128x1xf32, #column>
  %1 = tt.reshape %x allow_reorder : tensor<128xf32, #line> -> tensor<2x64xf32, #row>
  // expected-error @below {{the layout of the result is not that of the source, reshaped}}
  %2 = tt.reshape %x : tensor<128xf32, #line> -> tensor<2x64xf32, #row>
  tt.return
}

// -----

#plane = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
tt.func @expand(%x: tensor<64xf32, #ttg.slice<{dim = 0, parent = #plane}>>, %y: tensor<64xf32, #ttg.slice<{dim = 1, parent = #plane}>>) {
  %0 = tt.expand_dims %x {axis = 0 : i32} : tensor<64xf32, #ttg.slice<{dim = 0, parent = #plane}>> -> tensor<1x64xf32, #plane>
  // expected-error @below {{the layout without dimension 0 must be a slice of the one with it}}
  %1 = tt.expand_dims %y {axis = 0 : i32} : tensor<64xf32, #ttg.slice<{dim = 1, parent = #plane}>> -> tensor<1x64xf32, #plane>
  tt.return
}

// -----

#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#twos = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
tt.func @gather(%x: tensor<128xf32>, %i: tensor<128xi32, #line>) {
  // expected-error @below {{the result must have the layout of the indices}}
  %0 = tt.gather %x[%i] {axis = 0 : i32} : (tensor<128xf32>, tensor<128xi32, #line>) -> tensor<128xf32, #twos>
  tt.return
}

// -----

#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#wide = #ttg.linear<{register = [[1], [128]], lane = [[0], [2], [4], [8], [16]], warp = [[32], [64]], block = []}>
tt.func @cat(%x: tensor<128xf32, #line>) {
  %0 = tt.cat %x, %x : tensor<128xf32, #line> -> tensor<256xf32, #line>
  // expected-error @below {{the result has 4 elements per thread, the operands provide 2}}
  %1 = tt.cat %x, %x : tensor<128xf32, #line> -> tensor<256xf32, #wide>
  tt.return
}

// -----

#half = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#whole = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
tt.func @fp4(%x: tensor<32x16xi8, #half>) {
  %0 = ttg.fp4_to_fp %x {axis = 1 : i32} : tensor<32x16xi8, #half> -> tensor<32x32xf16, #whole>
  // expected-error @below {{the layout of the result is not that of the source, with both elements of a pair in one thread}}
  %1 = ttg.fp4_to_fp %x {axis = 1 : i32} : tensor<32x16xi8, #half> -> tensor<32x32xf16, #half>
  tt.return
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func @buffer_layout(%x: f32) {
    // expected-error @below {{is one of buffers, a tensor needs one of registers}}
    %0 = tt.splat %x : f32 -> tensor<64xf32, #shared>
    tt.return
  }
}

// -----

#half = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [16], warpsPerCTA = [4], order = [0]}>
builtin.module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @threads(%x: f32) {
    // expected-error @below {{is for warps of 16 threads, they have 32 here}}
    %0 = tt.splat %x : f32 -> tensor<64xf32, #half>
    tt.return
  }
}

// -----

#alone = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#both = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CGALayout = [[1]]}>
builtin.module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 2 : i32} {
  tt.func @ctas(%x: f32) {
    %0 = tt.splat %x : f32 -> tensor<256xf32, #both>
    // expected-error @below {{is for 1 CTAs, 'ttg.num-ctas' is 2}}
    %1 = tt.splat %x : f32 -> tensor<256xf32, #alone>
    tt.return
  }
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 2 : i32} {
  tt.func @ctas_of_buffers() {
    // expected-error @below {{is for 1 CTAs, 'ttg.num-ctas' is 2}}
    %0 = ttg.local_alloc : () -> !ttg.memdesc<64xf32, #shared, #smem, mutable>
    tt.return
  }
}

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 2, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#b1 = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>
tt.func @dot_widths(%x: tensor<64x16xf16, #a>, %y: tensor<16x16xf16, #b>, %z: tensor<16x16xf16, #b1>, %c: tensor<64x16xf32, #mma>) {
  %0 = tt.dot %x, %y, %c : tensor<64x16xf16, #a> * tensor<16x16xf16, #b> -> tensor<64x16xf32, #mma>
  // expected-error @below {{both operands need one kWidth, found 2 and 1}}
  %1 = tt.dot %x, %z, %c : tensor<64x16xf16, #a> * tensor<16x16xf16, #b1> -> tensor<64x16xf32, #mma>
  tt.return
}

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 2, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
tt.func @dot_operand(%x: tensor<64x16xf16>, %y: tensor<16x16xf16, #b>, %c: tensor<64x16xf32, #mma>) {
  // expected-error @below {{both operands are laid out for a dot, or neither}}
  %0 = tt.dot %x, %y, %c : tensor<64x16xf16> * tensor<16x16xf16, #b> -> tensor<64x16xf32, #mma>
  tt.return
}

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 2, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
tt.func @dot_accumulator(%x: tensor<64x16xf16, #a>, %y: tensor<16x16xf16, #b>, %c: tensor<64x16xf32>) {
  // expected-error @below {{the accumulator needs a layout, as the operands have one}}
  %0 = tt.dot %x, %y, %c : tensor<64x16xf16, #a> * tensor<16x16xf16, #b> -> tensor<64x16xf32>
  tt.return
}

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 2, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
tt.func @dot_instructions(%x: tensor<64x16xf16, #a>, %y: tensor<16x16xf16, #b>, %c: tensor<64x16xf32, #blocked>) {
  // expected-error @below {{operands and accumulator need layouts of one matrix instruction}}
  %0 = tt.dot %x, %y, %c : tensor<64x16xf16, #a> * tensor<16x16xf16, #b> -> tensor<64x16xf32, #blocked>
  tt.return
}

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 2, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>
tt.func @dot_f32(%x: tensor<64x16xf32, #a>, %y: tensor<16x16xf32, #b>, %c: tensor<64x16xf32, #mma>) {
  %0 = tt.dot %x, %y, %c, inputPrecision = tf32 : tensor<64x16xf32, #a> * tensor<16x16xf32, #b> -> tensor<64x16xf32, #mma>
  // expected-error @below {{the matrix instruction multiplies f32 with inputPrecision = tf32 only}}
  %1 = tt.dot %x, %y, %c : tensor<64x16xf32, #a> * tensor<16x16xf32, #b> -> tensor<64x16xf32, #mma>
  tt.return
}

// -----

tt.func @scale_groups(%a: tensor<64x64xf8E4M3FN>, %b: tensor<64x64xf8E4M3FN>, %s: tensor<64x2xi8>, %t: tensor<64x8xi8>, %c: tensor<64x64xf32>) {
  %0 = tt.dot_scaled %a scale %s, %b scale %s, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<64x64xf8E4M3FN>, tensor<64x2xi8> * tensor<64x64xf8E4M3FN>, tensor<64x2xi8> -> tensor<64x64xf32>
  // expected-error @below {{a scale must be that of 16 or 32 elements: tensor<64x8xi8> for 64 elements}}
  %1 = tt.dot_scaled %a scale %t, %b scale %s, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<64x64xf8E4M3FN>, tensor<64x8xi8> * tensor<64x64xf8E4M3FN>, tensor<64x2xi8> -> tensor<64x64xf32>
  tt.return
}

// -----

tt.func @packed_asm(%x: tensor<64xi32>, %y: tensor<2xi32>) {
  %0 = tt.elementwise_inline_asm "" {constraints = "=r,r", packed_element = 4 : i32, pure = true} %x : tensor<64xi32> -> tensor<64xi32>
  // expected-error @below {{the elements must be a multiple of packed_element, found 2 and 4}}
  %1 = tt.elementwise_inline_asm "" {constraints = "=r,r", packed_element = 4 : i32, pure = true} %y : tensor<2xi32> -> tensor<2xi32>
  tt.return
}

// -----

tt.func @store_of_elements(%p: tensor<64x!tt.ptr<i32>>, %x: tensor<64xi32>) {
  tt.store %p, %x : tensor<64x!tt.ptr<i32>>
  %0 = "tt.map_elementwise"(%p, %x) <{pack = 1 : i32}> ({
  ^bb0(%q: !tt.ptr<i32>, %y: i32):
    // expected-error @below {{a 'tt.map_elementwise' can't store}}
    tt.store %q, %y : !tt.ptr<i32>
    tt.map_elementwise.return %y : i32
  }) : (tensor<64x!tt.ptr<i32>>, tensor<64xi32>) -> tensor<64xi32>
  tt.return
}
