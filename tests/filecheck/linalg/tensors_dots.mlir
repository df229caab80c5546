// RUN: tlx-opt %s -p linalg-lower-tensors 2>&1 | filecheck %s
// RUN: tlx-opt %s -p "linalg-lower-tensors{truncates_tf32=false}" 2>&1 | filecheck %s --check-prefix=WHOLE

// CHECK: remark: maxNumImpreciseAcc is for tensor cores: linalg.matmul adds in the type of the accumulator

// CHECK: [[PAIRS:#map.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>
// CHECK: [[HALVES:#map.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>

// linalg.matmul converts operands to the type of its output.
// CHECK-LABEL: @narrow_operands
// CHECK-NEXT: linalg.matmul ins(%a, %b : tensor<4x8xf16>, tensor<8x4xf16>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK-NEXT: linalg.batch_matmul ins(%i, %j : tensor<2x4x8xi8>, tensor<2x8x4xi8>) outs(%k : tensor<2x4x4xi32>) -> tensor<2x4x4xi32>
tt.func public @narrow_operands(%a: tensor<4x8xf16>, %b: tensor<8x4xf16>, %c: tensor<4x4xf32>, %i: tensor<2x4x8xi8>, %j: tensor<2x8x4xi8>, %k: tensor<2x4x4xi32>) -> (tensor<4x4xf32>, tensor<2x4x4xi32>) {
  %0 = tt.dot %a, %b, %c : tensor<4x8xf16> * tensor<8x4xf16> -> tensor<4x4xf32>
  %1 = tt.dot %i, %j, %k : tensor<2x4x8xi8> * tensor<2x8x4xi8> -> tensor<2x4x4xi32>
  tt.return %0, %1 : tensor<4x4xf32>, tensor<2x4x4xi32>
}

// Sums of f16 are accumulated in f32 and rounded once.
// CHECK-LABEL: @narrow_accumulator
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK: [[D:%.*]] = linalg.matmul ins(%a, %b : tensor<4x8xf16>, tensor<8x4xf16>) outs(%{{.*}} : tensor<4x4xf32>)
// CHECK: ins([[D]] : tensor<4x4xf32>)
// CHECK: arith.truncf %{{.*}} : f32 to f16
tt.func public @narrow_accumulator(%a: tensor<4x8xf16>, %b: tensor<8x4xf16>, %c: tensor<4x4xf16>) -> tensor<4x4xf16> {
  %0 = tt.dot %a, %b, %c : tensor<4x8xf16> * tensor<8x4xf16> -> tensor<4x4xf16>
  tt.return %0 : tensor<4x4xf16>
}

// With tf32 the low 13 bits of operands play no part; with ieee they do.
// CHECK-LABEL: @precisions
// CHECK: [[M:%.*]] = arith.constant -8192 : i32
// CHECK-NEXT: arith.andi %{{.*}}, [[M]] : i32
// CHECK: linalg.matmul
// CHECK: linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>)
// Three products of tf32: large by small, small by large, large by large.
// CHECK: arith.constant 4096 : i32
// CHECK-COUNT-3: linalg.matmul
// CHECK-NOT: linalg.matmul
// CHECK: tt.return
// WHOLE: remark: inputPrecision = tf32 is for tensor cores: linalg.matmul multiplies all bits of f32
// WHOLE-LABEL: @precisions
// WHOLE-NEXT: linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>)
tt.func public @precisions(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<4x8xf32> * tensor<8x4xf32> -> tensor<4x4xf32>
  %1 = tt.dot %a, %b, %0 : tensor<4x8xf32> * tensor<8x4xf32> -> tensor<4x4xf32>
  %2 = tt.dot %a, %b, %1, inputPrecision = tf32x3 : tensor<4x8xf32> * tensor<8x4xf32> -> tensor<4x4xf32>
  tt.return %2 : tensor<4x4xf32>
}

// CHECK-LABEL: @bytes
// CHECK-NEXT: linalg.matmul ins(%a, %b : tensor<4x8xf8E4M3FN>, tensor<8x4xf8E5M2>) outs(%c : tensor<4x4xf32>)
tt.func public @bytes(%a: tensor<4x8xf8E4M3FN>, %b: tensor<8x4xf8E5M2>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = tt.dot %a, %b, %c {maxNumImpreciseAcc = 32 : i32} : tensor<4x8xf8E4M3FN> * tensor<8x4xf8E5M2> -> tensor<4x4xf32>
  tt.return %0 : tensor<4x4xf32>
}

// Pairs of fp4 become a new dimension, and a scale holds for 32 elements.
// CHECK-LABEL: @scaled
// CHECK: linalg.generic {indexing_maps = [[[PAIRS]], [[HALVES]]], iterator_types = ["parallel", "parallel", "parallel"]} ins(%a : tensor<16x32xi8>) outs(%{{.*}} : tensor<16x32x2xf32>)
// CHECK: linalg.index 2 : index
// CHECK: arith.bitcast %{{.*}} : i8 to f8E4M3FN
// CHECK: ins(%{{.*}}, %s : tensor<16x2x32xf32>, tensor<16x2xi8>) outs(%{{.*}} : tensor<16x2x32xf32>)
// CHECK: linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<16x64xf32>, tensor<64x16xf32>) outs(%c : tensor<16x16xf32>)
tt.func public @scaled(%a: tensor<16x32xi8>, %s: tensor<16x2xi8>, %b: tensor<64x16xi8>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = tt.dot_scaled %a scale %s, %b, %c lhs = e2m1 rhs = e4m3 {fastMath = false} : tensor<16x32xi8>, tensor<16x2xi8> * tensor<64x16xi8> -> tensor<16x16xf32>
  tt.return %0 : tensor<16x16xf32>
}
