// RUN: tlx-opt %s -p tlx-lower-special-instructions --split-input-file | filecheck %s

// Two reads of the clock stay two, and fences are no operations that could be merged.

// CHECK-LABEL: @clock_and_fences
// CHECK-NEXT:    %0 = tt.elementwise_inline_asm "mov.u64 $0, %clock64;" {constraints = "=l", packed_element = 1 : i32, pure = false} -> i64
// CHECK-NEXT:    nvvm.inline_ptx "fence.acq_rel.gpu;"
// CHECK-NEXT:    nvvm.inline_ptx "fence.acq_rel.sys;"
// CHECK-NEXT:    %1 = tt.elementwise_inline_asm "mov.u64 $0, %clock64;"
builtin.module {
  tt.func public @clock_and_fences() {
    %0 = tlx.clock64
    tlx.fence gpu
    tlx.fence sys
    %1 = tlx.clock64
    tt.return
  }
}

// -----

// 16-bit floats are rounded in pairs and 8-bit ones in fours, the last element in the upper end of the register.

// CHECK-LABEL: @stochastic_rounding
// CHECK:         tt.elementwise_inline_asm "{ .reg .b32 r; prmt.b32 r, $3, $4, 0x7632; cvt.rs.satfinite.f16x2.f32 $0, $2, $1, r; }" {constraints = "=r,f,f,r,r", packed_element = 2 : i32, pure = true} %x, %bits : tensor<64xf32>, tensor<64xi32> -> tensor<64xf16>
// CHECK:         cvt.rs.satfinite.bf16x2.f32
// CHECK:         tt.elementwise_inline_asm "{ .reg .b32 r; prmt.b32 r, $5, $7, 0x7632; cvt.rs.satfinite.e4m3x4.f32 $0, {$4, $3, $2, $1}, r; }" {constraints = "=r,f,f,f,f,r,r,r,r", packed_element = 4 : i32, pure = true}
// CHECK:         cvt.rs.satfinite.e5m2x4.f32
// CHECK-NOT:     tlx.
builtin.module {
  tt.func public @stochastic_rounding(%x: tensor<64xf32>, %bits: tensor<64xi32>) {
    %0 = tlx.stoch_round %x, %bits : tensor<64xf32>, tensor<64xi32> -> tensor<64xf16>
    %1 = tlx.stoch_round %x, %bits : tensor<64xf32>, tensor<64xi32> -> tensor<64xbf16>
    %2 = tlx.stoch_round %x, %bits : tensor<64xf32>, tensor<64xi32> -> tensor<64xf8E4M3FN>
    %3 = tlx.stoch_round %x, %bits : tensor<64xf32>, tensor<64xi32> -> tensor<64xf8E5M2>
    tt.return
  }
}

// -----

// The mask is a number: a predicate that is a constant can't be an operand of PTX.

// CHECK-LABEL: @prefetches
// CHECK-NEXT:    tt.elementwise_inline_asm "{ prefetch.global.L1 [$1]; mov.b32 $0, 0; }" {constraints = "=r,l", packed_element = 1 : i32, pure = false} %p : !tt.ptr<f32> -> i32
// CHECK-NEXT:    %[[MASK:.*]] = arith.extui %m : tensor<64xi1> to tensor<64xi32>
// CHECK-NEXT:    tt.elementwise_inline_asm "{ .reg .pred p; setp.ne.b32 p, $2, 0; @p prefetch.global.L2 [$1]; mov.b32 $0, 0; }" {constraints = "=r,l,r", {{.*}}} %ps, %[[MASK]]
// CHECK-NEXT:    %[[ADDRESS:.*]] = builtin.unrealized_conversion_cast %d : !tt.tensordesc<64x64xf16> to !llvm.ptr
// CHECK-NEXT:    nvvm.inline_ptx "prefetch.tensormap [$0];" ro(%[[ADDRESS]] : !llvm.ptr)
builtin.module {
  tt.func public @prefetches(%p: !tt.ptr<f32>, %ps: tensor<64x!tt.ptr<f32>>, %m: tensor<64xi1>, %d: !tt.tensordesc<64x64xf16>) {
    tlx.prefetch L1 %p : !tt.ptr<f32>
    tlx.prefetch L2 %ps mask %m : tensor<64x!tt.ptr<f32>>, tensor<64xi1>
    tlx.prefetch_tensormap %d : !tt.tensordesc<64x64xf16>
    tt.return
  }
}
