// RUN: tlx-opt %s -p tlx-ws-make-persistent{groups=3} --split-input-file 2>/dev/null | filecheck %s

// Blocks of queries of one head take the same keys: three groups do three blocks at a time. A group without a block does
// the last one, and stores nothing. The number of blocks decides how many keys there are, not where they lie.

// CHECK-LABEL: @attention
// CHECK-SAME:    tlx.replicas = 3 : i32
// CHECK-NEXT:    %group = tlx.replica_id
// CHECK:         [[MORE:%.*]] = arith.addi %grid_x, %{{.*}} : i32
// CHECK:         %joined = arith.divsi [[MORE]], %{{.*}} : i32
// CHECK:         %tiles = arith.muli %joined, %grid_y : i32
// CHECK-NEXT:    scf.for %tile
// CHECK-NEXT:      [[X:%.*]] = arith.remsi %tile, %joined : i32
// CHECK-NEXT:      %head = arith.divsi %tile, %joined : i32
// CHECK:           [[FIRST:%.*]] = arith.muli [[X]], %{{.*}} : i32
// CHECK-NEXT:      %program = arith.addi [[FIRST]], %group : i32
// CHECK:           [[LAST:%.*]] = arith.subi %grid_x, %{{.*}} : i32
// CHECK-NEXT:      %block = arith.minsi %program, [[LAST]] : i32
// CHECK-NEXT:      [[IS_THERE:%.*]] = arith.cmpi slt, %program, %grid_x : i32
// CHECK:           tt.load
// CHECK:           scf.if [[IS_THERE]] {
// CHECK-NEXT:        tt.store
builtin.module {
  tt.func public @attention(%k_ptr: !tt.ptr<f16>, %o_ptr: !tt.ptr<f16>) {
    %block = tt.get_program_id x : i32
    %head = tt.get_program_id y : i32
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %end = arith.addi %block, %c2 : i32
    %from = tt.addptr %k_ptr, %head : !tt.ptr<f16>, i32
    scf.for %start = %c0 to %end step %c1 : i32 {
      %at = tt.addptr %from, %start : !tt.ptr<f16>, i32
      %many = tt.splat %at : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
      %k = tt.load %many : tensor<16x16x!tt.ptr<f16>>
      %to = tt.addptr %o_ptr, %block : !tt.ptr<f16>, i32
      %there = tt.splat %to : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
      tt.store %there, %k : tensor<16x16x!tt.ptr<f16>>
    }
    tt.return
  }
}

// -----

// Programs of different numbers load different blocks: groups would share nothing, and there is one.

// CHECK-LABEL: @apart
// CHECK-NOT:     tlx.replica_id
// CHECK:         scf.for %tile = %first to %grid_x
// CHECK-NOT:     scf.if
builtin.module {
  tt.func public @apart(%k_ptr: !tt.ptr<f16>, %o_ptr: !tt.ptr<f16>, %n: i32) {
    %block = tt.get_program_id x : i32
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %from = tt.addptr %k_ptr, %block : !tt.ptr<f16>, i32
    scf.for %start = %c0 to %n step %c1 : i32 {
      %at = tt.addptr %from, %start : !tt.ptr<f16>, i32
      %many = tt.splat %at : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
      %k = tt.load %many : tensor<16x16x!tt.ptr<f16>>
      tt.store %many, %k : tensor<16x16x!tt.ptr<f16>>
    }
    tt.return
  }
}

// -----

// All programs add to one sum: each group adds for its own program, and one without a program adds nothing.

// CHECK-LABEL: @one_sum
// CHECK-SAME:    tlx.replicas = 3 : i32
// CHECK:           [[IS_THERE:%.*]] = arith.cmpi slt, %program, %grid_x : i32
// CHECK:           scf.if [[IS_THERE]] {
// CHECK-NEXT:        {{%.*}} = tt.atomic_rmw fadd
builtin.module {
  tt.func public @one_sum(%k_ptr: !tt.ptr<f32>, %sum_ptr: !tt.ptr<f32>, %n: i32) {
    %block = tt.get_program_id x : i32
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %true = arith.constant dense<true> : tensor<16x16xi1>
    %sums = tt.splat %sum_ptr : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
    %end = arith.addi %n, %block : i32
    scf.for %start = %c0 to %end step %c1 : i32 {
      %at = tt.addptr %k_ptr, %start : !tt.ptr<f32>, i32
      %many = tt.splat %at : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
      %k = tt.load %many : tensor<16x16x!tt.ptr<f32>>
      %old = tt.atomic_rmw fadd, acq_rel, gpu, %sums, %k, %true : (tensor<16x16x!tt.ptr<f32>>, tensor<16x16xf32>, tensor<16x16xi1>) -> tensor<16x16xf32>
    }
    tt.return
  }
}

// -----

// The first block of a program's loads is another one for each program: the groups share none of them.

// CHECK-LABEL: @from_its_block
// CHECK-NOT:     tlx.replica_id
builtin.module {
  tt.func public @from_its_block(%k_ptr: !tt.ptr<f16>, %o_ptr: !tt.ptr<f16>, %n: i32) {
    %block = tt.get_program_id x : i32
    %c1 = arith.constant 1 : i32
    scf.for %start = %block to %n step %c1 : i32 {
      %at = tt.addptr %k_ptr, %start : !tt.ptr<f16>, i32
      %many = tt.splat %at : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
      %k = tt.load %many : tensor<16x16x!tt.ptr<f16>>
      tt.store %many, %k : tensor<16x16x!tt.ptr<f16>>
    }
    tt.return
  }
}
