// RUN: tlx-opt %s -p tlx-ws-order-tiles --split-input-file | filecheck %s
// RUN: tlx-opt %s -p tlx-ws-order-tiles{spread=true} --split-input-file | filecheck %s --check-prefix SPREAD

// Blocks further down see more keys, so they come first. Every other round goes backwards, but for one that is not full.

// CHECK-LABEL: @causal
// CHECK:         scf.for %tile
// CHECK:           %distance = arith.subi %tile, %first : i32
// CHECK-NEXT:      [[ROUND:%.*]] = arith.divsi %distance, %programs : i32
// CHECK-NEXT:      [[PARITY:%.*]] = arith.remsi [[ROUND]], %{{.*}} : i32
// CHECK-NEXT:      [[IS_ODD:%.*]] = arith.cmpi eq, [[PARITY]]
// CHECK-NEXT:      [[END:%.*]] = arith.addi %distance, %programs : i32
// CHECK-NEXT:      [[IS_FULL:%.*]] = arith.cmpi sle, [[END]], %tiles : i32
// CHECK-NEXT:      %is_back = arith.andi [[IS_ODD]], [[IS_FULL]] : i1
// CHECK:           [[BACK:%.*]] = arith.subi {{%.*}}, %first : i32
// CHECK-NEXT:      %place = arith.select %is_back, [[BACK]], %tile : i32
// CHECK:           [[FROM_END:%.*]] = arith.subi {{%.*}}, %place : i32
// CHECK:           %number = arith.maxsi [[FROM_END]], %{{.*}} : i32
// CHECK-NEXT:      %block = arith.remsi %number, %grid_x : i32
// CHECK-NEXT:      %head = arith.divsi %number, %grid_x : i32

// SPREAD-LABEL: @causal
// SPREAD:           [[FROM_END:%.*]] = arith.maxsi
// SPREAD-NEXT:      [[HEADS:%.*]] = arith.divsi %tiles, %grid_x : i32
// SPREAD-NEXT:      [[X:%.*]] = arith.divsi [[FROM_END]], [[HEADS]] : i32
// SPREAD-NEXT:      [[Y:%.*]] = arith.remsi [[FROM_END]], [[HEADS]] : i32
// SPREAD-NEXT:      [[BEFORE:%.*]] = arith.muli [[Y]], %grid_x : i32
// SPREAD-NEXT:      %number = arith.addi [[BEFORE]], [[X]] : i32
builtin.module {
  tt.func public @causal(%grid_x: i32, %tiles: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %a = arith.constant dense<0.000000e+00> : tensor<64x64xf16>
    %first = tt.get_program_id x : i32
    %programs = tt.get_num_programs x : i32
    scf.for %tile = %first to %tiles step %programs : i32 {
      %block = arith.remsi %tile, %grid_x : i32
      %head = arith.divsi %tile, %grid_x : i32
      %next = arith.addi %block, %c1 : i32
      %end = arith.muli %next, %c64 : i32
      scf.for %start = %c0 to %end step %c64 : i32 {
        %d = tt.dot %a, %a, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      }
    } {tlx.tiles}
    tt.return
  }
}

// -----

// All tiles have as many turns: their order stays.

// CHECK-LABEL: @even
// CHECK:         scf.for %tile
// CHECK-NEXT:      scf.for %start
// CHECK-NOT:     arith.select
// SPREAD-LABEL: @even
// SPREAD-NOT:    arith.select
builtin.module {
  tt.func public @even(%n: i32, %tiles: i32) {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %a = arith.constant dense<0.000000e+00> : tensor<64x64xf16>
    %first = tt.get_program_id x : i32
    %programs = tt.get_num_programs x : i32
    scf.for %tile = %first to %tiles step %programs : i32 {
      scf.for %start = %c0 to %n step %c64 : i32 {
        %d = tt.dot %a, %a, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      }
    } {tlx.tiles}
    tt.return
  }
}

// -----

// The bound is a remainder, which neither grows nor shrinks with the tile.

// CHECK-LABEL: @unknown
// CHECK-NOT:     arith.select
// SPREAD-LABEL: @unknown
// SPREAD-NOT:    arith.select
builtin.module {
  tt.func public @unknown(%n: i32, %tiles: i32) {
    %c0 = arith.constant 0 : i32
    %c7 = arith.constant 7 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %a = arith.constant dense<0.000000e+00> : tensor<64x64xf16>
    %first = tt.get_program_id x : i32
    %programs = tt.get_num_programs x : i32
    scf.for %tile = %first to %tiles step %programs : i32 {
      %more = arith.addi %tile, %n : i32
      %end = arith.remsi %more, %c7 : i32
      scf.for %start = %c0 to %end step %c7 : i32 {
        %d = tt.dot %a, %a, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      }
    } {tlx.tiles}
    tt.return
  }
}
