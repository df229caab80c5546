// RUN: tlx-opt %s -p tlx-rebalance-setmaxnreg --split-input-file --verify-diagnostics | filecheck %s

// 3 * 128 threads have 168 registers each: the default task takes 152, and 2 * 176 are left.

// CHECK-LABEL: @default_asks
// CHECK-NEXT:    ttg.warp_specialize() attributes {requestedRegisters = array<i32: 176, 176>}
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @default_asks() {
    ttg.warp_specialize() attributes {tlx.default_registers = 152 : i32}
    default {
      ttg.warp_yield
    }
    partition0() num_warps(4) {
      ttg.warp_return
    }
    partition1() num_warps(4) {
      ttg.warp_return
    } : () -> ()
    tt.return
  }
}

// -----

// What adds up stays, the default task's part being what is left; promises and hints end here.

// CHECK-LABEL: @all_ask
// CHECK-NEXT:    ttg.warp_specialize() attributes {requestedRegisters = array<i32: 240, 240>}
// CHECK-NEXT:    default {
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @all_ask() {
    ttg.warp_specialize() attributes {requestedRegisters = array<i32: 240, 240>, tlx.default_registers = 24 : i32, tlx.exclusive, tlx.mbarrier_try_wait_suspend_ns = 100 : i32}
    default {
      ttg.warp_yield
    }
    partition0() num_warps(4) {
      ttg.warp_return
    }
    partition1() num_warps(4) {
      ttg.warp_return
    } : () -> ()
    tt.return
  }
}

// -----

// No task asks: nothing is added.

// CHECK-LABEL: @no_request
// CHECK-NEXT:    ttg.warp_specialize()
// CHECK-NEXT:    default {
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @no_request() {
    ttg.warp_specialize() attributes {tlx.exclusive}
    default {
      ttg.warp_yield
    }
    partition0() num_warps(4) {
      ttg.warp_return
    } : () -> ()
    tt.return
  }
}

// -----

// The warps of small partitions share a warp group, whose threads all have the registers of the greediest.

builtin.module attributes {"ttg.num-warps" = 4 : i32, "ttg.maxnreg" = 64 : i32} {
  tt.func public @too_many() {
    // expected-error @+1 {{the tasks ask for more registers than the thread block has, 64 * 256 = 16384: the default task for 64 * 128, partition0 and partition1 for 72 * 128: 56 per thread remain for the default task}}
    ttg.warp_specialize() attributes {requestedRegisters = array<i32: 24, 72>, tlx.default_registers = 64 : i32}
    default {
      ttg.warp_yield
    }
    partition0() num_warps(1) {
      ttg.warp_return
    }
    partition1() num_warps(2) {
      ttg.warp_return
    } : () -> ()
    tt.return
  }
}

// -----

builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @nothing_left() {
    // expected-error @+1 {{168 * 384 = 64512: partition0 for 256 * 128, partition1 for 256 * 128: 0 per thread remain for the default task, which needs 24}}
    ttg.warp_specialize() attributes {requestedRegisters = array<i32: 256, 256>}
    default {
      ttg.warp_yield
    }
    partition0() num_warps(4) {
      ttg.warp_return
    }
    partition1() num_warps(4) {
      ttg.warp_return
    } : () -> ()
    tt.return
  }
}

// -----

builtin.module attributes {"ttg.num-warps" = 8 : i32} {
  tt.func public @nothing_for_the_others() {
    // expected-error @+1 {{168 * 384 = 64512: the default task for 256 * 256: 0 per thread remain for the other tasks}}
    ttg.warp_specialize() attributes {tlx.default_registers = 256 : i32}
    default {
      ttg.warp_yield
    }
    partition0() num_warps(4) {
      ttg.warp_return
    } : () -> ()
    tt.return
  }
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func @steps_of_8() {
    // expected-error @+1 {{registers per thread are 24 to 256 in steps of 8, partition 1 asks for 25}}
    ttg.warp_specialize() attributes {requestedRegisters = array<i32: 24, 25>}
    default {
      ttg.warp_yield
    }
    partition0() num_warps(4) {
      ttg.warp_return
    }
    partition1() num_warps(4) {
      ttg.warp_return
    } : () -> ()
    tt.return
  }
}
