// RUN: tlx-opt %s -p linalg-reduce-in-loops --split-input-file | filecheck %s

// Each turn reduces its elements; those that the mask leaves out are the start.
// CHECK-LABEL: @sum
// CHECK: [[ZERO:%.*]] = arith.constant 0.000000e+00 : f32
// CHECK: [[SUM:%.*]] = scf.for {{.*}} iter_args([[ACC:%.*]] = [[ZERO]]) -> (f32)
// CHECK: [[Z:%.*]] = arith.constant dense<0.000000e+00>
// CHECK: [[KEPT:%.*]] = arith.select %m, %x, [[Z]]
// CHECK: [[PART:%.*]] = "tt.reduce"([[KEPT]]) <{axis = 0 : i32}>
// CHECK: [[NEXT:%.*]] = arith.addf [[ACC]], [[PART]] : f32
// CHECK-NEXT: scf.yield [[NEXT]] : f32
// CHECK: tt.return [[SUM]] : f32
tt.func public @sum(%x: tensor<2048xf32>, %m: tensor<2048xi1>, %n: i32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zeros = arith.constant dense<0.0> : tensor<2048xf32>
  %sums = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zeros) -> (tensor<2048xf32>) : i32 {
    %more = arith.addf %acc, %x : tensor<2048xf32>
    %next = arith.select %m, %more, %acc : tensor<2048xi1>, tensor<2048xf32>
    scf.yield %next : tensor<2048xf32>
  }
  %r = "tt.reduce"(%sums) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<2048xf32>) -> f32
  tt.return %r : f32
}

// -----

// A load with the same mask gives the start already. Rows of a block are reduced to a tensor.
// CHECK-LABEL: @loaded
// CHECK: scf.for {{.*}} -> (tensor<4xf32>)
// CHECK: [[X:%.*]] = tt.load
// CHECK-NEXT: "tt.reduce"([[X]]) <{axis = 1 : i32}>
tt.func public @loaded(%p: tensor<4x64x!tt.ptr<f32>>, %m: tensor<4x64xi1>, %n: i32) -> tensor<4xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zeros = arith.constant dense<0.0> : tensor<4x64xf32>
  %sums = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zeros) -> (tensor<4x64xf32>) : i32 {
    %x = tt.load %p, %m, %zeros : tensor<4x64x!tt.ptr<f32>>
    %more = arith.addf %x, %acc : tensor<4x64xf32>
    %next = arith.select %m, %more, %acc : tensor<4x64xi1>, tensor<4x64xf32>
    scf.yield %next : tensor<4x64xf32>
  }
  %r = "tt.reduce"(%sums) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<4x64xf32>) -> tensor<4xf32>
  tt.return %r : tensor<4xf32>
}

// -----

// A maximum by comparisons, from any start.
// CHECK-LABEL: @maximum
// CHECK: [[START:%.*]] = arith.constant 3.000000e+00 : f32
// CHECK: scf.for {{.*}} iter_args([[ACC:%.*]] = [[START]]) -> (f32)
// CHECK-NOT: arith.cmpf
// CHECK: [[PART:%.*]] = "tt.reduce"(%x)
// CHECK: arith.maximumf [[ACC]], [[PART]] : f32
tt.func public @maximum(%x: tensor<64xf32>, %n: i32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %start = arith.constant dense<3.0> : tensor<64xf32>
  %top = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %start) -> (tensor<64xf32>) : i32 {
    %g = arith.cmpf ogt, %acc, %x : tensor<64xf32>
    %u = arith.cmpf une, %acc, %acc : tensor<64xf32>
    %c = arith.ori %g, %u : tensor<64xi1>
    %next = arith.select %c, %acc, %x : tensor<64xi1>, tensor<64xf32>
    scf.yield %next : tensor<64xf32>
  }
  %r = "tt.reduce"(%top) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.maximumf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<64xf32>) -> f32
  tt.return %r : f32
}

// -----

// A start that counts once for each accumulator, and an accumulator that something else needs.
// CHECK-LABEL: @not_from_zero
// CHECK: scf.for {{.*}} -> (tensor<64xf32>, tensor<64xf32>)
tt.func public @not_from_zero(%x: tensor<64xf32>, %n: i32) -> (f32, f32, tensor<64xf32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %ones = arith.constant dense<1.0> : tensor<64xf32>
  %zeros = arith.constant dense<0.0> : tensor<64xf32>
  %p, %q = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %ones, %other = %zeros) -> (tensor<64xf32>, tensor<64xf32>) : i32 {
    %more = arith.addf %acc, %x : tensor<64xf32>
    %most = arith.addf %other, %x : tensor<64xf32>
    scf.yield %more, %most : tensor<64xf32>, tensor<64xf32>
  }
  %r = "tt.reduce"(%p) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<64xf32>) -> f32
  %t = "tt.reduce"(%q) <{axis = 0 : i32}> ({
  ^bb0(%c: f32, %d: f32):
    %s = arith.addf %c, %d : f32
    tt.reduce.return %s : f32
  }) : (tensor<64xf32>) -> f32
  tt.return %r, %t, %q : f32, f32, tensor<64xf32>
}

// -----

// Another operation in the loop than in the reduction, one that reads its accumulators twice, and steps that round.
// CHECK-LABEL: @other_operations
// CHECK: scf.for {{.*}} -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf16>)
tt.func public @other_operations(%x: tensor<64xf32>, %h: tensor<64xf16>, %n: i32) -> (f32, f32, f16) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zeros = arith.constant dense<0.0> : tensor<64xf32>
  %none = arith.constant dense<0.0> : tensor<64xf16>
  %p, %q, %o = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zeros, %other = %zeros, %short = %none) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xf16>) : i32 {
    %more = arith.maximumf %acc, %x : tensor<64xf32>
    %twice = arith.mulf %other, %x : tensor<64xf32>
    %most = arith.addf %other, %twice : tensor<64xf32>
    %rounded = arith.addf %short, %h : tensor<64xf16>
    scf.yield %more, %most, %rounded : tensor<64xf32>, tensor<64xf32>, tensor<64xf16>
  }
  %r = "tt.reduce"(%p) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<64xf32>) -> f32
  %t = "tt.reduce"(%q) <{axis = 0 : i32}> ({
  ^bb0(%c: f32, %d: f32):
    %s = arith.addf %c, %d : f32
    tt.reduce.return %s : f32
  }) : (tensor<64xf32>) -> f32
  %u = "tt.reduce"(%o) <{axis = 0 : i32}> ({
  ^bb0(%e: f16, %f: f16):
    %s = arith.addf %e, %f : f16
    tt.reduce.return %s : f16
  }) : (tensor<64xf16>) -> f16
  tt.return %r, %t, %u : f32, f32, f16
}
