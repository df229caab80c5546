// RUN: tlx-opt %s | filecheck %s
// RUN: TLX_ROUNDTRIP

// CHECK-LABEL: @shapes
func.func @shapes(%m: memref<8x4xf32>, %s: memref<8x4xf32, strided<[16, 1], offset: ?>>, %o: memref<1x1xf32>) {
  // CHECK-NEXT: %flat = memref.collapse_shape %m {{\[}}[0, 1]] : memref<8x4xf32> into memref<32xf32>
  %flat = memref.collapse_shape %m [[0, 1]] : memref<8x4xf32> into memref<32xf32>
  // CHECK-NEXT: %box = memref.expand_shape %s {{\[}}[0, 1], [2]] output_shape [2, 4, 4] : memref<8x4xf32, strided<[16, 1], offset: ?>> into memref<2x4x4xf32, strided<[64, 16, 1], offset: ?>>
  %box = memref.expand_shape %s [[0, 1], [2]] output_shape [2, 4, 4] : memref<8x4xf32, strided<[16, 1], offset: ?>> into memref<2x4x4xf32, strided<[64, 16, 1], offset: ?>>
  // CHECK-NEXT: %one = memref.collapse_shape %o [] : memref<1x1xf32> into memref<f32>
  %one = memref.collapse_shape %o [] : memref<1x1xf32> into memref<f32>
  func.return
}
