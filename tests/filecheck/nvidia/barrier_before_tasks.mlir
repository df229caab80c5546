// RUN: tlx-opt %s -p tlx-insert-barrier-before-tasks | filecheck %s

#row = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

// The sum of a tensor goes through shared memory, where the capture may be stored.
// CHECK-LABEL: @sum
// CHECK: tt.reduce.return
// CHECK: ttg.barrier local
// CHECK-NEXT: ttg.warp_specialize(%sum)
tt.func public @sum(%values: tensor<128xi32, #row>) {
  %sum = "tt.reduce"(%values) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tt.reduce.return %c : i32
  }) : (tensor<128xi32, #row>) -> i32
  ttg.warp_specialize(%sum)
  default {
    ttg.warp_yield
  }
  partition0(%arg0: i32) num_warps(4) {
    ttg.warp_return
  } : (i32) -> ()
  tt.return
}

// Scalars need none, nor do tensors within the tasks.
// CHECK-LABEL: @scalars
// CHECK-NOT: ttg.barrier
tt.func public @scalars(%n: i32) {
  %m = arith.addi %n, %n : i32
  ttg.warp_specialize(%m)
  default {
    ttg.warp_yield
  }
  partition0(%arg0: i32) num_warps(4) {
    %t = tt.splat %arg0 : i32 -> tensor<128xi32, #row>
    ttg.warp_return
  } : (i32) -> ()
  tt.return
}

// CHECK-LABEL: @nothing_captured
// CHECK-NOT: ttg.barrier
tt.func public @nothing_captured(%n: i32) {
  %t = tt.splat %n : i32 -> tensor<128xi32, #row>
  ttg.warp_specialize()
  default {
    ttg.warp_yield
  }
  partition0() num_warps(4) {
    ttg.warp_return
  } : () -> ()
  tt.return
}
