// RUN: tlx-opt %s -p tlx-inline-calls-with-tasks --split-input-file | filecheck %s

// CHECK-LABEL: tt.func public @kernel
// CHECK:       tt.func private @helper() attributes {noinline = false}
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @kernel() attributes {noinline = false} {
    ttg.warp_specialize()
    default {
      tt.call @helper() : () -> ()
      ttg.warp_yield
    } : () -> ()
    tt.return
  }
  tt.func private @helper() attributes {noinline = true} {
    tt.return
  }
}

// -----

// Without tasks a call stays one.

// CHECK-LABEL: tt.func public @plain
// CHECK:       tt.func private @helper() attributes {noinline = true}
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @plain() attributes {noinline = false} {
    tt.call @helper() : () -> ()
    tt.return
  }
  tt.func private @helper() attributes {noinline = true} {
    tt.return
  }
}
