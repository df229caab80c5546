// RUN: tlx-opt %s -p tlx-lower-votes --split-input-file --verify-diagnostics | filecheck %s

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

// A thread votes for all elements that it holds, here two.

// CHECK-LABEL: @tensor
// CHECK-NEXT:    %[[HELD:.*]] = builtin.unrealized_conversion_cast %p : tensor<256xi1, #blocked> to !llvm.struct<(i1, i1)>
// CHECK-NEXT:    %[[A:.*]] = llvm.extractvalue %[[HELD]][0]
// CHECK-NEXT:    %[[B:.*]] = llvm.extractvalue %[[HELD]][1]
// CHECK-NEXT:    %[[ANY:.*]] = arith.ori %[[A]], %[[B]] : i1
// CHECK-NEXT:    %[[VOTE:.*]] = arith.extui %[[ANY]] : i1 to i32
// CHECK-NEXT:    nvvm.inline_ptx "{ .reg .pred p; setp.ne.b32 p, $1, 0; vote.sync.ballot.b32 $0, p, $2; }" ro(%[[VOTE]], %mask : i32, i32) -> i32
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @tensor(%mask: i32, %p: tensor<256xi1, #blocked>) {
    %0 = tlx.vote_ballot %mask, %p : tensor<256xi1, #blocked>
    tt.return
  }
}

// -----

// CHECK-LABEL: @scalar
// CHECK-NEXT:    %[[VOTE:.*]] = arith.extui %p : i1 to i32
// CHECK-NEXT:    nvvm.inline_ptx {{.*}} ro(%[[VOTE]], %mask : i32, i32) -> i32
builtin.module {
  tt.func public @scalar(%mask: i32, %p: i1) {
    %0 = tlx.vote_ballot %mask, %p : i1
    tt.return
  }
}

// -----

builtin.module {
  tt.func public @without_layout(%mask: i32, %p: tensor<256xi1>) {
    // expected-error @+1 {{the threads that hold tensor<256xi1> are not known: it has no layout}}
    %0 = tlx.vote_ballot %mask, %p : tensor<256xi1>
    tt.return
  }
}

// -----

#larger = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @held_several_times(%mask: i32, %p: tensor<2xi1, #larger>) {
    // expected-error @+1 {{several times, in some versions of Triton only}}
    %0 = tlx.vote_ballot %mask, %p : tensor<2xi1, #larger>
    tt.return
  }
}
