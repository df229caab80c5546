// RUN: tlx-opt %s -p tlx-lower-named-barriers --split-input-file | filecheck %s

// Different constant ids are numbered densely after Triton's two barriers and one for each partition.

// CHECK-LABEL: @constants
// CHECK:         nvvm.inline_ptx "bar.sync 4, 256;"
// CHECK:       partition0
// CHECK:         nvvm.inline_ptx "bar.arrive 4, 256;"
// CHECK:       partition1
// CHECK:         nvvm.inline_ptx "bar.sync 5, 64;"
// CHECK-NOT:   tlx.named_barrier
builtin.module {
  tt.func public @constants() {
    ttg.warp_specialize()
    default {
      %c9 = arith.constant 9 : i32
      tlx.named_barrier_wait %c9, 256
      ttg.warp_yield
    }
    partition0() num_warps(4) {
      %c9 = arith.constant 9 : i32
      tlx.named_barrier_arrive %c9, 256
      ttg.warp_return
    }
    partition1() num_warps(1) {
      %c15 = arith.constant 15 : i32
      tlx.named_barrier_wait %c15, 64
      ttg.warp_return
    } : () -> ()
    tt.return
  }
}

// -----

// Where an id is computed, all keep their distances.

// CHECK-LABEL: @computed
// CHECK-NEXT:    %c3 = arith.constant 3 : i32
// CHECK-NEXT:    nvvm.inline_ptx "bar.sync 5, 128;"
// CHECK-NEXT:    %[[BASE:.*]] = arith.constant 2 : i32
// CHECK-NEXT:    %[[NUMBER:.*]] = arith.addi %id, %[[BASE]] : i32
// CHECK-NEXT:    nvvm.inline_ptx "bar.arrive $0, 128;" ro(%[[NUMBER]] : i32)
builtin.module {
  tt.func public @computed(%id: i32) {
    %c3 = arith.constant 3 : i32
    tlx.named_barrier_wait %c3, 128
    tlx.named_barrier_arrive %id, 128
    tt.return
  }
}
