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

// A quotient times its divisor and the remainder are the number itself, whatever else is added to the quotient: one box.
// CHECK-LABEL: @row_by_row
// CHECK-NOT: scf.while
// CHECK: %[[MORE:.*]] = arith.muli %w, %c : i32
// CHECK: %[[BASE:.*]] = arith.addi %[[MORE]], %start : i32
// CHECK: %[[AT:.*]] = arith.index_cast %[[BASE]] : i32 to index
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [%[[AT]]], sizes: [32], strides: [1]
tt.func public @row_by_row(%x: !tt.ptr<f32>, %w: i32, %start: i32, %c: i32) -> tensor<32xf32> {
  %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %s = tt.splat %start : i32 -> tensor<32xi32>
  %n = arith.addi %r, %s : tensor<32xi32>
  %d = tt.splat %w : i32 -> tensor<32xi32>
  %image = tt.splat %c : i32 -> tensor<32xi32>
  %row = arith.divsi %n, %d : tensor<32xi32>
  %column = arith.remsi %n, %d : tensor<32xi32>
  %later = arith.addi %row, %image : tensor<32xi32>
  %moved = arith.muli %later, %d : tensor<32xi32>
  %at = arith.addi %moved, %column : tensor<32xi32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %q = tt.addptr %p, %at : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  %v = tt.load %q : tensor<32x!tt.ptr<f32>>
  tt.return %v : tensor<32xf32>
}

// A digit of a digit is put together, too, and then the two that are left. What is divided by another number stays.
// CHECK-LABEL: @three_digits
// CHECK-NOT: scf.while
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [32], strides: [1]
// CHECK: scf.while
// CHECK: arith.remsi %{{.*}}, %k
tt.func public @three_digits(%x: !tt.ptr<f32>, %w: i32, %h: i32, %k: i32) -> (tensor<32xf32>, tensor<32xf32>) {
  %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %d = tt.splat %w : i32 -> tensor<32xi32>
  %e = tt.splat %h : i32 -> tensor<32xi32>
  %f = tt.splat %k : i32 -> tensor<32xi32>
  %column = arith.remsi %r, %d : tensor<32xi32>
  %rest = arith.divsi %r, %d : tensor<32xi32>
  %row = arith.remsi %rest, %e : tensor<32xi32>
  %image = arith.divsi %rest, %e : tensor<32xi32>
  %a = arith.muli %image, %e : tensor<32xi32>
  %b = arith.addi %a, %row : tensor<32xi32>
  %c = arith.muli %b, %d : tensor<32xi32>
  %at = arith.addi %c, %column : tensor<32xi32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %q = tt.addptr %p, %at : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  %v = tt.load %q : tensor<32x!tt.ptr<f32>>
  %other = arith.remsi %r, %f : tensor<32xi32>
  %quotient = arith.muli %rest, %d : tensor<32xi32>
  %there = arith.addi %quotient, %other : tensor<32xi32>
  %s = tt.addptr %p, %there : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  %u = tt.load %s : tensor<32x!tt.ptr<f32>>
  tt.return %v, %u : tensor<32xf32>, tensor<32xf32>
}
