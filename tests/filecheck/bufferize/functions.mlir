// RUN: tlx-opt %s -p linalg-bufferize | filecheck %s

// Results are memory that the caller gives; what is made is made there. An argument is not written.
// CHECK-LABEL: @changed
// CHECK-SAME: (%x: memref<8xf32>, %m: f32, %{{.*}}: memref<8xf32>) -> f32 {
func.func @changed(%x: tensor<8xf32>, %m: f32) -> (tensor<8xf32>, f32) {
  %i = arith.constant 1 : index
  // CHECK: memref.copy %x, [[R:%.+]] :
  // CHECK-NEXT: memref.store %m, [[R]][%i]
  // CHECK-NEXT: func.return %m : f32
  %0 = tensor.insert %m into %x[%i] : tensor<8xf32>
  func.return %0, %m : tensor<8xf32>, f32
}

// CHECK-LABEL: @caller
// CHECK: [[R:%.+]] = memref.alloc() : memref<8xf32>
// CHECK-NEXT: %{{.*}} = func.call @changed(%x, %m, [[R]]) : (memref<8xf32>, f32, memref<8xf32>) -> f32
// CHECK: memref.load [[R]]
func.func @caller(%x: tensor<8xf32>, %m: f32, %i: index) -> f32 {
  %0, %1 = func.call @changed(%x, %m) : (tensor<8xf32>, f32) -> (tensor<8xf32>, f32)
  %2 = tensor.extract %0[%i] : tensor<8xf32>
  func.return %2 : f32
}

// A part of a tensor has no form that a function takes, so it is copied.
// CHECK-LABEL: @part
// CHECK: [[P:%.+]] = memref.subview
// CHECK: memref.copy [[P]], [[C:%.+]] :
// CHECK: func.call @changed([[C]],
func.func @part(%x: tensor<8x8xf32>, %m: f32) -> f32 {
  %0 = tensor.extract_slice %x[0, 0] [8, 1] [1, 1] : tensor<8x8xf32> to tensor<8xf32>
  %1, %2 = func.call @changed(%0, %m) : (tensor<8xf32>, f32) -> (tensor<8xf32>, f32)
  func.return %2 : f32
}

// A declaration has the same signature.
// CHECK: func.func private @declared(memref<8xf32>, memref<8xf32>) -> ()
func.func private @declared(tensor<8xf32>) -> tensor<8xf32>

// Blocks take what a branch hands on from one place; of two ways only that which is taken copies.
// CHECK-LABEL: @early
// CHECK: [[P:%.+]] = memref.alloc
// CHECK: scf.if %c {
// CHECK-NEXT: memref.copy %x, [[P]] :
// CHECK-NEXT: } else {
// CHECK-NEXT: }
// CHECK: cf.cond_br %c, ^bb1(%m : f32), ^bb2
// CHECK: ^bb1(%{{.*}}: f32):
// CHECK: memref.copy [[P]], [[R:%.+]] :
// CHECK-NEXT: func.return
// CHECK: ^bb2:
// CHECK: memref.copy %y, [[R]] :
// CHECK-NEXT: func.return
func.func @early(%x: tensor<8xf32>, %y: tensor<8xf32>, %c: i1, %m: f32) -> tensor<8xf32> {
  cf.cond_br %c, ^bb1(%x, %m : tensor<8xf32>, f32), ^bb2
^bb1(%p: tensor<8xf32>, %q: f32):
  func.return %p : tensor<8xf32>
^bb2:
  func.return %y : tensor<8xf32>
}
