// RUN: tlx-opt %s -p linalg-fuse-elementwise | filecheck %s

#same = affine_map<(i) -> (i)>
#ij = affine_map<(i, j) -> (i, j)>

// What is filled is a scalar that the body takes; one user takes the operations of its operand.
// CHECK-LABEL: @chain
// CHECK-NEXT: [[E:%.+]] = tensor.empty
// CHECK-NEXT: linalg.generic {{.*}} ins(%x : tensor<64xf32>) outs([[E]] : tensor<64xf32>) {
// CHECK-NEXT: ^bb0([[A:%.+]]: f32, {{.*}}):
// CHECK-NEXT:   [[D:%.+]] = arith.subf [[A]], %m : f32
// CHECK-NEXT:   [[R:%.+]] = math.exp [[D]] : f32
// CHECK-NEXT:   linalg.yield [[R]] : f32
// CHECK: func.return
func.func @chain(%x: tensor<64xf32>, %m: f32) -> tensor<64xf32> {
  %e0 = tensor.empty() : tensor<64xf32>
  %0 = linalg.fill ins(%m : f32) outs(%e0 : tensor<64xf32>) -> tensor<64xf32>
  %e1 = tensor.empty() : tensor<64xf32>
  %1 = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel"]} ins(%x, %0 : tensor<64xf32>, tensor<64xf32>) outs(%e1 : tensor<64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    linalg.yield %d : f32
  } -> tensor<64xf32>
  %e2 = tensor.empty() : tensor<64xf32>
  %2 = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel"]} ins(%1 : tensor<64xf32>) outs(%e2 : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %d = math.exp %a : f32
    linalg.yield %d : f32
  } -> tensor<64xf32>
  func.return %2 : tensor<64xf32>
}

// Two users of an exponential read it; a comparison of indices is done again for each.
// CHECK-LABEL: @several_users
// CHECK: math.exp
// CHECK: linalg.reduce ins(%{{.*}} : tensor<64xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<64xf32>)
// CHECK-NOT: math.exp
// CHECK: linalg.index 0
// CHECK: arith.select
// CHECK: linalg.index 0
// CHECK: arith.select
// CHECK: func.return
func.func @several_users(%x: tensor<64xf32>, %n: index, %m: f32) -> (tensor<f32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) {
  %e1 = tensor.empty() : tensor<64xf32>
  %1 = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel"]} ins(%x : tensor<64xf32>) outs(%e1 : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %d = math.exp %a : f32
    linalg.yield %d : f32
  } -> tensor<64xf32>
  %e2 = tensor.empty() : tensor<f32>
  %start = tensor.insert %m into %e2[] : tensor<f32>
  %2 = linalg.reduce ins(%1 : tensor<64xf32>) outs(%start : tensor<f32>) dimensions = [0] (%a: f32, %s: f32) {
    %t = arith.addf %s, %a : f32
    linalg.yield %t : f32
  }
  %e3 = tensor.empty() : tensor<64xf32>
  %3 = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel"]} ins(%1 : tensor<64xf32>) outs(%e3 : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %d = arith.negf %a : f32
    linalg.yield %d : f32
  } -> tensor<64xf32>
  %e4 = tensor.empty() : tensor<64xi1>
  %4 = linalg.generic {indexing_maps = [#same], iterator_types = ["parallel"]} outs(%e4 : tensor<64xi1>) {
  ^bb0(%o: i1):
    %i = linalg.index 0 : index
    %c = arith.cmpi slt, %i, %n : index
    linalg.yield %c : i1
  } -> tensor<64xi1>
  %e5 = tensor.empty() : tensor<64xf32>
  %5 = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel"]} ins(%4, %x : tensor<64xi1>, tensor<64xf32>) outs(%e5 : tensor<64xf32>) {
  ^bb0(%c: i1, %a: f32, %o: f32):
    %d = arith.select %c, %a, %m : f32
    linalg.yield %d : f32
  } -> tensor<64xf32>
  %e6 = tensor.empty() : tensor<64xf32>
  %6 = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel"]} ins(%4, %x : tensor<64xi1>, tensor<64xf32>) outs(%e6 : tensor<64xf32>) {
  ^bb0(%c: i1, %a: f32, %o: f32):
    %d = arith.select %c, %m, %a : f32
    linalg.yield %d : f32
  } -> tensor<64xf32>
  func.return %2, %3, %5, %6 : tensor<f32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}

