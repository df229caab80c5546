// RUN: tlx-opt %s -p exact-division | filecheck %s

// CHECK-LABEL: @divide
tt.func public @divide(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  // CHECK: %[[INVERSE:.*]] = arith.constant 2.500000e-01
  // CHECK-NEXT: %[[INVERSES:.*]] = tt.splat %[[INVERSE]]
  // CHECK-NEXT: arith.mulf %x, %[[INVERSES]]
  %four = arith.constant 4.0 : f32
  %fours = tt.splat %four : f32 -> tensor<64xf32>
  %a = arith.divf %x, %fours : tensor<64xf32>
  // No float is the inverse of three.
  // CHECK: arith.divf
  %three = arith.constant 3.0 : f32
  %threes = tt.splat %three : f32 -> tensor<64xf32>
  %b = arith.divf %x, %threes : tensor<64xf32>
  tt.return %a, %b : tensor<64xf32>, tensor<64xf32>
}
