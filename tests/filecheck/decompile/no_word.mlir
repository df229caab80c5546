// RUN: tlx-opt %s -p tlx-print-ttgir-to-tlx -o /dev/null 2>&1 | filecheck %s

// An operation that the language lacks is a warning at its place and a comment; the rest is written all the same.

// CHECK: no_word.mlir:[[# @LINE + 7]]:8: warning: tlx reverse can't express 'ttg.warp_id'
// CHECK: def no_word(x):
// CHECK-NEXT:    # not expressible: 'ttg.warp_id'
// CHECK-NEXT:    # it makes w
// CHECK-NEXT:    tl.store(x, w)
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @no_word(%x: !tt.ptr<i32>) {
  %w = ttg.warp_id
    tt.store %x, %w : !tt.ptr<i32>
    tt.return
  }
}
