// RUN: tlx-opt %s -p linalg-lower-accesses --split-input-file --verify-diagnostics | filecheck %s

// The two ends of a mask: the box begins at the lower one.
// CHECK-LABEL: @both_ends
tt.func public @both_ends(%x: !tt.ptr<f32>, %low: i32, %high: i32) -> tensor<32xf32> {
  %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %l = tt.splat %low : i32 -> tensor<32xi32>
  %h = tt.splat %high : i32 -> tensor<32xi32>
  %a = arith.cmpi sge, %r, %l : tensor<32xi32>
  // The other order of the operands.
  %b = arith.cmpi sgt, %h, %r : tensor<32xi32>
  %m = arith.andi %a, %b : tensor<32xi1>
  %zeros = arith.constant dense<0.0> : tensor<32xf32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %q = tt.addptr %p, %r : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  // CHECK: %[[LOW:.*]] = arith.index_cast %low
  // CHECK: %[[ABOVE:.*]] = arith.maxsi %[[LOW]], %{{.*}} : index
  // CHECK: %[[FIRST:.*]] = arith.minsi %[[ABOVE]], %{{.*}} : index
  // CHECK: %[[HIGH:.*]] = arith.index_cast %high
  // CHECK: %[[END:.*]] = arith.minsi %[[HIGH]], %{{.*}} : index
  // CHECK: %[[LEFT:.*]] = arith.subi %[[END]], %[[FIRST]] : index
  // CHECK: %[[COUNT:.*]] = arith.maxsi %[[LEFT]], %{{.*}} : index
  // CHECK: %[[ALLOC:.*]] = memref.alloc() : memref<32xf32>
  // CHECK: linalg.fill
  // CHECK: %[[VIEW:.*]] = memref.reinterpret_cast %{{.*}} to offset: [%[[FIRST]]], sizes: [%[[COUNT]]], strides: [1]
  // CHECK: %[[PART:.*]] = memref.subview %[[ALLOC]][%[[FIRST]]] [%[[COUNT]]] [1]
  // CHECK: memref.copy %[[VIEW]], %[[PART]]
  %v = tt.load %q, %m, %zeros : tensor<32x!tt.ptr<f32>>
  tt.return %v : tensor<32xf32>
}

// -----

// A remainder: the box is cut where it begins anew.
// CHECK-LABEL: @wraps
tt.func public @wraps(%x: !tt.ptr<f32>, %start: i32, %n: i32) -> tensor<32xf32> {
  %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %s = tt.splat %start : i32 -> tensor<32xi32>
  %a = arith.addi %s, %r : tensor<32xi32>
  %m = tt.splat %n : i32 -> tensor<32xi32>
  %o = arith.remsi %a, %m : tensor<32xi32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %q = tt.addptr %p, %o : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  // CHECK: scf.while (%{{.*}} = %{{.*}}) : (index) -> index
  // CHECK: ^bb0(%[[AT:.*]]: index):
  // CHECK: %[[REST:.*]] = arith.remsi %{{.*}}, %{{.*}} : i32
  // CHECK: %[[LENGTH:.*]] = arith.minsi
  // CHECK: memref.reinterpret_cast %{{.*}} to offset: [%{{.*}}], sizes: [%{{.*}}], strides: [1]
  // CHECK: memref.copy
  // CHECK: scf.yield
  %v = tt.load %q : tensor<32x!tt.ptr<f32>>
  tt.return %v : tensor<32xf32>
}

// -----

