// RUN: tlx-opt %s -p linalg-split-pointers --split-input-file | filecheck %s
// RUN: tlx-opt %s -p linalg-split-pointers,linalg-lower-accesses,linalg-lower-tensors,linalg-lower-functions --split-input-file | filecheck %s --check-prefix=LOWERED

// A loop that advances pointers carries their offsets.
// CHECK-LABEL: @advance
// LOWERED-LABEL: @advance
tt.func public @advance(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %step = arith.constant dense<16> : tensor<16xi32>
  %zeros = arith.constant dense<0.0> : tensor<16xf32>
  %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %q = tt.addptr %p, %r : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  // CHECK: %[[FIRST:.*]] = arith.extsi %{{.*}} : tensor<16xi32> to tensor<16xi64>
  // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[OFFSET:.*]] = %[[FIRST]]) -> (tensor<16xf32>, tensor<16xi64>)
  %sum, %end = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zeros, %at = %q) -> (tensor<16xf32>, tensor<16x!tt.ptr<f32>>) : i32 {
    // CHECK: %[[BASE:.*]] = tt.splat %x
    // CHECK-NEXT: %[[AT:.*]] = tt.addptr %[[BASE]], %[[OFFSET]]
    // CHECK-NEXT: tt.load %[[AT]]
    %v = tt.load %at : tensor<16x!tt.ptr<f32>>
    %new = arith.addf %acc, %v : tensor<16xf32>
    %next = tt.addptr %at, %step : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    // CHECK: %[[STEP:.*]] = arith.extsi
    // CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[OFFSET]], %[[STEP]]
    // CHECK: scf.yield %{{.*}}, %[[NEXT]] : tensor<16xf32>, tensor<16xi64>
    scf.yield %new, %next : tensor<16xf32>, tensor<16x!tt.ptr<f32>>
  }
  %o = tt.splat %out : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %p2 = tt.addptr %o, %r : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  tt.store %p2, %sum : tensor<16x!tt.ptr<f32>>
  tt.return
}

// -----

// A base that a branch chooses is carried as a pointer, and becomes memory that is chosen.
// CHECK-LABEL: @branch
// LOWERED-LABEL: @branch
tt.func public @branch(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %c: i1) {
  %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  // CHECK: scf.if %c -> (!tt.ptr<f32>, tensor<16xi64>)
  // LOWERED: scf.if {{.*}} -> (memref<*xf32>, tensor<16xi64>)
  %p = scf.if %c -> (tensor<16x!tt.ptr<f32>>) {
    %a = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    %b = tt.addptr %a, %r : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    // CHECK: scf.yield %x,
    scf.yield %b : tensor<16x!tt.ptr<f32>>
  } else {
    %a = tt.splat %y : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    // CHECK: scf.yield %y,
    scf.yield %a : tensor<16x!tt.ptr<f32>>
  }
  %v = tt.load %p : tensor<16x!tt.ptr<f32>>
  %o = tt.splat %y : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  tt.store %o, %v : tensor<16x!tt.ptr<f32>>
  tt.return
}

// -----

// Elements with different bases are loaded base by base, each where its condition holds.
// CHECK-LABEL: @elements
tt.func public @elements(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %out: !tt.ptr<f32>) {
  %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %eight = arith.constant dense<8> : tensor<16xi32>
  // CHECK: %[[C:.*]] = arith.cmpi slt
  %c = arith.cmpi slt, %r, %eight : tensor<16xi32>
  %a = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %b = tt.splat %y : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %p = arith.select %c, %a, %b : tensor<16xi1>, tensor<16x!tt.ptr<f32>>
  %q = tt.addptr %p, %r : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  // CHECK: %[[ELSE:.*]] = arith.xori %[[C]]
  // CHECK: %[[X:.*]] = tt.load %{{.*}}, %[[C]]
  // CHECK: %[[Y:.*]] = tt.load %{{.*}}, %[[ELSE]]
  // CHECK: arith.select %[[ELSE]], %[[Y]], %[[X]]
  %v = tt.load %q : tensor<16x!tt.ptr<f32>>
  %o = tt.splat %out : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %s = tt.addptr %o, %r : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  tt.store %s, %v : tensor<16x!tt.ptr<f32>>
  tt.return
}

