// RUN: tlx-opt %s -p 'triton-tlx-fixup{num-warps=8 target="cuda:100"}' | filecheck %s

// What the module lacks is added; what it says stays.

// CHECK: builtin.module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
builtin.module attributes {"ttg.num-ctas" = 2 : i32} {
  tt.func public @k() {
    tt.return
  }
}
