// RUN: tlx-opt %s -p expand-negf | filecheck %s
// RUN: tlx-opt %s -p 'expand-negf{from-zero=true}' | filecheck %s --check-prefix=FROM-ZERO

// CHECK-LABEL: @tensors
// Zero is negative: 0 - 0 would not be -0.
// CHECK: [[ZERO:%.*]] = arith.constant dense<-0.000000e+00> : tensor<64xf16>
// CHECK-NEXT: arith.subf [[ZERO]], %x : tensor<64xf16>
// FROM-ZERO: arith.constant dense<0.000000e+00> : tensor<64xf16>
tt.func public @tensors(%x: tensor<64xf16>, %p: tensor<64x!tt.ptr<f16>>) {
  %0 = arith.negf %x : tensor<64xf16>
  tt.store %p, %0 : tensor<64x!tt.ptr<f16>>
  tt.return
}

// CHECK-LABEL: @scalars
// CHECK-NEXT: arith.negf %x : f32
// FROM-ZERO: [[ZERO:%.*]] = arith.constant 0.000000e+00 : f32
// FROM-ZERO-NEXT: arith.subf [[ZERO]], %x : f32
tt.func public @scalars(%x: f32, %p: !tt.ptr<f32>) {
  %0 = arith.negf %x : f32
  tt.store %p, %0 : !tt.ptr<f32>
  tt.return
}
