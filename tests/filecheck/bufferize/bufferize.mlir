// RUN: tlx-opt %s -p linalg-bufferize | filecheck %s

#same = affine_map<(i) -> (i)>
#ij = affine_map<(i, j) -> (i, j)>
#ji = affine_map<(i, j) -> (j, i)>

// What was loaded is memory of its own: the result takes its place when it is not used any more.
// CHECK-LABEL: @in_place
// CHECK: %m = memref.alloc() : memref<64xf32>
// CHECK-NEXT: memref.copy %x, %m
// CHECK-NEXT: linalg.generic {{.*}} ins(%m : memref<64xf32>) outs(%m : memref<64xf32>) {
// CHECK: memref.copy %m, %y
// CHECK-NEXT: func.return
func.func @in_place(%x: memref<64xf32>, %y: memref<64xf32>) {
  %m = memref.alloc() : memref<64xf32>
  memref.copy %x, %m : memref<64xf32> to memref<64xf32>
  %a = bufferization.to_tensor %m restrict writable : memref<64xf32> to tensor<64xf32>
  %e = tensor.empty() : tensor<64xf32>
  %b = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel"]} ins(%a : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %o: f32):
    %r = arith.negf %p : f32
    linalg.yield %r : f32
  } -> tensor<64xf32>
  func.call @other() : () -> ()
  bufferization.materialize_in_destination %b in writable %y : (tensor<64xf32>, memref<64xf32>) -> ()
  func.return
}
func.func private @other() -> ()

// It is used after: the result has memory of its own. The second one is stored at once, and so is made there.
// CHECK-LABEL: @used_after
// CHECK: %b = memref.alloc() : memref<64xf32>
// CHECK-NEXT: linalg.generic {{.*}} ins(%m : memref<64xf32>) outs(%b : memref<64xf32>) {
// CHECK: linalg.generic {{.*}} ins(%m, %b : memref<64xf32>, memref<64xf32>) outs(%y : memref<64xf32>) {
// CHECK-NOT: memref.copy
// CHECK: func.return
func.func @used_after(%a: memref<64xf32>, %y: memref<64xf32>) {
  %m = memref.alloc() : memref<64xf32>
  memref.copy %a, %m : memref<64xf32> to memref<64xf32>
  %x = bufferization.to_tensor %m restrict writable : memref<64xf32> to tensor<64xf32>
  %e = tensor.empty() : tensor<64xf32>
  %b = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel"]} ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %o: f32):
    %r = arith.negf %p : f32
    linalg.yield %r : f32
  } -> tensor<64xf32>
  %f = tensor.empty() : tensor<64xf32>
  %c = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel"]} ins(%x, %b : tensor<64xf32>, tensor<64xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %r = arith.addf %p, %q : f32
    linalg.yield %r : f32
  } -> tensor<64xf32>
  bufferization.materialize_in_destination %c in writable %y : (tensor<64xf32>, memref<64xf32>) -> ()
  func.return
}

