// RUN: tlx-opt %s -p linalg-bufferize | filecheck %s

#same = affine_map<(i) -> (i)>

// The accumulator is where it begins; each turn writes there, and a scalar goes on as it was.
// CHECK-LABEL: @accumulate
// CHECK: linalg.fill {{.*}} outs([[T:%.+]] : memref<8x8xf32>)
// CHECK: scf.for {{.*}} iter_args(%k = %zero) -> (index) {
// CHECK-NEXT: linalg.matmul ins(%x, %x : {{.*}}) outs([[T]] : memref<8x8xf32>)
// CHECK: scf.yield %{{.*}} : index
// CHECK: memref.copy [[T]], %y
func.func @accumulate(%x: tensor<8x8xf32>, %m: f32, %y: memref<8x8xf32>, %zero: index, %one: index, %n: index) -> index {
  %e = tensor.empty() : tensor<8x8xf32>
  %0 = linalg.fill ins(%m : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %1, %2 = scf.for %i = %zero to %n step %one iter_args(%a = %0, %k = %zero) -> (tensor<8x8xf32>, index) {
    %3 = linalg.matmul ins(%x, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%a : tensor<8x8xf32>) -> tensor<8x8xf32>
    %4 = arith.addi %k, %i : index
    scf.yield %3, %4 : tensor<8x8xf32>, index
  }
  bufferization.materialize_in_destination %1 in writable %y : (tensor<8x8xf32>, memref<8x8xf32>) -> ()
  func.return %2 : index
}

// What the loop begins with is used after: the loop has a copy.
// CHECK-LABEL: @begins_with_a_copy
// CHECK: memref.copy %x, [[T:%.+]] :
// CHECK-NEXT: scf.for
// CHECK-NEXT: linalg.matmul ins(%x, %x : {{.*}}) outs([[T]] : memref<8x8xf32>)
func.func @begins_with_a_copy(%x: tensor<8x8xf32>, %y: memref<8x8xf32>, %zero: index, %one: index, %n: index) {
  %1 = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (tensor<8x8xf32>) {
    %3 = linalg.matmul ins(%x, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%a : tensor<8x8xf32>) -> tensor<8x8xf32>
    scf.yield %3 : tensor<8x8xf32>
  }
  bufferization.materialize_in_destination %1 in writable %y : (tensor<8x8xf32>, memref<8x8xf32>) -> ()
  func.return
}

// Two tensors that change places do so by way of a third one.
// CHECK-LABEL: @exchange
// CHECK: scf.for
// CHECK: [[C:%.+]] = memref.alloc
// CHECK-NEXT: memref.copy [[A:%.+]], [[C]] :
// CHECK-NEXT: memref.copy [[B:%.+]], [[A]] :
// CHECK-NEXT: memref.copy [[C]], [[B]] :
func.func @exchange(%x: tensor<8xf32>, %y: tensor<8xf32>, %zero: index, %one: index, %n: index) -> (tensor<8xf32>, tensor<8xf32>) {
  %1, %2 = scf.for %i = %zero to %n step %one iter_args(%a = %x, %b = %y) -> (tensor<8xf32>, tensor<8xf32>) {
    scf.yield %b, %a : tensor<8xf32>, tensor<8xf32>
  }
  func.return %1, %2 : tensor<8xf32>, tensor<8xf32>
}

// What is loaded for the next turn is loaded into its place, unless the tensor that is there is used later.
// CHECK-LABEL: @next_turn
// CHECK: scf.for
// CHECK-NEXT: linalg.generic {{.*}} outs(%y
// CHECK: memref.copy %m, [[T:%.+]] :
// CHECK-NEXT: }
// CHECK: scf.for
// CHECK: memref.copy %m, [[U:%.+]] :
// CHECK: linalg.generic {{.*}} ins([[T]] : memref<8xf32>) outs(%y
// CHECK: memref.copy [[U]], [[T]] :
func.func @next_turn(%x: tensor<8xf32>, %m: memref<8xf32>, %y: memref<8xf32>, %zero: index, %one: index, %n: index) {
  %1 = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (tensor<8xf32>) {
    %e = tensor.empty() : tensor<8xf32>
    %2 = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel"]} ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%p: f32, %o: f32):
      %r = arith.negf %p : f32
      linalg.yield %r : f32
    } -> tensor<8xf32>
    bufferization.materialize_in_destination %2 in writable %y : (tensor<8xf32>, memref<8xf32>) -> ()
    %l = memref.alloc() : memref<8xf32>
    memref.copy %m, %l : memref<8xf32> to memref<8xf32>
    %b = bufferization.to_tensor %l restrict writable : memref<8xf32> to tensor<8xf32>
    scf.yield %b : tensor<8xf32>
  }
  %3 = scf.for %i = %zero to %n step %one iter_args(%a = %1) -> (tensor<8xf32>) {
    %l = memref.alloc() : memref<8xf32>
    memref.copy %m, %l : memref<8xf32> to memref<8xf32>
    %b = bufferization.to_tensor %l restrict writable : memref<8xf32> to tensor<8xf32>
    %e = tensor.empty() : tensor<8xf32>
    %4 = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel"]} ins(%a : tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%p: f32, %o: f32):
      %r = arith.negf %p : f32
      linalg.yield %r : f32
    } -> tensor<8xf32>
    bufferization.materialize_in_destination %4 in writable %y : (tensor<8xf32>, memref<8xf32>) -> ()
    scf.yield %b : tensor<8xf32>
  }
  func.return
}

