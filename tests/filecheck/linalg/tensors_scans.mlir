// RUN: tlx-opt %s -p linalg-lower-tensors | filecheck %s

// A long row in 16 parts, which lie beside each other while they are scanned; what comes before a part is its left side.
// CHECK-LABEL: @long
// CHECK: [[PARTS:%.*]] = tensor.expand_shape %x {{\[\[}}0, 1, 2]] output_shape [1, 16, 32]
// CHECK: linalg.transpose ins([[PARTS]] : tensor<1x16x32xf32>) outs(%{{.*}} : tensor<32x1x16xf32>) permutation = [2, 0, 1]
// CHECK: [[SCANNED:%.*]], [[ASIDE:%.*]] = scf.for {{.*}} -> (tensor<1x16xf32>, tensor<32x1x16xf32>)
// CHECK: [[TOTAL:%.*]], [[TOTALS:%.*]] = scf.for {{.*}} -> (tensor<1xf32>, tensor<1x16xf32>)
// CHECK: [[SHIFTED:%.*]] = tensor.insert_slice %{{.*}} into %{{.*}}[0, 1] [1, 15] [1, 1]
// CHECK: linalg.generic {{.*}} ins([[SHIFTED]], [[ASIDE]] : tensor<1x16xf32>, tensor<32x1x16xf32>) outs(%{{.*}} : tensor<1x16x32xf32>) {
// CHECK-NEXT: ^bb{{.*}}([[BEFORE:%.*]]: f32, [[OWN:%.*]]: f32,
// CHECK-NEXT: [[BOTH:%.*]] = arith.mulf [[BEFORE]], [[OWN]] : f32
// CHECK: arith.select %{{.*}}, [[OWN]], [[BOTH]] : f32
tt.func public @long(%x: tensor<512xf32>) -> tensor<512xf32> {
  %0 = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%a: f32, %b: f32):
    %1 = arith.mulf %a, %b : f32
    tt.scan.return %1 : f32
  }) : (tensor<512xf32>) -> tensor<512xf32>
  tt.return %0 : tensor<512xf32>
}

// A short row, one from its end on, many rows, and columns are scanned element by element.
// CHECK-LABEL: @others
// CHECK-NOT: linalg.transpose
tt.func public @others(%x: tensor<128xf32>, %y: tensor<512xf32>, %z: tensor<8x512xf32>, %c: tensor<512x2xf32>) -> (tensor<128xf32>, tensor<512xf32>, tensor<8x512xf32>, tensor<512x2xf32>) {
  %0 = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%a: f32, %b: f32):
    %1 = arith.addf %a, %b : f32
    tt.scan.return %1 : f32
  }) : (tensor<128xf32>) -> tensor<128xf32>
  %2 = "tt.scan"(%y) <{axis = 0 : i32, reverse = true}> ({
  ^bb0(%a: f32, %b: f32):
    %3 = arith.addf %a, %b : f32
    tt.scan.return %3 : f32
  }) : (tensor<512xf32>) -> tensor<512xf32>
  %4 = "tt.scan"(%z) <{axis = 1 : i32, reverse = false}> ({
  ^bb0(%a: f32, %b: f32):
    %5 = arith.addf %a, %b : f32
    tt.scan.return %5 : f32
  }) : (tensor<8x512xf32>) -> tensor<8x512xf32>
  %6 = "tt.scan"(%c) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%a: f32, %b: f32):
    %7 = arith.addf %a, %b : f32
    tt.scan.return %7 : f32
  }) : (tensor<512x2xf32>) -> tensor<512x2xf32>
  tt.return %0, %2, %4, %6 : tensor<128xf32>, tensor<512xf32>, tensor<8x512xf32>, tensor<512x2xf32>
}
