// RUN: tlx-opt %s -p linalg-lower-tensors | filecheck %s

// CHECK: #map = affine_map<(d0) -> (d0)>

// CHECK-LABEL: @constants
// CHECK-NEXT: [[N:%.*]] = arith.constant 1.000000e+00 : f32
// CHECK-NEXT: [[E:%.*]] = tensor.empty() : tensor<4x8xf32>
// CHECK-NEXT: linalg.fill ins([[N]] : f32) outs([[E]] : tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK: linalg.fill ins(%s : f16)
// Elements that differ stay a constant.
// CHECK: arith.constant dense<[1, 2]> : tensor<2xi32>
tt.func public @constants(%s: f16) -> (tensor<4x8xf32>, tensor<16xf16>, tensor<2xi32>) {
  %0 = arith.constant dense<1.0> : tensor<4x8xf32>
  %1 = tt.splat %s : f16 -> tensor<16xf16>
  %2 = arith.constant dense<[1, 2]> : tensor<2xi32>
  tt.return %0, %1, %2 : tensor<4x8xf32>, tensor<16xf16>, tensor<2xi32>
}

// CHECK-LABEL: @range
// CHECK: linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%{{.*}} : tensor<8xi32>)
// CHECK: [[I:%.*]] = linalg.index 0 : index
// CHECK-NEXT: [[N:%.*]] = arith.index_cast [[I]] : index to i32
// CHECK-NEXT: [[S:%.*]] = arith.constant 16 : i32
// CHECK-NEXT: arith.addi [[N]], [[S]] : i32
tt.func public @range() -> tensor<8xi32> {
  %0 = tt.make_range {end = 24 : i32, start = 16 : i32} : tensor<8xi32>
  tt.return %0 : tensor<8xi32>
}

// A row is repeated as it is: the dimension that tt.expand_dims gave it is not needed.
// CHECK-LABEL: @broadcast
// CHECK: tensor.expand_shape %x {{\[\[}}0, 1]] output_shape [1, 8]
// CHECK: linalg.broadcast ins(%x : tensor<8xf32>) outs(%{{.*}} : tensor<4x8xf32>) dimensions = [0]
// CHECK: tensor.collapse_shape %one [] : tensor<1x1xf32> into tensor<f32>
// CHECK: linalg.broadcast ins(%{{.*}} : tensor<f32>) outs(%{{.*}} : tensor<4x8xf32>) dimensions = [0, 1]
tt.func public @broadcast(%x: tensor<8xf32>, %one: tensor<1x1xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = tt.expand_dims %x {axis = 0 : i32} : tensor<8xf32> -> tensor<1x8xf32>
  %1 = tt.broadcast %0 : tensor<1x8xf32> -> tensor<4x8xf32>
  %2 = tt.broadcast %one : tensor<1x1xf32> -> tensor<4x8xf32>
  tt.return %1, %2 : tensor<4x8xf32>, tensor<4x8xf32>
}

// CHECK-LABEL: @reshape
// CHECK: tensor.collapse_shape %x {{\[\[}}0, 1]] : tensor<4x8xf32> into tensor<32xf32>
// By way of one dimension where neither shape divides the other.
// CHECK: [[F:%.*]] = tensor.collapse_shape %x {{\[\[}}0, 1]] : tensor<4x8xf32> into tensor<32xf32>
// CHECK: tensor.expand_shape [[F]] {{\[\[}}0, 1]] output_shape [8, 4] : tensor<32xf32> into tensor<8x4xf32>
// CHECK: linalg.transpose ins(%x : tensor<4x8xf32>) outs(%{{.*}} : tensor<8x4xf32>) permutation = [1, 0]
tt.func public @reshape(%x: tensor<4x8xf32>) -> (tensor<32xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = tt.reshape %x : tensor<4x8xf32> -> tensor<32xf32>
  %1 = tt.reshape %x : tensor<4x8xf32> -> tensor<8x4xf32>
  %2 = tt.trans %x {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>
  tt.return %0, %1, %2 : tensor<32xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}

// CHECK-LABEL: @parts
// CHECK: [[E:%.*]] = tensor.empty() : tensor<8x2xf32>
// CHECK-NEXT: [[H:%.*]] = tensor.insert_slice %x into [[E]][0, 0] [8, 1] [1, 1] : tensor<8xf32> into tensor<8x2xf32>
// CHECK-NEXT: [[J:%.*]] = tensor.insert_slice %y into [[H]][0, 1] [8, 1] [1, 1]
// CHECK-NEXT: tensor.extract_slice [[J]][0, 0] [8, 1] [1, 1] : tensor<8x2xf32> to tensor<8xf32>
// CHECK-NEXT: tensor.extract_slice [[J]][0, 1] [8, 1] [1, 1] : tensor<8x2xf32> to tensor<8xf32>
// CHECK: tensor.insert_slice %x into %{{.*}}[0] [8] [1] : tensor<8xf32> into tensor<16xf32>
// CHECK: tensor.insert_slice %y into %{{.*}}[8] [8] [1] : tensor<8xf32> into tensor<16xf32>
tt.func public @parts(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<16xf32>) {
  %0 = tt.join %x, %y : tensor<8xf32> -> tensor<8x2xf32>
  %1, %2 = tt.split %0 : tensor<8x2xf32> -> tensor<8xf32>
  %3 = tt.cat %x, %y : tensor<8xf32> -> tensor<16xf32>
  tt.return %1, %2, %3 : tensor<8xf32>, tensor<8xf32>, tensor<16xf32>
}

// CHECK-LABEL: @elements
// CHECK: [[Z:%.*]] = arith.constant 0 : index
// CHECK: tensor.extract %one[[[Z]], %{{.*}}] : tensor<1x1xf32>
// CHECK: linalg.generic {{.*}} ins(%i : tensor<4x8xi32>)
// CHECK: [[P:%.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK-NEXT: [[C:%.*]] = linalg.index 1 : index
// CHECK-NEXT: tensor.extract %x[[[P]], [[C]]] : tensor<16x8xf32>
tt.func public @elements(%one: tensor<1x1xf32>, %x: tensor<16x8xf32>, %i: tensor<4x8xi32>) -> (f32, tensor<4x8xf32>) {
  %0 = tt.unsplat %one : tensor<1x1xf32>
  %1 = tt.gather %x[%i] {axis = 0 : i32} : (tensor<16x8xf32>, tensor<4x8xi32>) -> tensor<4x8xf32>
  tt.return %0, %1 : f32, tensor<4x8xf32>
}

// Tensors of pointers, memory and control flow stay.
// CHECK-LABEL: @pointers
// CHECK: tt.splat %p : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
// CHECK: tt.addptr
// CHECK: scf.if %c -> (tensor<8xf32>)
// CHECK: tt.load %{{.*}} : tensor<8x!tt.ptr<f32>>
// CHECK: tt.store %{{.*}}, %{{.*}} : tensor<8x!tt.ptr<f32>>
tt.func public @pointers(%p: !tt.ptr<f32>, %i: tensor<8xi32>, %c: i1, %x: tensor<8xf32>) {
  %0 = tt.splat %p : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %1 = tt.addptr %0, %i : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %2 = scf.if %c -> (tensor<8xf32>) {
    %3 = tt.load %1 : tensor<8x!tt.ptr<f32>>
    scf.yield %3 : tensor<8xf32>
  } else {
    scf.yield %x : tensor<8xf32>
  }
  tt.store %1, %2 : tensor<8x!tt.ptr<f32>>
  tt.return
}
