// RUN: not tlx-opt %s -p tlx-check-miscompiled 2>&1 | filecheck %s

// Of two CTAs each has a part, and gathers from no other one.
// CHECK: num_ctas above 1 is miscompiled by stock Triton for tl.gather along axis 0
builtin.module attributes {"ttg.num-ctas" = 2 : i32} {
  tt.func public @two(%x: tensor<64xf32>, %i: tensor<64xi32>) -> tensor<64xf32> {
    %0 = tt.gather %x[%i] {axis = 0 : i32} : (tensor<64xf32>, tensor<64xi32>) -> tensor<64xf32>
    tt.return %0 : tensor<64xf32>
  }
}
