// RUN: tlx-opt %s --split-input-file --verify-diagnostics

// Each case breaks one rule of one operation; the right use stands in arith_ops.mlir.

tt.func @compare_types(%x: i32, %y: i64) {
  // expected-error @below {{compares i32 with i64}}
  %0 = "arith.cmpi"(%x, %y) <{predicate = 0 : i64}> : (i32, i64) -> i1
  tt.return
}

// -----

tt.func @compare_result(%x: tensor<64xi32>) {
  // expected-error @below {{the result must be tensor<64xi1>}}
  %0 = "arith.cmpi"(%x, %x) <{predicate = 0 : i64}> : (tensor<64xi32>, tensor<64xi32>) -> i1
  tt.return
}

// -----

tt.func @compare_word(%x: f32) {
  // expected-error @below {{expected one of false, oeq, ogt}}
  %0 = arith.cmpf slt, %x, %x : f32
  tt.return
}

// -----

tt.func @select_values(%c: i1, %x: i32, %y: i64) {
  // expected-error @below {{selects between i32 and i64}}
  %0 = "arith.select"(%c, %x, %y) : (i1, i32, i64) -> i32
  tt.return
}

// -----

tt.func @select_condition(%c: tensor<32xi1>, %x: tensor<64xi32>) {
  // expected-error @below {{the condition must be tensor<64xi1>, found tensor<32xi1>}}
  %0 = arith.select %c, %x, %x : tensor<32xi1>, tensor<64xi32>
  tt.return
}

// -----

tt.func @cast_shape(%x: tensor<64xi32>) {
  // expected-error @below {{cannot change the shape or the layout}}
  %0 = arith.extsi %x : tensor<64xi32> to tensor<32xi64>
  tt.return
}

// -----

tt.func @cast_kind(%x: f32) {
  // expected-error @below {{cannot cast f32 to i64}}
  %0 = arith.extsi %x : f32 to i64
  tt.return
}

// -----

tt.func @cast_wider(%x: i32) {
  // expected-error @below {{the result must be wider than i32, found i16}}
  %0 = arith.extui %x : i32 to i16
  tt.return
}

// -----

tt.func @cast_narrower(%x: f16) {
  // expected-error @below {{the result must be narrower than f16, found f32}}
  %0 = arith.truncf %x : f16 to f32
  tt.return
}

// -----

tt.func @cast_index(%x: index) {
  // expected-error @below {{cannot cast index to i64}}
  %0 = arith.extsi %x : index to i64
  tt.return
}
