// RUN: tlx-opt %s --split-input-file --verify-diagnostics -p expand-float-conversions | filecheck %s

// CHECK-LABEL: @between_halves
// CHECK: [[WIDE:%.*]] = arith.extf %x : tensor<64xbf16> to tensor<64xf32>
// CHECK-NEXT: [[NEAR:%.*]] = arith.truncf [[WIDE]] : tensor<64xf32> to tensor<64xf16>
// CHECK-NEXT: tt.store %p, [[NEAR]]
// CHECK-NEXT: [[WIDER:%.*]] = arith.extf [[NEAR]]
// CHECK-NEXT: tt.fp_to_fp [[WIDER]], rounding = rtz : tensor<64xf32> -> tensor<64xbf16>
tt.func public @between_halves(%x: tensor<64xbf16>, %p: tensor<64x!tt.ptr<f16>>, %q: tensor<64x!tt.ptr<bf16>>) {
  %0 = tt.fp_to_fp %x, rounding = rtne : tensor<64xbf16> -> tensor<64xf16>
  tt.store %p, %0 : tensor<64x!tt.ptr<f16>>
  %1 = tt.fp_to_fp %0, rounding = rtz : tensor<64xf16> -> tensor<64xbf16>
  tt.store %q, %1 : tensor<64x!tt.ptr<bf16>>
  tt.return
}

// CHECK-LABEL: @from_eight_bits
// CHECK: [[WIDE:%.*]] = tt.fp_to_fp %x : f8E5M2 -> f32
// CHECK-NEXT: arith.extf [[WIDE]] : f32 to f64
// CHECK: [[HALF:%.*]] = tt.fp_to_fp %x : f8E5M2 -> f16
// CHECK-NEXT: tt.fp_to_fp [[HALF]], rounding = rtne : f16 -> f8E4M3FN
tt.func public @from_eight_bits(%x: f8E5M2, %p: !tt.ptr<f64>, %q: !tt.ptr<f8E4M3FN>) {
  %0 = tt.fp_to_fp %x : f8E5M2 -> f64
  tt.store %p, %0 : !tt.ptr<f64>
  %1 = tt.fp_to_fp %x : f8E5M2 -> f8E4M3FN
  tt.store %q, %1 : !tt.ptr<f8E4M3FN>
  tt.return
}

// Infinities and NaN stay.
// CHECK-LABEL: @from_e5m2_to_bf16
// CHECK-NEXT: [[WIDE:%.*]] = tt.fp_to_fp %x : f8E5M2 -> f32
// CHECK-NEXT: arith.truncf [[WIDE]] : f32 to bf16
tt.func public @from_e5m2_to_bf16(%x: f8E5M2, %p: !tt.ptr<bf16>) {
  %0 = tt.fp_to_fp %x : f8E5M2 -> bf16
  tt.store %p, %0 : !tt.ptr<bf16>
  tt.return
}

// CHECK-LABEL: @in_one_step
// CHECK-NEXT: tt.fp_to_fp %x : tensor<64xf8E5M2> -> tensor<64xf16>
// CHECK-NEXT: tt.fp_to_fp {{.*}} rounding = rtne : tensor<64xf16> -> tensor<64xf8E4M3FN>
tt.func public @in_one_step(%x: tensor<64xf8E5M2>, %p: tensor<64x!tt.ptr<f8E4M3FN>>) {
  %0 = tt.fp_to_fp %x : tensor<64xf8E5M2> -> tensor<64xf16>
  %1 = tt.fp_to_fp %0, rounding = rtne : tensor<64xf16> -> tensor<64xf8E4M3FN>
  tt.store %p, %1 : tensor<64x!tt.ptr<f8E4M3FN>>
  tt.return
}

// CHECK-LABEL: @numbers
// CHECK: [[NEAR:%.*]] = arith.constant 1.000000e+00 : f32
// CHECK-NEXT: arith.truncf [[NEAR]] : f32 to f8E5M2
// CHECK: arith.truncf %cst : f32 to f16
// CHECK: arith.truncf %x : f32 to f8E5M2
tt.func public @numbers(%p: !tt.ptr<f8E5M2>, %q: !tt.ptr<f16>, %x: f32) {
  %cst = arith.constant 1.062500e+00 : f32
  %0 = arith.truncf %cst : f32 to f8E5M2
  tt.store %p, %0 : !tt.ptr<f8E5M2>
  %1 = arith.truncf %cst : f32 to f16
  tt.store %q, %1 : !tt.ptr<f16>
  %2 = arith.truncf %x : f32 to f8E5M2
  tt.store %p, %2 : !tt.ptr<f8E5M2>
  tt.return
}

// -----

tt.func public @out_of_range(%p: !tt.ptr<f8E4M3FN>) {
  %cst = arith.constant 1.000000e+06 : f32
  // expected-error @below {{expected a number between -448 and 448, found 1e+06}}
  %0 = arith.truncf %cst : f32 to f8E4M3FN
  tt.store %p, %0 : !tt.ptr<f8E4M3FN>
  tt.return
}

// -----

tt.func public @no_exact_way(%x: f64, %p: !tt.ptr<f8E5M2>) {
  // expected-error @below {{upstream Triton does not convert f64 to f8E5M2: convert to f32 first, which rounds twice}}
  %0 = tt.fp_to_fp %x, rounding = rtne : f64 -> f8E5M2
  tt.store %p, %0 : !tt.ptr<f8E5M2>
  tt.return
}
