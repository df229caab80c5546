// RUN: tlx-opt %s -p linalg-carry-structure --split-input-file | filecheck %s

// Offsets that a branch chooses: their base is chosen, and their stride where the two differ.
// CHECK-LABEL: @branch
tt.func @branch(%c: i1, %n: i64, %x: !tt.ptr<f32>) -> tensor<16xf32> {
  %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %w = arith.extsi %r : tensor<16xi32> to tensor<16xi64>
  %two = arith.constant dense<2> : tensor<16xi64>
  %s = tt.splat %n : i64 -> tensor<16xi64>
  // CHECK: %[[C1:.*]] = arith.constant 1 : i64
  // CHECK: %[[R:.*]], %[[STRIDE:.*]] = scf.if %c -> (i64, i64) {
  %o = scf.if %c -> (tensor<16xi64>) {
    // CHECK: scf.yield %n, %[[C1]] : i64, i64
    %a = arith.addi %w, %s : tensor<16xi64>
    scf.yield %a : tensor<16xi64>
  } else {
    // CHECK: scf.yield %{{.*}}, %{{.*}} : i64, i64
    %b = arith.muli %w, %two : tensor<16xi64>
    scf.yield %b : tensor<16xi64>
  }
  // CHECK: tt.splat %[[R]] : i64 -> tensor<16xi64>
  // CHECK: tt.splat %[[STRIDE]] : i64 -> tensor<16xi64>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %q = tt.addptr %p, %o : tensor<16x!tt.ptr<f32>>, tensor<16xi64>
  %v = tt.load %q : tensor<16x!tt.ptr<f32>>
  tt.return %v : tensor<16xf32>
}

// -----

// A mask that a loop carries: its bounds, and whether it is there at all.
// CHECK-LABEL: @mask
tt.func @mask(%n: i32, %c: i1) -> tensor<16xi1> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %all = tt.splat %c : i1 -> tensor<16xi1>
  // CHECK: scf.for {{.*}} -> (i32, i32, i1)
  %m = scf.for %i = %c0 to %n step %c1 iter_args(%x = %all) -> (tensor<16xi1>) : i32 {
    %s = tt.splat %i : i32 -> tensor<16xi32>
    %y = arith.cmpi slt, %r, %s : tensor<16xi32>
    scf.yield %y : tensor<16xi1>
  }
  tt.return %m : tensor<16xi1>
}

// -----

// What is opaque on one of the ways stays.
// CHECK-LABEL: @opaque
tt.func @opaque(%c: i1, %t: tensor<16xi32>) -> tensor<16xi32> {
  %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  // CHECK: scf.if %c -> (tensor<16xi32>)
  %o = scf.if %c -> (tensor<16xi32>) {
    scf.yield %t : tensor<16xi32>
  } else {
    scf.yield %r : tensor<16xi32>
  }
  tt.return %o : tensor<16xi32>
}
