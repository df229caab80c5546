// RUN: tlx-opt %s -p linalg-recognize-extrema | filecheck %s

// The maximum of inductor: NaN of the first element is kept by a test, and that of the second since nothing is greater.
// CHECK-LABEL: @keeps_nan
// CHECK: ^bb{{.*}}([[A:%.*]]: f32, [[B:%.*]]: f32):
// CHECK-NEXT: [[M:%.*]] = arith.maximumf [[A]], [[B]] : f32
// CHECK-NEXT: tt.reduce.return [[M]] : f32
tt.func public @keeps_nan(%x: tensor<64xf32>) -> f32 {
  %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %1 = arith.cmpf ogt, %a, %b : f32
    %2 = arith.cmpf une, %a, %a : f32
    %3 = arith.ori %1, %2 : i1
    %4 = arith.select %3, %a, %b : f32
    tt.reduce.return %4 : f32
  }) : (tensor<64xf32>) -> f32
  tt.return %0 : f32
}

// What nothing needs does not hide the operation.
// CHECK-LABEL: @sum
// CHECK: ^bb{{.*}}([[A:%.*]]: f32, [[B:%.*]]: f32):
// CHECK-NEXT: [[M:%.*]] = arith.addf [[A]], [[B]] : f32
// CHECK-NEXT: tt.reduce.return [[M]] : f32
tt.func public @sum(%x: tensor<64xf32>) -> f32 {
  %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %1 = arith.negf %a : f32
    %2 = arith.mulf %1, %b : f32
    %3 = arith.addf %a, %b : f32
    tt.reduce.return %3 : f32
  }) : (tensor<64xf32>) -> f32
  tt.return %0 : f32
}

// The same the other way round: not greater, and the second chosen.
// CHECK-LABEL: @minimum
// CHECK: arith.minimumf
// CHECK-NEXT: tt.reduce.return
tt.func public @minimum(%x: tensor<64xf16>) -> f16 {
  %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f16, %b: f16):
    %true = arith.constant true
    %1 = arith.cmpf ult, %b, %a : f16
    %2 = arith.cmpf ord, %a, %a : f16
    %3 = arith.andi %1, %2 : i1
    %4 = arith.xori %3, %true : i1
    %5 = arith.select %4, %a, %b : f16
    tt.reduce.return %5 : f16
  }) : (tensor<64xf16>) -> f16
  tt.return %0 : f16
}

// A number wins against NaN, on both sides.
// CHECK-LABEL: @drops_nan
// CHECK: arith.maxnumf
// CHECK-NEXT: tt.reduce.return
tt.func public @drops_nan(%x: tensor<64xf32>) -> f32 {
  %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %1 = arith.cmpf oge, %a, %b : f32
    %2 = arith.cmpf uno, %b, %b : f32
    %3 = arith.ori %1, %2 : i1
    %4 = arith.select %3, %a, %b : f32
    tt.reduce.return %4 : f32
  }) : (tensor<64xf32>) -> f32
  tt.return %0 : f32
}

// NaN of either side gives the second element: no operation does that, and it depends on the order.
// CHECK-LABEL: @plain_comparison
// CHECK: arith.cmpf ogt
// CHECK-NEXT: arith.select
tt.func public @plain_comparison(%x: tensor<64xf32>) -> f32 {
  %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %1 = arith.cmpf ogt, %a, %b : f32
    %2 = arith.select %1, %a, %b : f32
    tt.reduce.return %2 : f32
  }) : (tensor<64xf32>) -> f32
  tt.return %0 : f32
}

// CHECK-LABEL: @integers
// CHECK: arith.maxsi
// CHECK-NEXT: tt.reduce.return
// CHECK: arith.minui
// CHECK-NEXT: tt.reduce.return
tt.func public @integers(%x: tensor<64xi32>) -> (i32, i32) {
  %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %1 = arith.cmpi sgt, %a, %b : i32
    %2 = arith.select %1, %a, %b : i32
    tt.reduce.return %2 : i32
  }) : (tensor<64xi32>) -> i32
  %3 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %4 = arith.cmpi ule, %a, %b : i32
    %5 = arith.select %4, %a, %b : i32
    tt.reduce.return %5 : i32
  }) : (tensor<64xi32>) -> i32
  tt.return %0, %3 : i32, i32
}

// Signed and unsigned comparisons in one region, a sum, and the larger of other numbers than the elements.
// CHECK-LABEL: @others
// CHECK-COUNT-3: arith.select
// CHECK-NOT: arith.max
tt.func public @others(%x: tensor<64xi32>, %n: i32) -> (i32, i32, i32) {
  %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %1 = arith.cmpi sgt, %a, %b : i32
    %2 = arith.cmpi ugt, %a, %b : i32
    %3 = arith.andi %1, %2 : i1
    %4 = arith.select %3, %a, %b : i32
    tt.reduce.return %4 : i32
  }) : (tensor<64xi32>) -> i32
  %5 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %6 = arith.addi %a, %b : i32
    %7 = arith.cmpi sgt, %a, %b : i32
    %8 = arith.select %7, %6, %b : i32
    tt.reduce.return %8 : i32
  }) : (tensor<64xi32>) -> i32
  %9 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %10 = arith.cmpi sgt, %a, %n : i32
    %11 = arith.select %10, %a, %b : i32
    tt.reduce.return %11 : i32
  }) : (tensor<64xi32>) -> i32
  tt.return %0, %5, %9 : i32, i32, i32
}

// Two results, such as a maximum with its place, are left to the order of the elements.
// CHECK-LABEL: @with_place
// CHECK: arith.cmpf
tt.func public @with_place(%x: tensor<64xf32>, %i: tensor<64xi32>) -> (f32, i32) {
  %0, %1 = "tt.reduce"(%x, %i) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %h: i32, %b: f32, %j: i32):
    %2 = arith.cmpf ogt, %a, %b : f32
    %3 = arith.select %2, %a, %b : f32
    %4 = arith.select %2, %h, %j : i32
    tt.reduce.return %3, %4 : f32, i32
  }) : (tensor<64xf32>, tensor<64xi32>) -> (f32, i32)
  tt.return %0, %1 : f32, i32
}
