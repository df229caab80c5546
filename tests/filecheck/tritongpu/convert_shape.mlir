// RUN: tlx-opt %s -p convert-triton-to-tritongpu --split-input-file | filecheck %s

// What keeps every element in its register has a layout that follows from the source's: here 4 warps hold 128
// elements, and lanes have the low bits. After the reshape they are the columns.

// CHECK:       #[[LINE:.*]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NEXT:  #[[MATRIX:.*]] = #ttg.linear<{register = [], lane = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = {{\[\[}}1, 0], [2, 0]], block = []}>
// CHECK-NEXT:  #[[TURNED:.*]] = #ttg.linear<{register = [], lane = {{\[\[}}1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = {{\[\[}}0, 1], [0, 2]], block = []}>
// CHECK:       tt.func public @reshape_and_trans
// CHECK:         %matrix = tt.reshape %line : tensor<128xi32, #[[LINE]]> -> tensor<4x32xi32, #[[MATRIX]]>
// CHECK-NEXT:    %turned = tt.trans %matrix {order = array<i32: 1, 0>} : tensor<4x32xi32, #[[MATRIX]]> -> tensor<32x4xi32, #[[TURNED]]>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @reshape_and_trans() {
    %line = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %matrix = tt.reshape %line : tensor<128xi32> -> tensor<4x32xi32>
    %turned = tt.trans %matrix {order = array<i32: 1, 0>} : tensor<4x32xi32> -> tensor<32x4xi32>
    tt.return
  }
}

// -----

// Where the order of elements is free, the result has the default layout.

// CHECK:       tt.func public @free_order
// CHECK:         tt.reshape %line allow_reorder : tensor<128xi32, #blocked> -> tensor<4x32xi32, #blocked{{[0-9]*}}>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @free_order() {
    %line = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %matrix = tt.reshape %line allow_reorder : tensor<128xi32> -> tensor<4x32xi32>
    tt.return
  }
}

// -----

// But a thread keeps as many elements as it has: here 4 warps hold 64 elements twice, in pairs.

// CHECK:       tt.func public @free_order_of_pairs
// CHECK:         %both = tt.reshape %pairs allow_reorder : tensor<32x2xi32, #[[PAIRS:.*]]> -> tensor<64xi32, #[[FREE:linear[0-9]*]]>
// CHECK:         ttg.convert_layout %both : tensor<64xi32, #[[FREE]]> -> tensor<64xi32, #blocked>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @free_order_of_pairs() {
    %line = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %pairs = tt.join %line, %line : tensor<32xi32> -> tensor<32x2xi32>
    %both = tt.reshape %pairs allow_reorder : tensor<32x2xi32> -> tensor<64xi32>
    %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %sum = arith.addi %both, %range : tensor<64xi32>
    tt.return
  }
}

// -----

// Pairs lie side by side in a thread: their index is the first register bit.

// CHECK:       #[[LINE:.*]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NEXT:  #[[PAIRS:.*]] = #ttg.linear<{register = {{\[\[}}0, 1]], lane = {{\[\[}}1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = {{\[\[}}32, 0], [64, 0]], block = []}>
// CHECK:       tt.func public @pairs
// CHECK:         %pairs = tt.join %line, %line : tensor<128xi32, #[[LINE]]> -> tensor<128x2xi32, #[[PAIRS]]>
// CHECK-NEXT:    %first, %second = tt.split %pairs : tensor<128x2xi32, #[[PAIRS]]> -> tensor<128xi32, #[[LINE]]>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @pairs() {
    %line = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %pairs = tt.join %line, %line : tensor<128xi32> -> tensor<128x2xi32>
    %first, %second = tt.split %pairs : tensor<128x2xi32> -> tensor<128xi32>
    tt.return
  }
}

// -----

// One vector after the other: pairs, turned over, in a row.

// CHECK:       tt.func public @cat
// CHECK:         %[[PAIRS:.*]] = tt.join %line, %line : {{.*}} -> tensor<128x2xi32, #[[L:.*]]>
// CHECK-NEXT:    %[[ROWS:.*]] = tt.trans %[[PAIRS]] {order = array<i32: 1, 0>} : {{.*}} -> tensor<2x128xi32, #{{.*}}>
// CHECK-NEXT:    tt.reshape %[[ROWS]] : {{.*}} -> tensor<256xi32, #{{.*}}>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @cat() {
    %line = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %both = tt.cat %line, %line : tensor<128xi32> -> tensor<256xi32>
    tt.return
  }
}

// -----

// A dot takes operands in the layouts that belong to its result's; the conversion of A is needed once.

// CHECK:       tt.func public @dot
// CHECK:         %[[A:.*]] = ttg.convert_layout %x : {{.*}} -> tensor<32x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT:    %[[B:.*]] = ttg.convert_layout %x : {{.*}} -> tensor<32x32xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT:    tt.dot %[[A]], %[[B]], %zero
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @dot() {
    %half = arith.constant 1.0 : f16
    %x = tt.splat %half : f16 -> tensor<32x32xf16>
    %zero = arith.constant dense<0.0> : tensor<32x32xf32>
    %d = tt.dot %x, %x, %zero : tensor<32x32xf16> * tensor<32x32xf16> -> tensor<32x32xf32>
    tt.return
  }
}
