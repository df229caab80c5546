// RUN: tlx-opt %s -p linalg-separate-uses --split-input-file | filecheck %s

// The range is an address and data: two of it. The splat is an address alone, the product data alone.
// CHECK-LABEL: @mixed
tt.func public @mixed(%x: !tt.ptr<i32>, %n: i32) {
  // CHECK: %[[META:.*]] = tt.make_range {linalg.use = "MetaUse"
  // CHECK: %[[DATA:.*]] = tt.make_range {linalg.use = "DataUse"
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  // CHECK: tt.splat %n {linalg.use = "MetaUse"}
  %s = tt.splat %n : i32 -> tensor<64xi32>
  // CHECK: arith.addi %[[META]], %{{.*}} {linalg.use = "MetaUse"}
  %o = arith.addi %r, %s : tensor<64xi32>
  %p = tt.splat %x : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
  // CHECK: tt.addptr {{.*}} {linalg.use = "MetaUse"}
  %q = tt.addptr %p, %o : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
  // CHECK: arith.muli %[[DATA]], %[[DATA]] {linalg.use = "DataUse"}
  %d = arith.muli %r, %r : tensor<64xi32>
  tt.store %q, %d : tensor<64x!tt.ptr<i32>>
  tt.return
}

// -----

// Through a loop: what is carried to be an address is one before it.
// CHECK-LABEL: @carried
tt.func public @carried(%x: !tt.ptr<i32>, %n: i32, %v: tensor<64xi32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // CHECK: tt.make_range {linalg.use = "MetaUse"
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %e = scf.for %i = %c0 to %n step %c1 iter_args(%o = %r) -> (tensor<64xi32>) : i32 {
    %p = tt.splat %x : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
    %q = tt.addptr %p, %o : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
    tt.store %q, %v : tensor<64x!tt.ptr<i32>>
    // CHECK: arith.addi {{.*}} {linalg.use = "MetaUse"}
    %t = arith.addi %o, %r : tensor<64xi32>
    scf.yield %t : tensor<64xi32>
  }
  tt.return
}
