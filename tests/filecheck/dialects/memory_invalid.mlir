// RUN: tlx-opt %s --split-input-file --verify-diagnostics --mlir-version 19

// Each case breaks one rule of one operation; the right use stands in memory_ops.mlir.

func.func @sizes(%p: memref<*xf32>) {
  // expected-error @below {{memref<128xf32, strided<[1]>> does not have the sizes [64]}}
  %0 = memref.reinterpret_cast %p to offset: [0], sizes: [64], strides: [1] : memref<*xf32> to memref<128xf32, strided<[1]>>
  return
}

// -----

func.func @offset(%p: memref<*xf32>, %o: index) {
  // expected-error @below {{memref<128xf32, strided<[1]>> does not have the offset [?]}}
  %0 = memref.reinterpret_cast %p to offset: [%o], sizes: [128], strides: [1] : memref<*xf32> to memref<128xf32, strided<[1]>>
  return
}

// -----

func.func @elements(%p: memref<*xf32>) {
  // expected-error @below {{memref<*xf32> does not have the elements of memref<128xi32, strided<[1]>>}}
  %0 = memref.reinterpret_cast %p to offset: [0], sizes: [128], strides: [1] : memref<*xf32> to memref<128xi32, strided<[1]>>
  return
}

// -----

func.func @box(%m: memref<16x8xf32>) {
  // expected-error @below {{the result must be memref<4x8xf32, strided<[8, 1], offset: 16>>, found memref<4x8xf32>}}
  %0 = memref.subview %m[2, 0] [4, 8] [1, 1] : memref<16x8xf32> to memref<4x8xf32>
  return
}

// -----

func.func @beyond(%m: memref<16x8xf32>, %n: index) {
  // expected-error @below {{the box is not inside of dimension 0 of memref<16x8xf32>}}
  %0 = memref.subview %m[16, 0] [%n, 8] [1, 1] : memref<16x8xf32> to memref<?x8xf32, strided<[8, 1], offset: 128>>
  return
}

// -----

func.func @too_long(%m: memref<16x8xf32>) {
  // expected-error @below {{the box is not inside of dimension 1 of memref<16x8xf32>}}
  %0 = memref.subview %m[0, 1] [4, 4] [1, 3] : memref<16x8xf32> to memref<4x4xf32, strided<[8, 3], offset: 1>>
  return
}

// -----

func.func @wide_dimension_dropped(%m: memref<16x8xf32>) {
  // expected-error @below {{the result must be}}
  %0 = memref.subview %m[0, 0] [2, 8] [1, 1] : memref<16x8xf32> to memref<8xf32, strided<[1]>>
  return
}

// -----

func.func @cast(%m: memref<4xf32>) {
  // expected-error @below {{cannot cast memref<4xf32> to memref<8xf32>}}
  %0 = memref.cast %m : memref<4xf32> to memref<8xf32>
  return
}

// -----

func.func @copy(%m: memref<4xf32>, %n: memref<4xi32>) {
  // expected-error @below {{cannot copy memref<4xf32> to memref<4xi32>}}
  memref.copy %m, %n : memref<4xf32> to memref<4xi32>
  return
}

// -----

func.func @index(%m: memref<4x4xf32>, %i: index) {
  // expected-error @below {{expected an index for each of the 2 dimensions of memref<4x4xf32>, found 1}}
  %0 = memref.load %m[%i] : memref<4x4xf32>
  return
}

// -----

func.func @kind(%m: memref<4xf32>, %v: f32, %i: index) {
  // expected-error @below {{'addi' is no operation on f32}}
  %0 = memref.atomic_rmw addi %v, %m[%i] : (f32, memref<4xf32>) -> f32
  return
}

// -----

func.func @newer_kind(%m: memref<4xi32>, %v: i32, %i: index) {
  // expected-error @below {{LLVM 19 has no 'memref.atomic_rmw' of this kind}}
  %0 = memref.atomic_rmw xori %v, %m[%i] : (i32, memref<4xi32>) -> i32
  return
}

// -----

func.func @yield(%m: memref<4xf32>, %v: f64, %i: index) {
  // expected-error @below {{the region must end in 'memref.atomic_yield' of an element, of type f32}}
  %0 = memref.generic_atomic_rmw %m[%i] : memref<4xf32> {
  ^bb0(%current: f32):
    memref.atomic_yield %v : f64
  }
  return
}

// -----

func.func @shape(%t: tensor<4xf32>, %m: memref<8xf32>) {
  // expected-error @below {{cannot write tensor<4xf32> to memref<8xf32>}}
  bufferization.materialize_in_destination %t in writable %m : (tensor<4xf32>, memref<8xf32>) -> ()
  return
}

// -----

func.func @not_writable(%t: tensor<4xf32>, %m: memref<4xf32>) {
  // expected-error @below {{memory that is written must be 'writable'}}
  bufferization.materialize_in_destination %t in %m : (tensor<4xf32>, memref<4xf32>) -> ()
  return
}

// -----

func.func @no_memory(%t: tensor<4xf32>) {
  // expected-error @below {{expected a memref, found tensor<4xf32>}}
  %0 = bufferization.to_tensor %t : tensor<4xf32>
  return
}

// -----

// expected-error @below {{'tt.func' is no operation of upstream MLIR}}
tt.func @not_lowered() {
  tt.return
}
