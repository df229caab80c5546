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

// What a turn converts at its end, the loop without masks hands on as it is before, and it is converted between the
// loops: the loop's own result is of 16 bits, and not used.

// CHECK-LABEL: @handed_on
// CHECK:         %first = arith.truncf %start_p
// CHECK:         [[FIRST:%.*]], [[WIDE:%.*]] = scf.for {{.*}} to %whole {{.*}} iter_args(%p = %first, {{%.*}} = %start_p) -> (tensor<64x64xf16>, tensor<64x64xf32>)
// CHECK:           [[SCORES:%.*]] = tt.dot %p
// CHECK-NEXT:      [[NEXT:%.*]] = arith.truncf [[SCORES]]
// CHECK-NEXT:      scf.yield [[NEXT]], [[SCORES]]
// CHECK:         [[BETWEEN:%.*]] = arith.truncf [[WIDE]]
// CHECK-NEXT:    scf.for {{.*}} = %whole to %end {{.*}} iter_args({{%.*}} = [[BETWEEN]])
tt.func public @handed_on(%a: tensor<64x64xf16>, %start_p: tensor<64x64xf32>, %p_ptr: tensor<64x64x!tt.ptr<f16>>, %length: i32, %end: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %hidden = arith.constant dense<0xff800000> : tensor<64x64xf32>
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %lengths = tt.splat %length : i32 -> tensor<64xi32>
  %first = arith.truncf %start_p : tensor<64x64xf32> to tensor<64x64xf16>
  %last = scf.for %start = %c0 to %end step %c64 iter_args(%p = %first) -> (tensor<64x64xf16>) : i32 {
    %starts = tt.splat %start : i32 -> tensor<64xi32>
    %columns = arith.addi %starts, %r : tensor<64xi32>
    %keep = arith.cmpi slt, %columns, %lengths : tensor<64xi32>
    %row = tt.expand_dims %keep {axis = 0 : i32} : tensor<64xi1> -> tensor<1x64xi1>
    %mask = tt.broadcast %row : tensor<1x64xi1> -> tensor<64x64xi1>
    %scores = tt.dot %p, %a, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    %masked = arith.select %mask, %scores, %hidden : tensor<64x64xi1>, tensor<64x64xf32>
    %next = arith.truncf %masked : tensor<64x64xf32> to tensor<64x64xf16>
    scf.yield %next : tensor<64x64xf16>
  }
  tt.store %p_ptr, %last : tensor<64x64x!tt.ptr<f16>>
  tt.return
}

// A block that the first turn takes as it was loaded has nothing before a conversion.

// CHECK-LABEL: @as_loaded
// CHECK:         [[FIRST:%.*]] = scf.for {{.*}} to %whole {{.*}} iter_args(%p = %start_p) -> (tensor<64x64xf16>)
// CHECK:         scf.for {{.*}} = %whole to %end {{.*}} iter_args({{%.*}} = [[FIRST]])
tt.func public @as_loaded(%a: tensor<64x64xf16>, %start_p: tensor<64x64xf16>, %p_ptr: tensor<64x64x!tt.ptr<f16>>, %length: i32, %end: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %hidden = arith.constant dense<0xff800000> : tensor<64x64xf32>
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %lengths = tt.splat %length : i32 -> tensor<64xi32>
  %last = scf.for %start = %c0 to %end step %c64 iter_args(%p = %start_p) -> (tensor<64x64xf16>) : i32 {
    %starts = tt.splat %start : i32 -> tensor<64xi32>
    %columns = arith.addi %starts, %r : tensor<64xi32>
    %keep = arith.cmpi slt, %columns, %lengths : tensor<64xi32>
    %row = tt.expand_dims %keep {axis = 0 : i32} : tensor<64xi1> -> tensor<1x64xi1>
    %mask = tt.broadcast %row : tensor<1x64xi1> -> tensor<64x64xi1>
    %scores = tt.dot %p, %a, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    %masked = arith.select %mask, %scores, %hidden : tensor<64x64xi1>, tensor<64x64xf32>
    %next = arith.truncf %masked : tensor<64x64xf32> to tensor<64x64xf16>
    scf.yield %next : tensor<64x64xf16>
  }
  tt.store %p_ptr, %last : tensor<64x64x!tt.ptr<f16>>
  tt.return
}