// A gather of rows: one dimension is visited index by index, the rest is a box.
// CHECK-LABEL: @rows
tt.func public @rows(%x: !tt.ptr<f32>, %at: tensor<4xi32>, %stride: i32) -> tensor<4x16xf32> {
  %c = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %s = tt.splat %stride : i32 -> tensor<4xi32>
  %row = arith.muli %at, %s : tensor<4xi32>
  %row2 = tt.expand_dims %row {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
  %rows = tt.broadcast %row2 : tensor<4x1xi32> -> tensor<4x16xi32>
  %col2 = tt.expand_dims %c {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %cols = tt.broadcast %col2 : tensor<1x16xi32> -> tensor<4x16xi32>
  %o = arith.addi %rows, %cols : tensor<4x16xi32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<4x16x!tt.ptr<f32>>
  %q = tt.addptr %p, %o : tensor<4x16x!tt.ptr<f32>>, tensor<4x16xi32>
  // CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
  // CHECK: %[[INDEX:.*]] = tensor.extract %at[%[[I]]] : tensor<4xi32>
  // CHECK: memref.reinterpret_cast %{{.*}} to offset: [%{{.*}}], sizes: [1, 16], strides: [%{{.*}}, 1]
  // CHECK: memref.subview %{{.*}}[%[[I]], 0] [1, 16] [1, 1]
  // CHECK: memref.copy
  // expected-remark @below {{'tt.load' is half-structured: along dimension 0 its address is an argument that control flow carries}}
  %v = tt.load %q : tensor<4x16x!tt.ptr<f32>>
  tt.return %v : tensor<4x16xf32>
}

// -----

// A mask of its own for each element: nothing is accessed where it is off.
// CHECK-LABEL: @any_mask
tt.func public @any_mask(%x: !tt.ptr<f32>, %m: tensor<8xi1>, %v: tensor<8xf32>) {
  %r = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %q = tt.addptr %p, %r : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  // CHECK: scf.for %[[I:.*]] =
  // CHECK: %[[BIT:.*]] = tensor.extract %m[%[[I]]] : tensor<8xi1>
  // CHECK-NEXT: scf.if %[[BIT]] {
  // CHECK: %[[V:.*]] = tensor.extract %v[%[[I]]]
  // CHECK: affine.store %[[V]]
  // expected-remark @below {{'tt.store' is unstructured: along dimension 0 its mask is an argument that control flow carries}}
  tt.store %q, %v, %m : tensor<8x!tt.ptr<f32>>
  tt.return
}

// -----

// A bound that could wrap around is asserted; what can't is not.
// CHECK-LABEL: @claims
tt.func public @claims(%x: !tt.ptr<f32>, %start: i32, %n: i32, %v: tensor<8xf32>) {
  %r = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %s = tt.splat %start : i32 -> tensor<8xi32>
  %a = arith.addi %s, %r : tensor<8xi32>
  %b = tt.splat %n : i32 -> tensor<8xi32>
  %m = arith.cmpi slt, %a, %b : tensor<8xi32>
  %m2 = arith.cmpi slt, %r, %b : tensor<8xi32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %q = tt.addptr %p, %a : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  // CHECK: %[[MOST:.*]] = arith.constant 2147483640 : i32
  // CHECK: %[[HOLDS:.*]] = arith.cmpi sle, %start, %[[MOST]] : i32
  // CHECK: cf.assert %[[HOLDS]]
  // CHECK-NOT: cf.assert
  tt.store %q, %v, %m : tensor<8x!tt.ptr<f32>>
  tt.store %q, %v, %m2 : tensor<8x!tt.ptr<f32>>
  tt.return
}

// -----

// A store under a prefix: the part of the tensor goes to the part of the view.
// CHECK-LABEL: @masked_store
tt.func public @masked_store(%x: !tt.ptr<f32>, %n: i32, %v: tensor<64xf32>) {
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %h = tt.splat %n : i32 -> tensor<64xi32>
  %m = arith.cmpi slt, %r, %h : tensor<64xi32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %q = tt.addptr %p, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  // CHECK: %[[COUNT:.*]] = arith.maxsi
  // CHECK: %[[VIEW:.*]] = memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [64], strides: [1]
  // CHECK-NEXT: %[[PART:.*]] = memref.subview %[[VIEW]][0] [%[[COUNT]]] [1]
  // CHECK-NEXT: %[[SLICE:.*]] = tensor.extract_slice %v[0] [%[[COUNT]]] [1] : tensor<64xf32> to tensor<?xf32>
  // CHECK-NEXT: bufferization.materialize_in_destination %[[SLICE]] in writable %[[PART]]
  tt.store %q, %v, %m : tensor<64x!tt.ptr<f32>>
  tt.return
}

// -----

// What a mask hides is 0 where the load does not say what else.
// CHECK-LABEL: @zeros
tt.func public @zeros(%x: !tt.ptr<bf16>, %n: i32) -> tensor<32xbf16> {
  %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %h = tt.splat %n : i32 -> tensor<32xi32>
  %m = arith.cmpi slt, %r, %h : tensor<32xi32>
  %p = tt.splat %x : !tt.ptr<bf16> -> tensor<32x!tt.ptr<bf16>>
  %q = tt.addptr %p, %r : tensor<32x!tt.ptr<bf16>>, tensor<32xi32>
  // CHECK: %[[ALLOC:.*]] = memref.alloc() : memref<32xbf16>
  // CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : bf16
  // CHECK: linalg.fill ins(%[[ZERO]] : bf16) outs(%[[ALLOC]]
  // CHECK: memref.copy
  %v = tt.load %q, %m : tensor<32x!tt.ptr<bf16>>
  tt.return %v : tensor<32xbf16>
}

// -----

// A mask that hides nothing costs nothing.
// CHECK-LABEL: @full
tt.func public @full(%x: !tt.ptr<f32>) -> (tensor<32xf32>, tensor<32xf32>) {
  %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %low = arith.constant dense<-3> : tensor<32xi32>
  %high = arith.constant dense<32> : tensor<32xi32>
  %a = arith.cmpi sge, %r, %low : tensor<32xi32>
  %b = arith.cmpi slt, %r, %high : tensor<32xi32>
  %m = arith.andi %a, %b : tensor<32xi1>
  %ones = arith.constant dense<1.0> : tensor<32xf32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %q = tt.addptr %p, %r : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  // CHECK-NOT: linalg.fill
  // CHECK: memref.copy
  %v = tt.load %q, %m : tensor<32x!tt.ptr<f32>>
  // CHECK-NOT: linalg.fill
  // CHECK: memref.copy
  %w = tt.load %q, %b, %ones : tensor<32x!tt.ptr<f32>>
  tt.return %v, %w : tensor<32xf32>, tensor<32xf32>
}

// -----

// One element less is hidden.
// CHECK-LABEL: @almost_full
tt.func public @almost_full(%x: !tt.ptr<f32>) -> tensor<32xf32> {
  %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %high = arith.constant dense<31> : tensor<32xi32>
  %m = arith.cmpi slt, %r, %high : tensor<32xi32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
  %q = tt.addptr %p, %r : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
  // CHECK: linalg.fill
  // CHECK: memref.copy
  %v = tt.load %q, %m : tensor<32x!tt.ptr<f32>>
  tt.return %v : tensor<32xf32>
}

// -----

// A scalar, here a pointer: the null pointer where the mask is off.
// CHECK-LABEL: @pointer
tt.func public @pointer(%x: !tt.ptr<!tt.ptr<f32>>, %m: i1) -> !tt.ptr<f32> {
  // CHECK: scf.if %m
  // CHECK: } else {
  // CHECK: %[[ZERO:.*]] = arith.constant 0 : i64
  // CHECK: %[[NULL:.*]] = tt.int_to_ptr %[[ZERO]]
  // CHECK: scf.yield %[[NULL]]
  %v = tt.load %x, %m : !tt.ptr<!tt.ptr<f32>>
  tt.return %v : !tt.ptr<f32>
}

// -----

// The old value of what an atomic operation leaves out is 0, too, where something asks for it.
// CHECK-LABEL: @old_values
tt.func public @old_values(%x: !tt.ptr<f32>, %n: i32, %v: tensor<8xf32>) -> tensor<8xf32> {
  %r = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %h = tt.splat %n : i32 -> tensor<8xi32>
  %m = arith.cmpi slt, %r, %h : tensor<8xi32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %q = tt.addptr %p, %r : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  // CHECK: linalg.fill
  // CHECK: memref.atomic_rmw
  %old = tt.atomic_rmw fadd, acq_rel, gpu, %q, %v, %m : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>, tensor<8xi1>) -> tensor<8xf32>
  // CHECK-NOT: linalg.fill
  // CHECK: memref.atomic_rmw
  %unused = tt.atomic_rmw fadd, acq_rel, gpu, %q, %v, %m : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>, tensor<8xi1>) -> tensor<8xf32>
  tt.return %old : tensor<8xf32>
}
