// RUN: tlx-opt %s -p linalg-lower-accesses | filecheck %s

// The row and the column of a flat index: a box for each piece of a row. The mask keeps the columns from 1 on: the box
// begins there, and the next piece where the row ends.
// CHECK-LABEL: @row_and_column
// CHECK: scf.while
// CHECK: ^bb0(%[[P:.*]]: index):
// CHECK: %[[COLUMN:.*]] = arith.remsi %[[AT:.*]], %w : i32
// CHECK: %[[ROW:.*]] = arith.divsi %[[AT]], %w : i32
// CHECK: %[[LATER:.*]] = arith.maxsi
// CHECK-NEXT: %[[FIRST:.*]] = arith.minsi %[[LATER]], %[[LENGTH:.*]] : index
// CHECK-NEXT: %[[SIZE:.*]] = arith.subi %[[LENGTH]], %[[FIRST]]
// CHECK: %[[START:.*]] = arith.addi %[[P]], %[[FIRST]]
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [%{{.*}}], sizes: [%[[SIZE]]], strides: [1]
// CHECK: memref.subview %{{.*}}[%[[START]]] [%[[SIZE]]] [1]
// CHECK: memref.copy
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[P]], %[[LENGTH]] : index
// CHECK-NEXT: scf.yield %[[NEXT]]
tt.func public @row_and_column(%x: !tt.ptr<f32>, %w: i32, %step: i32) -> tensor<32xf32> {
  %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %d = tt.splat %w : i32 -> tensor<32xi32>
  %row = arith.divsi %r, %d : tensor<32xi32>
  %column = arith.remsi %r, %d : tensor<32xi32>
  %s = tt.splat %step : i32 -> tensor<32xi32>
  %moved = arith.muli %row, %s : tensor<32xi32>
  %at = arith.addi %moved, %column : tensor<32xi32>
  %ones = arith.constant dense<1> : tensor<32xi32>
  %inside = arith.cmpi sge, %column, %ones : tensor<32xi32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %q = tt.addptr %p, %at : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  %v = tt.load %q, %inside : tensor<32x!tt.ptr<f32>>
  tt.return %v : tensor<32xf32>
}

// The quotient by 2 changes too often: its elements are visited.
// CHECK-LABEL: @pairs
// CHECK-NOT: scf.while
// CHECK: scf.for
// CHECK: tensor.extract
tt.func public @pairs(%x: !tt.ptr<f32>) -> tensor<32xf32> {
  %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %d = arith.constant dense<2> : tensor<32xi32>
  %at = arith.divsi %r, %d : tensor<32xi32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %q = tt.addptr %p, %at : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  %v = tt.load %q : tensor<32x!tt.ptr<f32>>
  tt.return %v : tensor<32xf32>
}
