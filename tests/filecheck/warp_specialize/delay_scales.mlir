// RUN: tlx-opt %s -p tlx-ws-delay-scales | filecheck %s

// The maximum is that of the scores; the condition is one of the launch.

// CHECK-LABEL: @softmax
// CHECK-SAME:    tlx.launch_conditions = ["0 < scale < 1e+30"]
// CHECK:         [[MASKED:%.*]] = arith.select %keep, %scores
// CHECK-NEXT:    [[SCALED:%.*]] = arith.mulf [[MASKED]]
// CHECK:         [[MOST:%.*]] = "tt.reduce"([[MASKED]])
// CHECK:         arith.mulf [[MOST]]
tt.func public @softmax(%scores: tensor<64x64xf32>, %keep: tensor<64x64xi1>, %scale: f32, %p: tensor<64x!tt.ptr<f32>>,
                        %q: tensor<64x64x!tt.ptr<f32>>) {
  %hidden = arith.constant dense<0xff800000> : tensor<64x64xf32>
  %scales = tt.splat %scale : f32 -> tensor<64x64xf32>
  %scaled = arith.mulf %scores, %scales : tensor<64x64xf32>
  %masked = arith.select %keep, %scaled, %hidden : tensor<64x64xi1>, tensor<64x64xf32>
  %m = "tt.reduce"(%masked) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.maxnumf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  tt.store %p, %m : tensor<64x!tt.ptr<f32>>
  tt.store %q, %masked : tensor<64x64x!tt.ptr<f32>>
  tt.return
}

// A sum is not the product of sums in every bit.

// CHECK-LABEL: @sum
// CHECK-NOT:     tlx.launch_conditions
// CHECK:         [[SCALED:%.*]] = arith.mulf
// CHECK:         "tt.reduce"([[SCALED]])
tt.func public @sum(%scores: tensor<64x64xf32>, %scale: f32, %p: tensor<64x!tt.ptr<f32>>) {
  %scales = tt.splat %scale : f32 -> tensor<64x64xf32>
  %scaled = arith.mulf %scores, %scales : tensor<64x64xf32>
  %m = "tt.reduce"(%scaled) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  tt.store %p, %m : tensor<64x!tt.ptr<f32>>
  tt.return
}
