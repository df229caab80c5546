// RUN: tlx-opt %s --split-input-file --verify-diagnostics --parsing-diagnostics

// Each case breaks one rule of one operation; the right use stands in linalg_ops.mlir.

func.func @sizes(%x: tensor<4x8xf32>, %v: tensor<8xf32>) {
  // expected-error @below {{inferred input/output operand #1 has shape's dimension #0 to be 4, but found 8}}
  %0 = linalg.reduce { arith.addf } ins(%x : tensor<4x8xf32>) outs(%v : tensor<8xf32>) dimensions = [1]
  return
}

// -----

func.func @body(%x: tensor<4x8xf32>, %v: tensor<4xf32>) {
  // expected-error @below {{expected type of bb argument #1 (i32) to match element or self type of the corresponding operand (f32)}}
  %0 = linalg.reduce ins(%x : tensor<4x8xf32>) outs(%v : tensor<4xf32>) dimensions = [1] (%a: f32, %b: i32) {
    linalg.yield %a : f32
  }
  return
}

// -----

func.func @short_form(%x: tensor<4x8xf32>, %v: tensor<4xf32>) {
  // expected-error @below {{expected an operation that combines two elements, found 'arith.nothing'}}
  %0 = linalg.reduce { arith.nothing } ins(%x : tensor<4x8xf32>) outs(%v : tensor<4xf32>) dimensions = [1]
  return
}

// -----

func.func @rank_0(%x: tensor<f32>) {
  // expected-error @below {{a tensor of rank 0 is one of sizes 1}}
  %0 = tensor.expand_shape %x [] output_shape [2] : tensor<f32> into tensor<2xf32>
  return
}

// -----

func.func @collapse(%x: tensor<4x8xf32>) {
  // expected-error @below {{expected dimension 0 of collapsed type to be static value of 32}}
  %0 = tensor.collapse_shape %x [[0, 1]] : tensor<4x8xf32> into tensor<16xf32>
  return
}

// -----

func.func @empty_group(%x: tensor<4x8xf32>) {
  // expected-error @below {{a group has a dimension at least}}
  %0 = tensor.collapse_shape %x [[0, 1], []] : tensor<4x8xf32> into tensor<32x1xf32>
  return
}

// -----

func.func @element_type(%x: tensor<4x8xf32>) {
  // expected-error @below {{the element type must stay, found tensor<32xi32> and tensor<4x8xf32>}}
  %0 = tensor.collapse_shape %x [[0, 1]] : tensor<4x8xf32> into tensor<32xi32>
  return
}

// -----

func.func @yields(%x: tensor<4xf32>) {
  // expected-error @below {{the body must yield f32, found i32}}
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%x : tensor<4xf32>) {
  ^bb0(%a: f32):
    %1 = arith.constant 0 : i32
    linalg.yield %1 : i32
  } -> tensor<4xf32>
  return
}

// -----

func.func @iterators(%x: tensor<4xf32>) {
  // expected-error @below {{expected iterator types among parallel, reduction, window, found "sideways"}}
  %0 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["sideways"]} outs(%x : tensor<4xf32>) {
  ^bb0(%a: f32):
    linalg.yield %a : f32
  } -> tensor<4xf32>
  return
}

// -----

func.func @a_product_of_one(%a: tensor<4x4xf32>) {
  // expected-error @below {{expected the number of indexing_map (3) to be equal to the number of input/output operands (2)}}
  %0 = linalg.matmul ins(%a : tensor<4x4xf32>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @a_product_of_three(%a: tensor<2x4x4xf32>) {
  // expected-error @below {{expected the number of indexing_map (3) to be equal to the number of input/output operands (4)}}
  %0 = linalg.batch_matmul ins(%a, %a, %a : tensor<2x4x4xf32>, tensor<2x4x4xf32>, tensor<2x4x4xf32>) outs(%a : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  return
}
