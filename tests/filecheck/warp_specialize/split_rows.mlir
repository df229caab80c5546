// RUN: tlx-opt %s -p tlx-ws-split-rows --split-input-file --verify-diagnostics | filecheck %s

// Each group has 64 rows of the product, of A, and of the offsets of both, and all of B and of its offsets, though the
// offsets of rows and columns are one value before.

// CHECK-LABEL: @product
// CHECK-SAME:    tlx.replicas = 2 : i32
// CHECK-NEXT:    [[GROUP:%.*]] = tlx.replica_id
// CHECK-NEXT:    [[ZERO:%.*]] = arith.constant dense<0.000000e+00> : tensor<64x128xf32>
// CHECK-NEXT:    [[OWN:%.*]] = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
// CHECK-NEXT:    [[LENGTH:%.*]] = arith.constant 64 : i32
// CHECK-NEXT:    [[FIRST:%.*]] = arith.muli [[GROUP]], [[LENGTH]] : i32
// CHECK-NEXT:    [[OFFSET:%.*]] = tt.splat [[FIRST]] : i32 -> tensor<64xi32>
// CHECK-NEXT:    [[ROWS:%.*]] = arith.addi [[OFFSET]], [[OWN]] : tensor<64xi32>
// CHECK-NEXT:    [[COLUMNS:%.*]] = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
// CHECK:         tt.expand_dims [[ROWS]] {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
// CHECK:         tt.expand_dims [[COLUMNS]] {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
// CHECK:         scf.for {{.*}} iter_args([[SUM:%.*]] = [[ZERO]]) -> (tensor<64x128xf32>)
// CHECK:           [[A:%.*]] = tt.descriptor_load %a[%{{.*}}, %{{.*}}] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
// CHECK-NEXT:      [[B:%.*]] = tt.descriptor_load %b[%k, %c0] : !tt.tensordesc<64x128xf16> -> tensor<64x128xf16>
// CHECK-NEXT:      tt.dot [[A]], [[B]], [[SUM]] : tensor<64x64xf16> * tensor<64x128xf16> -> tensor<64x128xf32>
// CHECK:         tt.store %{{.*}} : tensor<64x128x!tt.ptr<f32>>
builtin.module attributes {"ttg.num-warps" = 8 : i32} {
  tt.func public @product(%a: !tt.tensordesc<128x64xf16>, %b: !tt.tensordesc<64x128xf16>, %c: !tt.ptr<f32>, %n: i32) {
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %range = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %c128 = arith.constant dense<128> : tensor<128x1xi32>
    %rows = tt.expand_dims %range {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %first = arith.muli %rows, %c128 : tensor<128x1xi32>
    %columns = tt.expand_dims %range {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
    %i = tt.broadcast %first : tensor<128x1xi32> -> tensor<128x128xi32>
    %j = tt.broadcast %columns : tensor<1x128xi32> -> tensor<128x128xi32>
    %at = arith.addi %i, %j : tensor<128x128xi32>
    %base = tt.splat %c : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>>
    %pointers = tt.addptr %base, %at : tensor<128x128x!tt.ptr<f32>>, tensor<128x128xi32>
    %sum = scf.for %k = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
      %x = tt.descriptor_load %a[%c0, %k] : !tt.tensordesc<128x64xf16> -> tensor<128x64xf16>
      %y = tt.descriptor_load %b[%k, %c0] : !tt.tensordesc<64x128xf16> -> tensor<64x128xf16>
      %next = tt.dot %x, %y, %acc : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
      scf.yield %next : tensor<128x128xf32>
    }
    tt.store %pointers, %sum : tensor<128x128x!tt.ptr<f32>>
    tt.return
  }
}

// -----

// A value that all groups have is stored by the first one.

// CHECK-LABEL: @store_of_a_number
// CHECK:         [[GROUP:%.*]] = tlx.replica_id
// CHECK:         [[IS_FIRST:%.*]] = arith.cmpi eq, [[GROUP]], %{{.*}} : i32
// CHECK-NEXT:    scf.if [[IS_FIRST]] {
// CHECK-NEXT:      tt.store %p, %n : !tt.ptr<i32>
// CHECK-NEXT:    }
builtin.module attributes {"ttg.num-warps" = 8 : i32} {
  tt.func public @store_of_a_number(%a: !tt.tensordesc<128x64xf16>, %b: !tt.tensordesc<64x128xf16>, %c: !tt.tensordesc<128x128xf32>, %p: !tt.ptr<i32>, %n: i32) {
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %x = tt.descriptor_load %a[%n, %n] : !tt.tensordesc<128x64xf16> -> tensor<128x64xf16>
    %y = tt.descriptor_load %b[%n, %n] : !tt.tensordesc<64x128xf16> -> tensor<64x128xf16>
    %sum = tt.dot %x, %y, %zero : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
    tt.descriptor_store %c[%n, %n], %sum : !tt.tensordesc<128x128xf32>, tensor<128x128xf32>
    tt.store %p, %n : !tt.ptr<i32>
    tt.return
  }
}

// -----

// An atomic addition can't be done by each group; the module stays.

// CHECK-LABEL: @count
// CHECK-NOT:     tlx.replica_id
// CHECK:         tt.dot {{.*}} -> tensor<128x128xf32>
builtin.module attributes {"ttg.num-warps" = 8 : i32} {
  tt.func public @count(%a: !tt.tensordesc<128x64xf16>, %b: !tt.tensordesc<64x128xf16>, %c: !tt.tensordesc<128x128xf32>, %p: !tt.ptr<i32>, %n: i32) {
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %true = arith.constant true
    %x = tt.descriptor_load %a[%n, %n] : !tt.tensordesc<128x64xf16> -> tensor<128x64xf16>
    %y = tt.descriptor_load %b[%n, %n] : !tt.tensordesc<64x128xf16> -> tensor<64x128xf16>
    %sum = tt.dot %x, %y, %zero : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
    tt.descriptor_store %c[%n, %n], %sum : !tt.tensordesc<128x128xf32>, tensor<128x128xf32>
    // expected-remark@+1 {{one group of warps has all rows: each group of warps would do this 'tt.atomic_rmw', which must be done once}}
    %old = tt.atomic_rmw add, acq_rel, gpu, %p, %n, %true : (!tt.ptr<i32>, i32, i1) -> i32
    tt.return
  }
}

// -----

// All elements of the product are added up, so that neither its rows nor its columns can be shared.

// CHECK-LABEL: @sum_over_all
// CHECK-NOT:     tlx.replica_id
builtin.module attributes {"ttg.num-warps" = 8 : i32} {
  tt.func public @sum_over_all(%a: !tt.tensordesc<128x64xf16>, %b: !tt.tensordesc<64x128xf16>, %p: !tt.ptr<f32>, %n: i32) {
    %zero = arith.constant dense<0.0> : tensor<128x128xf32>
    %x = tt.descriptor_load %a[%n, %n] : !tt.tensordesc<128x64xf16> -> tensor<128x64xf16>
    %y = tt.descriptor_load %b[%n, %n] : !tt.tensordesc<64x128xf16> -> tensor<64x128xf16>
    %sum = tt.dot %x, %y, %zero : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
    %0 = "tt.reduce"(%sum) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %r: f32):
      %s = arith.addf %l, %r : f32
      tt.reduce.return %s : f32
    }) : (tensor<128x128xf32>) -> tensor<128xf32>
    // expected-remark@+1 {{one group of warps has all rows: 'tt.reduce' needs all rows of a value of type tensor<128xf32> at once; nor are the columns shared: 'tt.reduce' needs all columns of 'sum' at once}}
    %1 = "tt.reduce"(%0) <{axis = 0 : i32}> ({
    ^bb0(%l: f32, %r: f32):
      %s = arith.addf %l, %r : f32
      tt.reduce.return %s : f32
    }) : (tensor<128xf32>) -> f32
    tt.store %p, %1 : !tt.ptr<f32>
    tt.return
  }
}