// One branch changes an element in place, the other leaves the tensor as it is.
// CHECK-LABEL: @branch_in_place
// CHECK: scf.for
// CHECK-NEXT: scf.if %c {
// CHECK-NEXT: memref.store %m, [[T:%.+]][%i]
// CHECK-NEXT: }
// CHECK-NOT: memref.copy
// CHECK: memref.load [[T]][%zero]
func.func @branch_in_place(%c: i1, %m: f32, %zero: index, %one: index, %n: index) -> f32 {
  %e = tensor.empty() : tensor<8xf32>
  %x = linalg.fill ins(%m : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %1 = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (tensor<8xf32>) {
    %2 = scf.if %c -> (tensor<8xf32>) {
      %3 = tensor.insert %m into %a[%i] : tensor<8xf32>
      scf.yield %3 : tensor<8xf32>
    } else {
      scf.yield %a : tensor<8xf32>
    }
    scf.yield %2 : tensor<8xf32>
  }
  %4 = tensor.extract %1[%zero] : tensor<8xf32>
  func.return %4 : f32
}

// What one branch overwrites is as it was in the other one, which uses it after it made its result.
// CHECK-LABEL: @other_branch
// CHECK: memref.copy %y, [[X:%.+]] :
// CHECK: scf.if %c {
// CHECK-NEXT: memref.store %m, [[X]][%i]
// CHECK: } else {
// CHECK-NEXT: [[W:%.+]] = memref.alloc
// CHECK-NEXT: linalg.fill {{.*}} outs([[W]] : memref<8xf32>)
// CHECK-NEXT: memref.copy [[X]], %y
// CHECK-NEXT: memref.copy [[W]], [[X]]
// CHECK: memref.load [[X]][%i]
func.func @other_branch(%y: memref<8xf32>, %c: i1, %m: f32, %i: index) -> f32 {
  %x = bufferization.to_tensor %y : memref<8xf32> to tensor<8xf32>
  %1 = scf.if %c -> (tensor<8xf32>) {
    %2 = tensor.insert %m into %x[%i] : tensor<8xf32>
    scf.yield %2 : tensor<8xf32>
  } else {
    %e = tensor.empty() : tensor<8xf32>
    %3 = linalg.fill ins(%m : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
    bufferization.materialize_in_destination %x in writable %y : (tensor<8xf32>, memref<8xf32>) -> ()
    scf.yield %3 : tensor<8xf32>
  }
  %4 = tensor.extract %1[%i] : tensor<8xf32>
  func.return %4 : f32
}

// Both branches write to one new place where what they take is used after.
// CHECK-LABEL: @branches
// CHECK: [[R:%.+]] = memref.alloc
// CHECK: scf.if %c {
// CHECK-NEXT: memref.copy %x, [[R]] :
// CHECK-NEXT: memref.store %m, [[R]][%i]
// CHECK: } else {
// CHECK-NEXT: memref.copy %x, [[R]] :
// CHECK: memref.load %x[%i]
func.func @branches(%x: tensor<8xf32>, %c: i1, %m: f32, %i: index) -> (f32, f32) {
  %1 = scf.if %c -> (tensor<8xf32>) {
    %3 = tensor.insert %m into %x[%i] : tensor<8xf32>
    scf.yield %3 : tensor<8xf32>
  } else {
    scf.yield %x : tensor<8xf32>
  }
  %4 = tensor.extract %x[%i] : tensor<8xf32>
  %5 = tensor.extract %1[%i] : tensor<8xf32>
  func.return %4, %5 : f32, f32
}

// What a loop carries from its condition to its body is in one place.
// CHECK-LABEL: @while
// CHECK: scf.while (%{{.*}} = %zero) : (index) -> index {
// CHECK: scf.condition(%{{.*}}) %{{.*}} : index
// CHECK: memref.store %m, [[T:%.+]][%
// CHECK-NOT: memref.copy
// CHECK: memref.load [[T]][%zero]
func.func @while(%m: f32, %zero: index, %one: index, %n: index) -> f32 {
  %e = tensor.empty() : tensor<8xf32>
  %x = linalg.fill ins(%m : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %1, %2 = scf.while (%a = %x, %k = %zero) : (tensor<8xf32>, index) -> (tensor<8xf32>, index) {
    %c = arith.cmpi slt, %k, %n : index
    scf.condition(%c) %a, %k : tensor<8xf32>, index
  } do {
  ^bb0(%b: tensor<8xf32>, %j: index):
    %3 = tensor.insert %m into %b[%j] : tensor<8xf32>
    %4 = arith.addi %j, %one : index
    scf.yield %3, %4 : tensor<8xf32>, index
  }
  %5 = tensor.extract %1[%zero] : tensor<8xf32>
  func.return %5 : f32
}

// CHECK-LABEL: @chosen
// CHECK: scf.if %c {
// CHECK-NEXT: memref.copy %x, [[R:%.+]] :
// CHECK: } else {
// CHECK-NEXT: memref.copy %y, [[R]] :
func.func @chosen(%x: tensor<8xf32>, %y: tensor<8xf32>, %c: i1, %i: index) -> f32 {
  %0 = "arith.select"(%c, %x, %y) : (i1, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = tensor.extract %0[%i] : tensor<8xf32>
  func.return %1 : f32
}
