// RUN: not tlx-opt %s -p 'tlx-annotate-program-addresses{grid=0,1}' 2>&1 | filecheck %s

// CHECK: error: expected one to three positive sizes of the grid, found [0, 1]
tt.func @nothing() {
  tt.return
}
