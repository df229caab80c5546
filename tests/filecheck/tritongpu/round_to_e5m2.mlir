// RUN: tlx-opt %s -p tlx-round-to-e5m2 --split-input-file | filecheck %s
// RUN: tlx-opt %s -p 'tlx-round-to-e5m2{halves=true}' --split-input-file | filecheck %s --check-prefix=HALVES

// No hardware: the bits are computed.
module attributes {"ttg.target" = "cuda:80"} {
  // CHECK-LABEL: @software
  // CHECK: [[WIDE:%.*]] = arith.extf %x : tensor<64xf16> to tensor<64xf32>
  // CHECK-NEXT: tt.bitcast [[WIDE]] : tensor<64xf32> -> tensor<64xi32>
  // CHECK: arith.addf
  // CHECK: [[BYTE:%.*]] = arith.trunci {{.*}} : tensor<64xi32> to tensor<64xi8>
  // CHECK-NEXT: tt.bitcast [[BYTE]] : tensor<64xi8> -> tensor<64xf8E5M2>
  // HALVES-LABEL: @software
  // HALVES-NOT: tt.fp_to_fp
  // HALVES: tt.return
  tt.func public @software(%x: tensor<64xf16>, %p: tensor<64x!tt.ptr<f8E5M2>>) {
    %0 = tt.fp_to_fp %x, rounding = rtne : tensor<64xf16> -> tensor<64xf8E5M2>
    tt.store %p, %0 : tensor<64x!tt.ptr<f8E5M2>>
    tt.return
  }

  // Rounding towards zero is right, and so are other types.
  // CHECK-LABEL: @left_alone
  // CHECK-NEXT: tt.fp_to_fp %x, rounding = rtz : tensor<64xf16> -> tensor<64xf8E5M2>
  // CHECK-NEXT: tt.fp_to_fp %y : tensor<64xf8E5M2> -> tensor<64xf16>
  tt.func public @left_alone(%x: tensor<64xf16>, %y: tensor<64xf8E5M2>, %p: tensor<64x!tt.ptr<f8E5M2>>,
                             %q: tensor<64x!tt.ptr<f16>>) {
    %0 = tt.fp_to_fp %x, rounding = rtz : tensor<64xf16> -> tensor<64xf8E5M2>
    %1 = tt.fp_to_fp %y : tensor<64xf8E5M2> -> tensor<64xf16>
    tt.store %p, %0 : tensor<64x!tt.ptr<f8E5M2>>
    tt.store %q, %1 : tensor<64x!tt.ptr<f16>>
    tt.return
  }
}

// -----

// Hardware converts f32; Triton 3.6 does not use it for elements of 16 bits.
module attributes {"ttg.target" = "cuda:90"} {
  // CHECK-LABEL: @hardware
  // CHECK-NEXT: tt.fp_to_fp %x, rounding = rtne : tensor<64xbf16> -> tensor<64xf8E5M2>
  // CHECK-NEXT: tt.fp_to_fp %y, rounding = rtne : tensor<64xf32> -> tensor<64xf8E5M2>
  // HALVES-LABEL: @hardware
  // HALVES-NEXT: [[WIDE:%.*]] = arith.extf %x : tensor<64xbf16> to tensor<64xf32>
  // HALVES-NEXT: tt.fp_to_fp [[WIDE]], rounding = rtne : tensor<64xf32> -> tensor<64xf8E5M2>
  // HALVES-NEXT: tt.fp_to_fp %y, rounding = rtne : tensor<64xf32> -> tensor<64xf8E5M2>
  tt.func public @hardware(%x: tensor<64xbf16>, %y: tensor<64xf32>, %p: tensor<64x!tt.ptr<f8E5M2>>) {
    %0 = tt.fp_to_fp %x, rounding = rtne : tensor<64xbf16> -> tensor<64xf8E5M2>
    %1 = tt.fp_to_fp %y, rounding = rtne : tensor<64xf32> -> tensor<64xf8E5M2>
    tt.store %p, %0 : tensor<64x!tt.ptr<f8E5M2>>
    tt.store %p, %1 : tensor<64x!tt.ptr<f8E5M2>>
    tt.return
  }
}
