// RUN: tlx-opt %s -p tlx-ws-make-persistent --split-input-file | filecheck %s

// What follows from the arguments stays before the loop; y is the slower axis, and x counts up first.

// CHECK-LABEL: @two_axes
// CHECK-SAME:    (%x_ptr: !tt.ptr<f32>, %N: i32, %grid_x: i32 {tlx.host_value = "grid[0]"}, %grid_y: i32 {tlx.host_value = "grid[1]"})
// CHECK-SAME:    tlx.launch_conditions = ["grid[2] == 1"]
// CHECK-NEXT:    [[N:%.*]] = arith.addi %N, %N : i32
// CHECK-NEXT:    %first = tt.get_program_id x : i32
// CHECK-NEXT:    %programs = tt.get_num_programs x : i32
// CHECK-NEXT:    %tiles = arith.muli %grid_x, %grid_y : i32
// CHECK-NEXT:    scf.for %tile = %first to %tiles step %programs : i32 {
// CHECK-NEXT:      %x = arith.remsi %tile, %grid_x : i32
// CHECK-NEXT:      %y = arith.divsi %tile, %grid_x : i32
// CHECK-NEXT:      [[SUM:%.*]] = arith.addi %x, %y : i32
// CHECK-NEXT:      [[AT:%.*]] = arith.addi [[SUM]], %grid_y : i32
builtin.module {
  tt.func public @two_axes(%x_ptr: !tt.ptr<f32>, %N: i32) {
    %x = tt.get_program_id x : i32
    %y = tt.get_program_id y : i32
    %rows = tt.get_num_programs y : i32
    %n = arith.addi %N, %N : i32
    %sum = arith.addi %x, %y : i32
    %at = arith.addi %sum, %rows : i32
    %p = tt.addptr %x_ptr, %at : !tt.ptr<f32>, i32
    %q = tt.addptr %p, %n : !tt.ptr<f32>, i32
    %v = tt.load %q : !tt.ptr<f32>
    tt.store %p, %v : !tt.ptr<f32>
    tt.return
  }
}

// -----

// A program that waits for another one's turn might run before it, and wait for ever.

// CHECK-LABEL: @in_turn
// CHECK-NOT:     tt.get_num_programs
// CHECK:         tt.atomic_cas
// CHECK-SAME:    tlx.note = "each program takes one tile, because it may wait for another program"
builtin.module {
  tt.func public @in_turn(%lock: !tt.ptr<i32>) {
    %x = tt.get_program_id x : i32
    %old = tt.atomic_cas acq_rel, gpu, %lock, %x, %x : (!tt.ptr<i32>, i32, i32) -> i32
    tt.return
  }
}

// -----

// The programs of this kernel take several tiles already.

// CHECK-LABEL: @persistent
// CHECK:         scf.for
// CHECK-NOT:     scf.for
builtin.module {
  tt.func public @persistent(%x_ptr: !tt.ptr<i32>, %tiles: i32) {
    %x = tt.get_program_id x : i32
    %n = tt.get_num_programs x : i32
    scf.for %tile = %x to %tiles step %n : i32 {
      tt.store %x_ptr, %tile : !tt.ptr<i32>
    }
    tt.return
  }
}
