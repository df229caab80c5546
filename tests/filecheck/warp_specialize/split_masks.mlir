// RUN: tlx-opt %s -p tlx-ws-split-masks | filecheck %s

// All columns are below `length` in the first length / 64 turns: there the mask is left out.

// CHECK-LABEL: @columns
// CHECK:         [[MOST:%.*]] = arith.maxsi %length, {{%.*}} : i32
// CHECK:         [[TURNS:%.*]] = arith.divsi [[MOST]], {{%.*}} : i32
// CHECK:         %whole = arith.muli
// CHECK:         [[FIRST:%.*]] = scf.for {{%.*}} = %c0 to %whole
// CHECK-NOT:       arith.select
// CHECK:           tt.dot
// CHECK:         scf.for {{%.*}} = %whole to %end {{.*}} iter_args({{%.*}} = [[FIRST]])
// CHECK:           arith.select
tt.func public @columns(%a: tensor<64x64xf16>, %p: tensor<64x64x!tt.ptr<f32>>, %length: i32, %end: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %hidden = arith.constant dense<0xff800000> : tensor<64x64xf32>
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %lengths = tt.splat %length : i32 -> tensor<64xi32>
  %acc = scf.for %start = %c0 to %end step %c64 iter_args(%sum = %zero) -> (tensor<64x64xf32>) : i32 {
    %starts = tt.splat %start : i32 -> tensor<64xi32>
    %columns = arith.addi %starts, %r : tensor<64xi32>
    %keep = arith.cmpi slt, %columns, %lengths : tensor<64xi32>
    %row = tt.expand_dims %keep {axis = 0 : i32} : tensor<64xi1> -> tensor<1x64xi1>
    %mask = tt.broadcast %row : tensor<1x64xi1> -> tensor<64x64xi1>
    %scores = tt.dot %a, %a, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    %masked = arith.select %mask, %scores, %hidden : tensor<64x64xi1>, tensor<64x64xf32>
    %next = arith.addf %sum, %masked : tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  tt.store %p, %acc : tensor<64x64x!tt.ptr<f32>>
  tt.return
}

// Equality holds in no run of turns from the first on.

// CHECK-LABEL: @diagonal
// CHECK-COUNT-1: scf.for
// CHECK-NOT:     scf.for
tt.func public @diagonal(%a: tensor<64x64xf16>, %p: tensor<64x64x!tt.ptr<f32>>, %length: i32, %end: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %lengths = tt.splat %length : i32 -> tensor<64xi32>
  %acc = scf.for %start = %c0 to %end step %c64 iter_args(%sum = %zero) -> (tensor<64x64xf32>) : i32 {
    %starts = tt.splat %start : i32 -> tensor<64xi32>
    %columns = arith.addi %starts, %r : tensor<64xi32>
    %keep = arith.cmpi eq, %columns, %lengths : tensor<64xi32>
    %row = tt.expand_dims %keep {axis = 0 : i32} : tensor<64xi1> -> tensor<1x64xi1>
    %mask = tt.broadcast %row : tensor<1x64xi1> -> tensor<64x64xi1>
    %scores = tt.dot %a, %a, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    %masked = arith.select %mask, %scores, %zero : tensor<64x64xi1>, tensor<64x64xf32>
    %next = arith.addf %sum, %masked : tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  tt.store %p, %acc : tensor<64x64x!tt.ptr<f32>>
  tt.return
}
