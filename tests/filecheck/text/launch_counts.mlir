// RUN: tlx-opt %s --split-input-file --verify-diagnostics

// What a launch has none of is no launch.
// expected-error @below {{'builtin.module' 'ttg.num-warps' must be at least 1, found 0}}
module attributes {"ttg.num-warps" = 0 : i32} {
}

// -----

// expected-error @below {{'builtin.module' 'ttg.num-ctas' must be at least 1, found -2}}
module attributes {"ttg.num-ctas" = -2 : i32, "ttg.shared" = 0 : i32} {
}

// -----

// Memory may be none.
module attributes {"ttg.num-warps" = 1 : i32, "ttg.shared" = 0 : i32} {
}