// A row that is repeated is read by a map, through the dimension of size 1 that it had; a division is not repeated.
// CHECK-LABEL: @repeated
// CHECK: arith.divf
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %y : tensor<64xf32>, tensor<16x64xf32>)
// CHECK-NOT: arith.divf
// CHECK: arith.mulf
// CHECK: func.return
func.func @repeated(%x: tensor<64xf32>, %y: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %e1 = tensor.empty() : tensor<64xf32>
  %1 = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel"]} ins(%x : tensor<64xf32>) outs(%e1 : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %d = arith.divf %a, %a : f32
    linalg.yield %d : f32
  } -> tensor<64xf32>
  %2 = tensor.expand_shape %1 [[0, 1]] output_shape [1, 64] : tensor<64xf32> into tensor<1x64xf32>
  %3 = tensor.collapse_shape %2 [[0, 1]] : tensor<1x64xf32> into tensor<64xf32>
  %e4 = tensor.empty() : tensor<16x64xf32>
  %4 = linalg.broadcast ins(%3 : tensor<64xf32>) outs(%e4 : tensor<16x64xf32>) dimensions = [0]
  %e5 = tensor.empty() : tensor<16x64xf32>
  %5 = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%4, %y : tensor<16x64xf32>, tensor<16x64xf32>) outs(%e5 : tensor<16x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.mulf %a, %b : f32
    linalg.yield %d : f32
  } -> tensor<16x64xf32>
  func.return %5 : tensor<16x64xf32>
}

// Reductions take the operations of their operands; what only had the number of elements is bounded by an empty tensor.
// CHECK-LABEL: @reduced
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction"]} ins(%x : tensor<64xf32>)
// CHECK: arith.negf
// CHECK-NEXT: arith.addf
// CHECK: [[B:%.+]] = tensor.empty() : tensor<64xi32>
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction"]} ins([[B]] : tensor<64xi32>)
// CHECK: linalg.index 0
func.func @reduced(%x: tensor<64xf32>, %m: f32, %n: index) -> (tensor<f32>, tensor<index>) {
  %e1 = tensor.empty() : tensor<64xf32>
  %1 = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel"]} ins(%x : tensor<64xf32>) outs(%e1 : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %d = arith.negf %a : f32
    linalg.yield %d : f32
  } -> tensor<64xf32>
  %e2 = tensor.empty() : tensor<f32>
  %start = tensor.insert %m into %e2[] : tensor<f32>
  %2 = linalg.reduce ins(%1 : tensor<64xf32>) outs(%start : tensor<f32>) dimensions = [0] (%a: f32, %s: f32) {
    %t = arith.addf %s, %a : f32
    linalg.yield %t : f32
  }
  %e3 = tensor.empty() : tensor<64xindex>
  %3 = linalg.generic {indexing_maps = [#same], iterator_types = ["parallel"]} outs(%e3 : tensor<64xindex>) {
  ^bb0(%o: index):
    %i = linalg.index 0 : index
    linalg.yield %i : index
  } -> tensor<64xindex>
  %e4 = tensor.empty() : tensor<index>
  %begin = tensor.insert %n into %e4[] : tensor<index>
  %4 = linalg.reduce ins(%3 : tensor<64xindex>) outs(%begin : tensor<index>) dimensions = [0] (%a: index, %s: index) {
    %t = arith.addi %s, %a : index
    linalg.yield %t : index
  }
  func.return %2, %4 : tensor<f32>, tensor<index>
}

