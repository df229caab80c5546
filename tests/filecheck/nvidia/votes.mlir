// RUN: tlx-opt %s -p tlx-lower-votes --split-input-file --verify-diagnostics | filecheck %s

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

// A thread votes once for all elements that it holds, here two, and each of them gets the bits.

// CHECK-LABEL: @tensor
// CHECK-NEXT:    %[[VOTES:.*]] = arith.extui %p : tensor<256xi1, #[[L:.*]]> to tensor<256xi32, #[[L]]>
// CHECK-NEXT:    %[[MASKS:.*]] = tt.splat %mask : i32 -> tensor<256xi32, #[[L]]>
// CHECK-NEXT:    tt.elementwise_inline_asm "{ .reg .pred p; .reg .b32 v; or.b32 v, $2, $3; setp.ne.b32 p, v, 0; vote.sync.ballot.b32 $0, p, $4; mov.b32 $1, $0; }"
// CHECK-SAME:      {constraints = "=r,=r,r,r,r,r", packed_element = 2 : i32, pure = false} %[[VOTES]], %[[MASKS]] :
// CHECK-SAME:      -> tensor<256xi32, #[[L]]>
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @tensor(%mask: i32, %p: tensor<256xi1, #blocked>) {
    %0 = tlx.vote_ballot %mask, %p : tensor<256xi1, #blocked> -> tensor<256xi32, #blocked>
    tt.return
  }
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>

// One element in each thread: the code is that of a number.

// CHECK-LABEL: @one_each
// CHECK:         tt.elementwise_inline_asm "{ .reg .pred p; setp.ne.b32 p, $1, 0; vote.sync.ballot.b32 $0, p, $2; }"
// CHECK-SAME:      {constraints = "=r,r,r", packed_element = 1 : i32, pure = false}
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @one_each(%mask: i32, %p: tensor<128x1xi1, #blocked>) {
    %0 = tlx.vote_ballot %mask, %p : tensor<128x1xi1, #blocked> -> tensor<128x1xi32, #blocked>
    tt.return
  }
}

// -----

// CHECK-LABEL: @scalar
// CHECK-NEXT:    %[[VOTE:.*]] = arith.extui %p : i1 to i32
// CHECK-NEXT:    nvvm.inline_ptx {{.*}} ro(%[[VOTE]], %mask : i32, i32) -> i32
builtin.module {
  tt.func public @scalar(%mask: i32, %p: i1) {
    %0 = tlx.vote_ballot %mask, %p : i1 -> i32
    tt.return
  }
}

// -----

#two = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

// A number comes from the registers themselves.
// CHECK-LABEL: @as_number
// CHECK-NEXT:    %[[HELD:.*]] = builtin.unrealized_conversion_cast %p : tensor<256xi1, #{{.*}}> to !llvm.struct<(i1, i1)>
// CHECK-NEXT:    %[[A:.*]] = llvm.extractvalue %[[HELD]][0]
// CHECK-NEXT:    %[[B:.*]] = llvm.extractvalue %[[HELD]][1]
// CHECK-NEXT:    %[[FIRST:.*]] = arith.extui %[[A]] : i1 to i32
// CHECK-NEXT:    %[[SECOND:.*]] = arith.extui %[[B]] : i1 to i32
// CHECK-NEXT:    %[[EITHER:.*]] = arith.ori %[[FIRST]], %[[SECOND]] : i32
// CHECK-NEXT:    nvvm.inline_ptx {{.*}} ro(%[[EITHER]], %mask : i32, i32) -> i32
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @as_number(%mask: i32, %p: tensor<256xi1, #two>) {
    %0 = tlx.vote_ballot %mask, %p : tensor<256xi1, #two> -> i32
    tt.return
  }
}

// -----

builtin.module {
  tt.func public @without_layout(%mask: i32, %p: tensor<256xi1>) {
    // expected-error @+1 {{the threads that hold tensor<256xi1> are not known: it has no layout}}
    %0 = tlx.vote_ballot %mask, %p : tensor<256xi1> -> tensor<256xi32>
    tt.return
  }
}

// -----

#larger = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @held_several_times(%mask: i32, %p: tensor<2xi1, #larger>) {
    // expected-error @+1 {{several times, in some versions of Triton only}}
    %0 = tlx.vote_ballot %mask, %p : tensor<2xi1, #larger> -> tensor<2xi32, #larger>
    tt.return
  }
}

// -----

builtin.module {
  tt.func public @of_another_shape(%mask: i32, %p: tensor<256xi1>) {
    // expected-error @+1 {{votes of tensor<256xi1> must give tensor<256xi32> or i32, found tensor<128xi32>}}
    %0 = tlx.vote_ballot %mask, %p : tensor<256xi1> -> tensor<128xi32>
    tt.return
  }
}
