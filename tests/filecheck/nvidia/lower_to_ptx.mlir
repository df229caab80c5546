// RUN: tlx-opt %s -p tlx-lower-to-ptx | filecheck %s

// All patterns of the pass at once; what they do in detail is in special_instructions.mlir. A vote depends on layouts.

// CHECK-LABEL: @instructions
// CHECK-NEXT:    tt.elementwise_inline_asm "mov.u64 $0, %clock64;"
// CHECK-NEXT:    nvvm.inline_ptx "fence.acq_rel.gpu;"
// CHECK-NEXT:    tt.elementwise_inline_asm "{ prefetch.global.L2 [$1]; mov.b32 $0, 0; }"
// CHECK-NEXT:    tt.elementwise_inline_asm "{{.*}} cvt.rs.satfinite.f16x2.f32
// CHECK-NEXT:    tlx.vote_ballot
builtin.module {
  tt.func public @instructions(%p: tensor<64x!tt.ptr<f32>>, %x: tensor<64xf32>, %bits: tensor<64xi32>, %mask: i32, %c: i1) {
    %0 = tlx.clock64
    tlx.fence gpu
    tlx.prefetch L2 %p : tensor<64x!tt.ptr<f32>>
    %1 = tlx.stoch_round %x, %bits : tensor<64xf32>, tensor<64xi32> -> tensor<64xf16>
    %2 = tlx.vote_ballot %mask, %c : i1 -> i32
    tt.return
  }
}
