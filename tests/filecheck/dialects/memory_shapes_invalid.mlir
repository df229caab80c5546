// RUN: tlx-opt %s --split-input-file --verify-diagnostics

func.func @rows_with_gaps(%s: memref<8x4xf32, strided<[16, 1]>>) {
  // expected-error @below {{the dimensions of a group have no stride in common}}
  %0 = memref.collapse_shape %s [[0, 1]] : memref<8x4xf32, strided<[16, 1]>> into memref<32xf32, strided<[1]>>
  func.return
}

// -----

func.func @other_size(%m: memref<32xf32>) {
  // expected-error @below {{32 elements are no group of sizes [4, 4]}}
  %0 = memref.expand_shape %m [[0, 1]] output_shape [4, 4] : memref<32xf32> into memref<4x4xf32>
  func.return
}

// -----

func.func @other_strides(%m: memref<32xf32, strided<[2]>>) {
  // expected-error @below {{the result must be memref<4x8xf32, strided<[16, 2]>>, found memref<4x8xf32, strided<[8, 1]>>}}
  %0 = memref.expand_shape %m [[0, 1]] output_shape [4, 8] : memref<32xf32, strided<[2]>> into memref<4x8xf32, strided<[8, 1]>>
  func.return
}

// -----

func.func @empty_group(%m: memref<8x4xf32>) {
  // expected-error @below {{a group has a dimension at least}}
  %0 = memref.collapse_shape %m [[0, 1], []] : memref<8x4xf32> into memref<32x1xf32>
  func.return
}

// -----

func.func @other_groups(%m: memref<8x4xf32>) {
  // expected-error @below {{the groups [[0]] do not make up memref<32xf32> of memref<8x4xf32>}}
  %0 = memref.collapse_shape %m [[0]] : memref<8x4xf32> into memref<32xf32>
  func.return
}
