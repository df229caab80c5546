// RUN: tlx-opt %s -p tlx-propagate-layout,convert-triton-to-tritongpu --split-input-file | filecheck %s

// A layout that is pinned on a row goes on to its halves, and to pairs of them; no element moves.

// CHECK-LABEL: @halves
// CHECK-NEXT:    %[[X:.*]] = ttg.convert_layout %x
// CHECK-NEXT:    tt.reshape %[[X]]
// CHECK-NEXT:    tt.trans
// CHECK-NEXT:    %a, %b = tt.split %{{.*}} : tensor<128x32x2xf32, #{{.*}}> -> tensor<128x32xf32, #[[HALF:.*]]>
// CHECK-NEXT:    tt.join %b, %a : tensor<128x32xf32, #[[HALF]]> -> tensor<128x32x2xf32
// CHECK-NEXT:    tt.return
// What is not pinned is brought to the layout of the other element of its pairs; without a pin both have the default.
// CHECK-LABEL: @pairs
// CHECK-NEXT:    %[[X:.*]] = ttg.convert_layout %x {{.*}} -> tensor<128x64xf32, #[[L:.*]]>
// CHECK-NEXT:    %[[Y:.*]] = ttg.convert_layout %y {{.*}} -> tensor<128x64xf32, #[[L]]>
// CHECK-NEXT:    tt.join %[[Y]], %[[X]] : tensor<128x64xf32, #[[L]]>
// CHECK-NEXT:    tt.join %y, %y : tensor<128x64xf32, #[[D:.*]]>
// CHECK-NEXT:    tt.return
#l = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @halves(%x: tensor<128x64xf32>) {
    %r = tlx.require_layout %x {pin} : tensor<128x64xf32> -> tensor<128x64xf32, #l>
    %0 = tlx.release_layout %r {pin} : tensor<128x64xf32, #l> -> tensor<128x64xf32>
    %1 = tt.reshape %0 : tensor<128x64xf32> -> tensor<128x2x32xf32>
    %2 = tt.trans %1 {order = array<i32: 0, 2, 1>} : tensor<128x2x32xf32> -> tensor<128x32x2xf32>
    %a, %b = tt.split %2 : tensor<128x32x2xf32> -> tensor<128x32xf32>
    %j = tt.join %b, %a : tensor<128x32xf32> -> tensor<128x32x2xf32>
    tt.return
  }
  tt.func public @pairs(%x: tensor<128x64xf32>, %y: tensor<128x64xf32>) {
    %r = tlx.require_layout %x {pin} : tensor<128x64xf32> -> tensor<128x64xf32, #l>
    %0 = tlx.release_layout %r {pin} : tensor<128x64xf32, #l> -> tensor<128x64xf32>
    %j = tt.join %y, %0 : tensor<128x64xf32> -> tensor<128x64x2xf32>
    %k = tt.join %y, %y : tensor<128x64xf32> -> tensor<128x64x2xf32>
    tt.return
  }
}