// A transposed operand is read elsewhere than the result is written.
// CHECK-LABEL: @transposed
// CHECK: linalg.generic {{.*}} ins([[A:%.+]] : memref<8x8xf32>) outs([[B:%.+]] : memref<8x8xf32>) {
// CHECK: linalg.matmul ins([[B]], [[B]] : {{.*}}) outs([[A]] : memref<8x8xf32>)
func.func @transposed(%x: memref<8x8xf32>) -> tensor<8x8xf32> {
  %0 = bufferization.to_tensor %x : memref<8x8xf32> to tensor<8x8xf32>
  %e = tensor.empty() : tensor<8x8xf32>
  %1 = linalg.generic {indexing_maps = [#ji, #ij], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %r = arith.negf %p : f32
    linalg.yield %r : f32
  } -> tensor<8x8xf32>
  %2 = linalg.matmul ins(%1, %1 : tensor<8x8xf32>, tensor<8x8xf32>) outs(%0 : tensor<8x8xf32>) -> tensor<8x8xf32>
  func.return %2 : tensor<8x8xf32>
}

// An accumulator that is used after is copied, one that ends there is overwritten.
// CHECK-LABEL: @accumulators
// CHECK-SAME: %x: memref<8x8xf32>
// CHECK: linalg.fill {{.*}} outs([[Z:%.+]] : memref<8x8xf32>)
// CHECK: memref.copy [[Z]], [[C:%.+]] :
// CHECK-NEXT: linalg.matmul ins(%x, %x : {{.*}}) outs([[C]] : memref<8x8xf32>)
// CHECK-NEXT: linalg.matmul ins(%x, [[C]] : {{.*}}) outs([[Z]] : memref<8x8xf32>)
func.func @accumulators(%x: tensor<8x8xf32>, %m: f32, %y: memref<8x8xf32>) {
  %e = tensor.empty() : tensor<8x8xf32>
  %0 = linalg.fill ins(%m : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = linalg.matmul ins(%x, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%0 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = linalg.matmul ins(%x, %1 : tensor<8x8xf32>, tensor<8x8xf32>) outs(%0 : tensor<8x8xf32>) -> tensor<8x8xf32>
  bufferization.materialize_in_destination %2 in writable %y : (tensor<8x8xf32>, memref<8x8xf32>) -> ()
  func.return
}

// Boxes and reshapes are views; what is inserted is copied to a view, of other memory if it is a view itself.
// CHECK-LABEL: @views
// CHECK: [[R:%.+]] = memref.subview [[A:%.+]][%i, 0] [1, 8] [1, 1] : memref<8x8xf32> to memref<8xf32, strided<[1], offset: ?>>
// CHECK: memref.copy [[A]], [[B:%.+]] : memref<8x8xf32> to memref<8x8xf32>
// CHECK-NEXT: [[T:%.+]] = memref.subview [[B]][0, 0] [8, 1] [1, 1] : memref<8x8xf32> to memref<8xf32, strided<[8]>>
// CHECK: memref.copy [[R]], [[T]]
// CHECK: memref.collapse_shape [[B]] {{\[}}[0, 1]] : memref<8x8xf32> into memref<64xf32>
// CHECK: memref.expand_shape {{.*}} output_shape [4, 16] : memref<64xf32> into memref<4x16xf32>
// CHECK: memref.load {{.*}}[%i, %i] : memref<4x16xf32>
func.func @views(%x: memref<8x8xf32>, %i: index) -> f32 {
  %0 = bufferization.to_tensor %x : memref<8x8xf32> to tensor<8x8xf32>
  %1 = tensor.extract_slice %0[%i, 0] [1, 8] [1, 1] : tensor<8x8xf32> to tensor<8xf32>
  %2 = tensor.insert_slice %1 into %0[0, 0] [8, 1] [1, 1] : tensor<8xf32> into tensor<8x8xf32>
  %3 = tensor.collapse_shape %2 [[0, 1]] : tensor<8x8xf32> into tensor<64xf32>
  %4 = tensor.expand_shape %3 [[0, 1]] output_shape [4, 16] : tensor<64xf32> into tensor<4x16xf32>
  %5 = tensor.extract %4[%i, %i] : tensor<4x16xf32>
  func.return %5 : f32
}

// Elements of a column have no one stride together with the next column: they are copied to be seen as one dimension.
// CHECK-LABEL: @columns
// CHECK: [[P:%.+]] = memref.subview
// CHECK: memref.copy [[P]], [[C:%.+]] :
// CHECK: memref.collapse_shape [[C]]
func.func @columns(%x: tensor<8x8xf32>, %i: index) -> f32 {
  %0 = tensor.extract_slice %x[0, 0] [8, 2] [1, 1] : tensor<8x8xf32> to tensor<8x2xf32>
  %1 = tensor.collapse_shape %0 [[0, 1]] : tensor<8x2xf32> into tensor<16xf32>
  %2 = tensor.extract %1[%i] : tensor<16xf32>
  func.return %2 : f32
}

// Numbers that differ are stored, one after the other; a body loads what it takes from outside.
// CHECK-LABEL: @constants
// CHECK: memref.store
// CHECK: memref.store
// CHECK: linalg.fill {{.*}} outs([[S:%.+]] : memref<2xf32>)
// CHECK: linalg.generic
// CHECK: memref.load [[S]]
func.func @constants(%y: memref<2xf32>) {
  %0 = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = arith.constant dense<3.0> : tensor<2xf32>
  %e = tensor.empty() : tensor<2xf32>
  %2 = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel"]} ins(%0 : tensor<2xf32>) outs(%e : tensor<2xf32>) {
  ^bb0(%p: f32, %o: f32):
    %i = linalg.index 0 : index
    %t = tensor.extract %1[%i] : tensor<2xf32>
    %r = arith.addf %p, %t : f32
    linalg.yield %r : f32
  } -> tensor<2xf32>
  bufferization.materialize_in_destination %2 in writable %y : (tensor<2xf32>, memref<2xf32>) -> ()
  func.return
}
