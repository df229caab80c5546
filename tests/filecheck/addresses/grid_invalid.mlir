// RUN: not tlx-opt %s -p 'tlx-annotate-program-addresses{grid=0,1}' 2>&1 | filecheck %s

// CHECK: error: expected a grid of one to three numbers of programs, each from 1 to 2,147,483,647, found (0, 1)
tt.func @nothing() {
  tt.return
}
