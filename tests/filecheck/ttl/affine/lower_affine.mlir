// RUN: tlx-opt %s -p ttl-lower-affine --split-input-file --verify-diagnostics | filecheck %s

// Loops with constant bounds, carried values, and bounds that depend on others: the largest lower and the smallest upper
// one counts. What is known of a loop is kept.
// CHECK-LABEL: @loops
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
func.func @loops(%x: index, %s: index) -> index {
  // CHECK: %[[R:.*]] = scf.for %i = %[[C0]] to %[[C8]] step %[[C2]] iter_args(%acc = %x) -> (index) {
  %r = affine.for %i = 0 to 8 step 2 iter_args(%acc = %x) -> (index) {
    // CHECK-NEXT: %[[TWICE:.*]] = arith.muli %i, %[[C2]] : index
    // CHECK-NEXT: %[[LB:.*]] = arith.addi %[[TWICE]], %s : index
    // CHECK-NEXT: %[[LARGEST:.*]] = arith.maxsi %[[LB]], %x : index
    // CHECK-NEXT: %[[SUM:.*]] = arith.addi %i, %s : index
    // CHECK-NEXT: %[[SMALLEST:.*]] = arith.minsi %[[C8]], %[[SUM]] : index
    // CHECK-NEXT: scf.for %j = %[[LARGEST]] to %[[SMALLEST]] step %[[C1]] {
    // CHECK-NEXT: "test.op"(%j) : (index) -> ()
    // CHECK-NEXT: } {test.kept}
    affine.for %j = max affine_map<(d0, d1)[s0] -> (d0 * 2 + s0, d1)>(%i, %x)[%s] to min affine_map<(d0)[s0] -> (8, d0 + s0)>(%i)[%s] {
      "test.op"(%j) : (index) -> ()
    } {test.kept}
    // CHECK: %[[NEXT:.*]] = arith.addi %acc, %i : index
    // CHECK-NEXT: scf.yield %[[NEXT]] : index
    %next = affine.apply affine_map<(d0, d1) -> (d0 + d1)> (%acc, %i)
    affine.yield %next : index
  }
  // CHECK: func.return %[[R]]
  func.return %r : index
}

// -----

// Quotients and remainders round down. Of what is not negative they are those of the hardware.
// CHECK-LABEL: @divisions
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C3:.*]] = arith.constant 3 : index
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
func.func @divisions(%x: index) {
  affine.for %i = 0 to 8 {
    // CHECK: %[[MOD:.*]] = arith.remsi %i, %[[C4]] : index
    // CHECK-NEXT: "test.op"(%[[MOD]])
    // CHECK-NEXT: %[[DIV:.*]] = arith.divsi %i, %[[C4]] : index
    // CHECK-NEXT: "test.op"(%[[DIV]])
    // CHECK-NEXT: %[[UP:.*]] = arith.addi %i, %[[C3]] : index
    // CHECK-NEXT: %[[CEIL:.*]] = arith.divsi %[[UP]], %[[C4]] : index
    // CHECK-NEXT: "test.op"(%[[CEIL]])
    %0 = affine.apply affine_map<(d0) -> (d0 mod 4)> (%i)
    "test.op"(%0) : (index) -> ()
    %1 = affine.apply affine_map<(d0) -> (d0 floordiv 4)> (%i)
    "test.op"(%1) : (index) -> ()
    %2 = affine.apply affine_map<(d0) -> (d0 ceildiv 4)> (%i)
    "test.op"(%2) : (index) -> ()
  }
  // CHECK: %[[REST:.*]] = arith.remsi %x, %[[C4]] : index
  // CHECK-NEXT: %[[BELOW:.*]] = arith.cmpi slt, %[[REST]], %[[C0]] : index
  // CHECK-NEXT: %[[RAISED:.*]] = arith.addi %[[REST]], %[[C4]] : index
  // CHECK-NEXT: %[[MOD:.*]] = arith.select %[[BELOW]], %[[RAISED]], %[[REST]] : index
  // CHECK-NEXT: %[[MULTIPLE:.*]] = arith.subi %x, %[[MOD]] : index
  // CHECK-NEXT: arith.divsi %[[MULTIPLE]], %[[C4]] : index
  %3 = affine.apply affine_map<(d0) -> (d0 floordiv 4)> (%x)
  "test.op"(%3) : (index) -> ()
  func.return
}

// -----

// A condition, and the least of several indices.
// CHECK-LABEL: @conditions
func.func @conditions(%x: index) {
  // CHECK: %[[TEN:.*]] = arith.addi %x, %{{.*}} : index
  // CHECK: %[[GE:.*]] = arith.cmpi sge, %[[TEN]], %{{.*}} : index
  // CHECK: %[[OFF:.*]] = arith.addi %x, %{{.*}} : index
  // CHECK: %[[EQ:.*]] = arith.cmpi eq, %[[OFF]], %{{.*}} : index
  // CHECK: %[[BOTH:.*]] = arith.andi %[[GE]], %[[EQ]] : i1
  // CHECK: %[[R:.*]] = scf.if %[[BOTH]] -> (index) {
  // CHECK-NEXT: scf.yield %x : index
  // CHECK-NEXT: } else {
  // CHECK-NEXT: scf.yield %{{.*}} : index
  %c3 = arith.constant 3 : index
  %r = "affine.if"(%x) <{condition = affine_set<(d0) : (d0 + 10 >= 0, d0 == 4)>}> ({
    affine.yield %x : index
  }, {
    affine.yield %c3 : index
  }) : (index) -> index
  // CHECK: %[[LEAST:.*]] = arith.minsi %{{.*}}, %[[R]] : index
  // CHECK-NEXT: "test.op"(%[[LEAST]])
  %m = affine.min affine_map<(d0) -> (7, d0)> (%r)
  "test.op"(%m) : (index) -> ()
  func.return
}

// -----

func.func @by_zero(%x: index) {
  %0 = affine.apply affine_map<(d0) -> (d0 mod 0)> (%x) // expected-error {{an affine index is divided by 0: expected a positive constant; divide with arith instead}}
  func.return
}

// -----

func.func @unknown(%m: memref<4xf32>, %i: index) {
  %0 = affine.load %m[%i] : memref<4xf32> // expected-error {{'affine.load' can't be lowered to scf and arith: use affine.for, affine.apply, affine.min or affine.if}}
  func.return
}
