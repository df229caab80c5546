// RUN: tlx-opt %s -p tlx-inline-calls-with-tasks --split-input-file | filecheck %s

// Arguments and results take the places of the call's, and a function that is called by another one comes with it.

// CHECK-LABEL: tt.func public @kernel
// CHECK:       ttg.warp_specialize
// CHECK-NEXT:    default
// CHECK-NEXT:      [[ONE:%.+]] = arith.constant 1 : i32
// CHECK-NEXT:      [[SUM:%.+]] = arith.addi %n, [[ONE]] : i32
// CHECK-NEXT:      tt.store %p, [[SUM]] : !tt.ptr<i32>
// CHECK-NEXT:      ttg.warp_yield
// CHECK-NOT:   tt.func
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @kernel(%p: !tt.ptr<i32>, %n: i32) attributes {noinline = false} {
    ttg.warp_specialize()
    default {
      %0 = tt.call @outer(%n) : (i32) -> i32
      tt.store %p, %0 : !tt.ptr<i32>
      ttg.warp_yield
    } : () -> ()
    tt.return
  }
  tt.func private @outer(%a: i32) -> i32 attributes {noinline = true} {
    %0 = tt.call @inner(%a) : (i32) -> i32
    tt.return %0 : i32
  }
  tt.func private @inner(%b: i32) -> i32 attributes {noinline = true} {
    %one = arith.constant 1 : i32
    %0 = arith.addi %b, %one : i32
    tt.return %0 : i32
  }
}

// -----

// A function of several blocks is left to upstream Triton.

// CHECK-LABEL: tt.func public @kernel
// CHECK:       tt.call @early
// CHECK:       tt.func private @early({{.*}}) attributes {noinline = false}
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @kernel(%c: i1) attributes {noinline = false} {
    ttg.warp_specialize()
    default {
      tt.call @early(%c) : (i1) -> ()
      ttg.warp_yield
    } : () -> ()
    tt.return
  }
  tt.func private @early(%c: i1) attributes {noinline = true} {
    cf.cond_br %c, ^bb1, ^bb2
  ^bb1:
    tt.return
  ^bb2:
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
