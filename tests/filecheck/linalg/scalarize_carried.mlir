// RUN: tlx-opt %s -p linalg-scalarize-carried --split-input-file | filecheck %s

// What each turn adds is the same for all elements: the loop carries a number.
// CHECK-LABEL: @uniform
tt.func public @uniform(%first: tensor<64xi64>, %by: i32, %n: i32) -> tensor<64xi64> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // CHECK: %[[BY:.*]] = arith.extsi %by : i32 to i64
  // CHECK: %[[END:.*]] = scf.for {{.*}} iter_args(%[[D:.*]] = %{{.*}}) -> (i64)
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %first) -> (tensor<64xi64>) : i32 {
    %s = tt.splat %by : i32 -> tensor<64xi32>
    %w = arith.extsi %s : tensor<64xi32> to tensor<64xi64>
    %y = arith.addi %x, %w : tensor<64xi64>
    // CHECK: %[[NEXT:.*]] = arith.addi %[[D]], %[[BY]] : i64
    // CHECK-NEXT: scf.yield %[[NEXT]] : i64
    scf.yield %y : tensor<64xi64>
  }
  // CHECK: %[[SPLAT:.*]] = tt.splat %[[END]] : i64 -> tensor<64xi64>
  // CHECK-NEXT: %[[RESULT:.*]] = arith.addi %first, %[[SPLAT]]
  // CHECK-NEXT: tt.return %[[RESULT]]
  tt.return %r : tensor<64xi64>
}

// -----

// One number through two loops, the inner one of which goes on where the outer one is.
// CHECK-LABEL: @nest
tt.func public @nest(%first: tensor<8xi32>, %n: i32) -> tensor<8xi32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant dense<1> : tensor<8xi32>
  // CHECK: scf.for {{.*}} iter_args(%[[OUTER:.*]] = %{{.*}}) -> (i32)
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %first) -> (tensor<8xi32>) : i32 {
    // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[OUTER]]) -> (i32)
    %s = scf.for %j = %c0 to %n step %c1 iter_args(%y = %x) -> (tensor<8xi32>) : i32 {
      %z = arith.addi %y, %one : tensor<8xi32>
      scf.yield %z : tensor<8xi32>
    }
    %t = arith.subi %s, %one : tensor<8xi32>
    scf.yield %t : tensor<8xi32>
  }
  tt.return %r : tensor<8xi32>
}

// -----

// Elements that move apart stay a tensor.
// CHECK-LABEL: @apart
tt.func public @apart(%first: tensor<8xi32>, %n: i32) -> tensor<8xi32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %range = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  // CHECK: scf.for {{.*}} -> (tensor<8xi32>)
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %first) -> (tensor<8xi32>) : i32 {
    %y = arith.addi %x, %range : tensor<8xi32>
    scf.yield %y : tensor<8xi32>
  }
  tt.return %r : tensor<8xi32>
}
