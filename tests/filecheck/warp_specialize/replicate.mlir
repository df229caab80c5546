// RUN: tlx-opt %s -p tlx-ws-replicate-tasks --split-input-file --verify-diagnostics | filecheck %s

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

// The first task has two copies, each with its number, registers and warps; the second one and the default have one.

// CHECK-LABEL: @copies
// CHECK:         ttg.warp_specialize(%p, %q) attributes {requestedRegisters = array<i32: 232, 232, 40>, warpGroupStartIds = array<i32: 4, 8, 12>}
// CHECK-NEXT:    default {
// CHECK-NEXT:      [[D:%.*]] = arith.constant 0 : i32
// CHECK-NEXT:      tt.store %q, [[D]]
// CHECK:         partition0([[P0:%.*]]: !tt.ptr<i32>, [[Q0:%.*]]: !tt.ptr<i32>) num_warps(4) {
// CHECK-NEXT:      [[C0:%.*]] = arith.constant 0 : i32
// CHECK-NEXT:      [[A0:%.*]] = tt.addptr [[P0]], [[C0]]
// CHECK-NEXT:      tt.store [[A0]], [[C0]]
// CHECK-NEXT:      ttg.warp_return
// CHECK:         partition1([[P1:%.*]]: !tt.ptr<i32>, [[Q1:%.*]]: !tt.ptr<i32>) num_warps(4) {
// CHECK-NEXT:      [[C1:%.*]] = arith.constant 1 : i32
// CHECK-NEXT:      [[A1:%.*]] = tt.addptr [[P1]], [[C1]]
// CHECK-NEXT:      tt.store [[A1]], [[C1]]
// CHECK-NEXT:      ttg.warp_return
// CHECK:         partition2([[P2:%.*]]: !tt.ptr<i32>, [[Q2:%.*]]: !tt.ptr<i32>) num_warps(1) {
// CHECK-NEXT:      [[C2:%.*]] = arith.constant 0 : i32
// CHECK-NEXT:      tt.store [[Q2]], [[C2]]
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @copies(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>) {
    ttg.warp_specialize(%p, %q) attributes {requestedRegisters = array<i32: 232, 40>, tlx.replicas = array<i32: 2, 1>, warpGroupStartIds = array<i32: 4, 12>}
    default {
      %d = tlx.replica_id
      tt.store %q, %d : !tt.ptr<i32>
      ttg.warp_yield
    }
    partition0(%p0: !tt.ptr<i32>, %q0: !tt.ptr<i32>) num_warps(4) {
      %n = tlx.replica_id
      %a = tt.addptr %p0, %n : !tt.ptr<i32>, i32
      %m = tlx.replica_id
      tt.store %a, %m : !tt.ptr<i32>
      ttg.warp_return
    }
    partition1(%p1: !tt.ptr<i32>, %q1: !tt.ptr<i32>) num_warps(1) {
      %n = tlx.replica_id
      tt.store %q1, %n : !tt.ptr<i32>
      ttg.warp_return
    } : (!tt.ptr<i32>, !tt.ptr<i32>) -> ()
    tt.return
  }
}

// -----

// Outside of tasks there is no copy that could have a number. Where nothing uses it, it goes.

// CHECK-LABEL: @unused
// CHECK-NEXT:    tt.return
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @unused() {
    %n = tlx.replica_id
    tt.return
  }
}

// -----

builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @in_no_task(%p: !tt.ptr<i32>) {
    // expected-error@+1 {{'tlx.replica_id' is the number of a copy of a task, and stands in no task here}}
    %n = tlx.replica_id
    tt.store %p, %n : !tt.ptr<i32>
    tt.return
  }
}
