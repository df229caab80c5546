// RUN: tlx-opt %s -p linalg-expand-block-pointers --split-input-file | filecheck %s

// A loop carries the place of the block alone: its tensor is always the same.
// CHECK-LABEL: @advances
tt.func public @advances(%x: !tt.ptr<f32>, %n: i64, %turns: i32) {
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zeros = arith.constant dense<0.0> : tensor<64xf32>
  // CHECK-NOT: tt.make_tensor_ptr
  %p = tt.make_tensor_ptr %x, [%n], [%one], [%c0] {order = array<i32: 0>} : <tensor<64xf32>>
  // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %zeros, %[[AT:.*]] = %c0) -> (tensor<64xf32>, i32)
  %sum, %last = scf.for %i = %c0 to %turns step %c1 iter_args(%s = %zeros, %q = %p) -> (tensor<64xf32>, !tt.ptr<tensor<64xf32>>) : i32 {
    // CHECK: %[[WIDE:.*]] = arith.extsi %[[AT]] : i32 to i64
    // CHECK: %[[FIRST:.*]] = tt.splat %[[WIDE]]
    // CHECK: %[[PLACE:.*]] = arith.addi %[[FIRST]], %{{.*}} : tensor<64xi64>
    // CHECK: arith.cmpi sge, %[[PLACE]]
    // CHECK: arith.cmpi slt, %[[PLACE]]
    // CHECK: %[[MASK:.*]] = arith.andi {{.*}} : tensor<64xi1>
    // CHECK: %[[BASES:.*]] = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    // CHECK: %[[POINTERS:.*]] = tt.addptr %[[BASES]]
    // CHECK: tt.load %[[POINTERS]], %[[MASK]], %{{.*}} : tensor<64x!tt.ptr<f32>>
    %v = tt.load %q {boundaryCheck = array<i32: 0>} : !tt.ptr<tensor<64xf32>>
    %t = arith.addf %s, %v : tensor<64xf32>
    // CHECK: %[[NEXT:.*]] = arith.addi %[[AT]], %c64 : i32
    // CHECK: scf.yield %{{.*}}, %[[NEXT]] : tensor<64xf32>, i32
    %next = tt.advance %q, [%c64] : <tensor<64xf32>>
    scf.yield %t, %next : tensor<64xf32>, !tt.ptr<tensor<64xf32>>
  }
  // Without a check there is no mask.
  // CHECK: tt.store %{{[^,]*}}, %{{[^,]*}} : tensor<64x!tt.ptr<f32>>
  tt.store %p, %sum : !tt.ptr<tensor<64xf32>>
  tt.return
}

// -----

// Where a branch chooses one of two tensors, that is carried, too.
// CHECK-LABEL: @chooses
tt.func public @chooses(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i64, %c: i1) {
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  // CHECK: scf.if %c -> (!tt.ptr<f32>, i64, i64, i32)
  %p = scf.if %c -> (!tt.ptr<tensor<8xf32>>) {
    // CHECK-NEXT: scf.yield %x, %n, %one, %c0
    %q = tt.make_tensor_ptr %x, [%n], [%one], [%c0] {order = array<i32: 0>} : <tensor<8xf32>>
    scf.yield %q : !tt.ptr<tensor<8xf32>>
  } else {
    // CHECK: scf.yield %y, %n, %n, %c0
    %q = tt.make_tensor_ptr %y, [%n], [%n], [%c0] {order = array<i32: 0>} : <tensor<8xf32>>
    scf.yield %q : !tt.ptr<tensor<8xf32>>
  }
  %v = tt.load %p : !tt.ptr<tensor<8xf32>>
  tt.store %p, %v : !tt.ptr<tensor<8xf32>>
  tt.return
}