// A store of a part computes that part, before the store; indices count from its beginning.
// CHECK-LABEL: @stored
// CHECK: func.call @other()
// CHECK: [[E:%.+]] = tensor.empty(%n) : tensor<?xf32>
// CHECK: [[P:%.+]] = tensor.extract_slice %x[%at] [%n] [1]
// CHECK: [[R:%.+]] = linalg.generic {{.*}} ins([[P]] : tensor<?xf32>) outs([[E]] : tensor<?xf32>)
// CHECK: [[I:%.+]] = linalg.index 0
// CHECK: arith.addi [[I]], %at : index
// CHECK: math.exp
// CHECK: bufferization.materialize_in_destination [[R]] in writable %m
func.func @stored(%x: tensor<64xf32>, %at: index, %n: index, %m: memref<?xf32>) {
  %e1 = tensor.empty() : tensor<64xf32>
  %1 = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel"]} ins(%x : tensor<64xf32>) outs(%e1 : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i32
    %f = arith.sitofp %j : i32 to f32
    %s = arith.addf %a, %f : f32
    %d = math.exp %s : f32
    linalg.yield %d : f32
  } -> tensor<64xf32>
  func.call @other() : () -> ()
  %2 = tensor.extract_slice %1[%at] [%n] [1] : tensor<64xf32> to tensor<?xf32>
  bufferization.materialize_in_destination %2 in writable %m : (tensor<?xf32>, memref<?xf32>) -> ()
  func.return
}
func.func private @other() -> ()

// An expensive operation is not moved into a loop, a cheap one is.
// CHECK-LABEL: @loop
// CHECK: math.exp
// CHECK-NOT: arith.negf
// CHECK: scf.for
// CHECK: arith.negf
// CHECK: arith.addf
func.func @loop(%x: tensor<64xf32>, %m: memref<64xf32>, %zero: index, %one: index, %n: index) {
  %e1 = tensor.empty() : tensor<64xf32>
  %1 = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel"]} ins(%x : tensor<64xf32>) outs(%e1 : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %d = math.exp %a : f32
    linalg.yield %d : f32
  } -> tensor<64xf32>
  %e2 = tensor.empty() : tensor<64xf32>
  %2 = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel"]} ins(%x : tensor<64xf32>) outs(%e2 : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %d = arith.negf %a : f32
    linalg.yield %d : f32
  } -> tensor<64xf32>
  scf.for %i = %zero to %n step %one {
    %e3 = tensor.empty() : tensor<64xf32>
    %3 = linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel"]} ins(%1, %2 : tensor<64xf32>, tensor<64xf32>) outs(%e3 : tensor<64xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %d = arith.addf %a, %b : f32
      linalg.yield %d : f32
    } -> tensor<64xf32>
    bufferization.materialize_in_destination %3 in writable %m : (tensor<64xf32>, memref<64xf32>) -> ()
  }
  func.return
}

// Operands of products stay, and so does a body that calls a function. A fill is done where it is overwritten.
// CHECK-LABEL: @kept
// CHECK-NOT: linalg.fill
// CHECK: func.call @effect
// CHECK: arith.negf
// CHECK: [[F:%.+]] = linalg.fill
// CHECK: linalg.matmul {{.*}} outs([[F]] : tensor<8x8xf32>)
// CHECK: [[G:%.+]] = linalg.fill
// CHECK: linalg.matmul {{.*}} outs([[G]] : tensor<8x8xf32>)
func.func @kept(%x: tensor<8x8xf32>, %m: f32) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %e0 = tensor.empty() : tensor<8x8xf32>
  %0 = linalg.fill ins(%m : f32) outs(%e0 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %e1 = tensor.empty() : tensor<8x8xf32>
  %1 = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x8xf32>) outs(%e1 : tensor<8x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %d = func.call @effect(%a) : (f32) -> f32
    linalg.yield %d : f32
  } -> tensor<8x8xf32>
  %e2 = tensor.empty() : tensor<8x8xf32>
  %2 = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]} ins(%1 : tensor<8x8xf32>) outs(%e2 : tensor<8x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %d = arith.negf %a : f32
    linalg.yield %d : f32
  } -> tensor<8x8xf32>
  %3 = linalg.matmul ins(%2, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%0 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %4 = linalg.matmul ins(%x, %2 : tensor<8x8xf32>, tensor<8x8xf32>) outs(%0 : tensor<8x8xf32>) -> tensor<8x8xf32>
  func.return %3, %4 : tensor<8x8xf32>, tensor<8x8xf32>
}
func.func private @effect(f32) -> f32

// An element of what is one number everywhere is that number.
// CHECK-LABEL: @element
// CHECK-NEXT: func.return %m : f32
func.func @element(%m: f32, %i: index) -> f32 {
  %e0 = tensor.empty() : tensor<8xf32>
  %0 = linalg.fill ins(%m : f32) outs(%e0 : tensor<8xf32>) -> tensor<8xf32>
  %1 = tensor.extract %0[%i] : tensor<8xf32>
  func.return %1 : f32
}
