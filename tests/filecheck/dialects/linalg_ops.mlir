// RUN: tlx-opt %s | tlx-opt | filecheck %s
// RUN: tlx-opt %s --print-op-generic | tlx-opt | filecheck %s

// What xDSL's own operations can't say.

// CHECK-LABEL: @several
func.func @several(%x: tensor<4x8xf32>, %i: tensor<4x8xi32>, %v: tensor<4xf32>, %w: tensor<4xi32>) {
  // CHECK-NEXT: %{{.*}}, %{{.*}} = linalg.reduce ins(%x, %i : tensor<4x8xf32>, tensor<4x8xi32>) outs(%v, %w : tensor<4xf32>, tensor<4xi32>) dimensions = [1] (%a: f32, %b: i32, %c: f32, %d: i32) {
  // CHECK-NEXT: linalg.yield %c, %d : f32, i32
  %0, %1 = linalg.reduce ins(%x, %i : tensor<4x8xf32>, tensor<4x8xi32>) outs(%v, %w : tensor<4xf32>, tensor<4xi32>) dimensions = [1]
    (%a: f32, %b: i32, %c: f32, %d: i32) {
      linalg.yield %c, %d : f32, i32
    }
  // An operation in braces is the body: what was combined so far is its first operand.
  // CHECK: linalg.reduce ins(%x : tensor<4x8xf32>) outs(%v : tensor<4xf32>) dimensions = [1] ([[A:%.*]]: f32, [[B:%.*]]: f32) {
  // CHECK-NEXT: arith.subf [[B]], [[A]] : f32
  %2 = linalg.reduce { arith.subf } ins(%x : tensor<4x8xf32>) outs(%v : tensor<4xf32>) dimensions = [1]
  // CHECK: linalg.generic {{.*}} ins(%v : tensor<4xf32>) outs(%v, %w : tensor<4xf32>, tensor<4xi32>) attrs =  {tag} {
  // CHECK: } -> (tensor<4xf32>, tensor<4xi32>)
  %3, %4 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%v : tensor<4xf32>) outs(%v, %w : tensor<4xf32>, tensor<4xi32>) attrs = {tag} {
  ^bb0(%a: f32, %b: f32, %c: i32):
    linalg.yield %a, %c : f32, i32
  } -> (tensor<4xf32>, tensor<4xi32>)
  return
}

// CHECK-LABEL: @products
func.func @products(%a: tensor<4x8xf16>, %b: tensor<8x4xf16>, %c: tensor<4x4xf32>, %i: tensor<2x4x8xi8>, %j: tensor<2x8x4xi8>, %k: tensor<2x4x4xi32>) {
  // CHECK-NEXT: linalg.matmul ins(%a, %b : tensor<4x8xf16>, tensor<8x4xf16>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<4x8xf16>, tensor<8x4xf16>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK-NEXT: linalg.batch_matmul ins(%i, %j : tensor<2x4x8xi8>, tensor<2x8x4xi8>) outs(%k : tensor<2x4x4xi32>) -> tensor<2x4x4xi32>
  %1 = linalg.batch_matmul ins(%i, %j : tensor<2x4x8xi8>, tensor<2x8x4xi8>) outs(%k : tensor<2x4x4xi32>) -> tensor<2x4x4xi32>
  return
}

// CHECK-LABEL: @shapes
func.func @shapes(%x: tensor<f32>, %m: tensor<2x3xf32>) {
  // CHECK-NEXT: [[E:%.*]] = tensor.expand_shape %x [] output_shape [1, 1] : tensor<f32> into tensor<1x1xf32>
  // CHECK-NEXT: tensor.collapse_shape [[E]] [] : tensor<1x1xf32> into tensor<f32>
  // CHECK-NEXT: tensor.collapse_shape %m {{\[\[}}0, 1]] : tensor<2x3xf32> into tensor<6xf32>
  %0 = tensor.expand_shape %x [] output_shape [1, 1] : tensor<f32> into tensor<1x1xf32>
  %1 = tensor.collapse_shape %0 [] : tensor<1x1xf32> into tensor<f32>
  %2 = tensor.collapse_shape %m [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>
  return
}