// -----

// Pointers side by side are accesses through each base, where the elements are its own.
// CHECK-LABEL: @cat
tt.func public @cat(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %q = tt.splat %y : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  // CHECK: %[[FIRST:.*]] = tt.cat %{{.*}}, %{{.*}} : tensor<4xi1> -> tensor<8xi1>
  // CHECK: %[[SECOND:.*]] = tt.cat %{{.*}}, %{{.*}} : tensor<4xi1> -> tensor<8xi1>
  %r = tt.cat %p, %q : tensor<4x!tt.ptr<f32>> -> tensor<8x!tt.ptr<f32>>
  // CHECK: tt.load %{{.*}}, %[[FIRST]] :
  // CHECK: tt.load %{{.*}}, %[[SECOND]] :
  // CHECK: arith.select %[[SECOND]]
  %v = tt.load %r : tensor<8x!tt.ptr<f32>>
  tt.return
}

// -----

// Offsets count elements of the narrower type up to an access, which is aligned to its own.
// CHECK-LABEL: @wider
tt.func public @wider(%x: !tt.ptr<i16>, %n: i32) -> i64 {
  // CHECK: %[[SHIFT:.*]] = arith.shrsi
  // CHECK-NEXT: %[[NEXT:.*]] = tt.addptr %x, %[[SHIFT]]
  // CHECK-NEXT: %[[BASE:.*]] = tt.bitcast %[[NEXT]] : !tt.ptr<i16> -> !tt.ptr<i64>
  // CHECK: %[[FOUR:.*]] = arith.constant 4 : i64
  // CHECK-NEXT: %[[STEP:.*]] = arith.muli %{{.*}}, %[[FOUR]] : i64
  // CHECK: %[[OFFSET:.*]] = arith.addi %{{.*}}, %{{.*}} : i64
  // CHECK: %[[REST:.*]] = arith.subi %[[OFFSET]], %[[SHIFT]] : i64
  // CHECK: %[[AT:.*]] = arith.shrsi %[[REST]]
  // CHECK: %[[POINTER:.*]] = tt.addptr %[[BASE]], %[[AT]]
  // CHECK: tt.load %[[POINTER]] : !tt.ptr<i64>
  %p = tt.addptr %x, %n : !tt.ptr<i16>, i32
  %q = tt.bitcast %p : !tt.ptr<i16> -> !tt.ptr<i64>
  %r = tt.addptr %q, %n : !tt.ptr<i64>, i32
  %v = tt.load %r : !tt.ptr<i64>
  tt.return %v : i64
}

// -----

// A tensor of pointers among the arguments of a kernel is one of addresses.
// CHECK-LABEL: @addresses
// CHECK-SAME: (%p: tensor<8xi64>)
tt.func public @addresses(%p: tensor<8x!tt.ptr<f32>>) {
  // CHECK: tt.int_to_ptr %{{.*}} : i64 -> !tt.ptr<f32>
  // CHECK: arith.divsi %p
  %v = tt.load %p : tensor<8x!tt.ptr<f32>>
  tt.return
}

// -----

// A file may hold several modules.
module {
  // CHECK-LABEL: @inner
  tt.func public @inner(%x: !tt.ptr<i1>) {
    // Bits are bytes in memory.
    // CHECK: %[[BYTE:.*]] = tt.load %{{.*}} : !tt.ptr<i8>
    // CHECK: arith.cmpi ne, %[[BYTE]]
    %v = tt.load %x : !tt.ptr<i1>
    // CHECK: %[[BIT:.*]] = arith.extui %{{.*}} : i1 to i8
    // CHECK: tt.store %{{.*}}, %[[BIT]] : !tt.ptr<i8>
    tt.store %x, %v : !tt.ptr<i1>
    tt.return
  }
}
