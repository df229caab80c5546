// RUN: tlx-opt %s -p linalg-lower-tensors | filecheck %s

// One linalg.generic for each operation; scalars stay as they are.
// CHECK-LABEL: @arithmetic
// CHECK-NEXT: [[E:%.*]] = tensor.empty() : tensor<4x8xf32>
// CHECK-NEXT: [[R:%.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x, %y : tensor<4x8xf32>, tensor<4x8xf32>) outs([[E]] : tensor<4x8xf32>) {
// CHECK-NEXT: ^bb0([[A:%.*]]: f32, [[B:%.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT:   [[S:%.*]] = arith.addf [[A]], [[B]] : f32
// CHECK-NEXT:   linalg.yield [[S]] : f32
// CHECK-NEXT: } -> tensor<4x8xf32>
// CHECK-NEXT: arith.addf %s, %s : f32
tt.func public @arithmetic(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %s: f32) -> (tensor<4x8xf32>, f32) {
  %0 = arith.addf %x, %y : tensor<4x8xf32>
  %1 = arith.addf %s, %s : f32
  tt.return %0, %1 : tensor<4x8xf32>, f32
}

// A tensor of rank 0, and an operation whose result has another type.
// CHECK-LABEL: @rank_0
// CHECK: linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
// CHECK: arith.cmpi ult
// CHECK: -> tensor<i1>
tt.func public @rank_0(%x: tensor<i32>, %y: tensor<i32>) -> tensor<i1> {
  %0 = arith.cmpi ult, %x, %y : tensor<i32>
  tt.return %0 : tensor<i1>
}

// One condition for all elements is an input without dimensions.
// CHECK-LABEL: @select
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0) -> ()>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>]
// CHECK-SAME: ins(%c, %x, %y : i1, tensor<8xf32>, tensor<8xf32>)
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : f32
tt.func public @select(%c: i1, %x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %0 = arith.select %c, %x, %y : tensor<8xf32>
  tt.return %0 : tensor<8xf32>
}

// Several results of one operation.
// CHECK-LABEL: @extended
// CHECK: [[E0:%.*]] = tensor.empty
// CHECK: [[E1:%.*]] = tensor.empty
// CHECK: outs([[E0]], [[E1]] : tensor<8xi32>, tensor<8xi32>)
// CHECK: [[LOW:%.*]], [[HIGH:%.*]] = arith.mulsi_extended
// CHECK: linalg.yield [[LOW]], [[HIGH]] : i32, i32
// CHECK-NEXT: } -> (tensor<8xi32>, tensor<8xi32>)
tt.func public @extended(%x: tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>) {
  %0, %1 = arith.mulsi_extended %x, %x : tensor<8xi32>
  tt.return %0, %1 : tensor<8xi32>, tensor<8xi32>
}

// CHECK-LABEL: @clamp
// CHECK: [[L:%.*]] = arith.maxnumf
// CHECK-NEXT: arith.minnumf [[L]]
// CHECK: [[L:%.*]] = arith.maximumf
// CHECK-NEXT: arith.minimumf [[L]]
tt.func public @clamp(%x: tensor<8xf32>, %y: f32) -> (tensor<8xf32>, f32) {
  %0 = tt.clampf %x, %x, %x, propagateNan = none : tensor<8xf32>
  %1 = tt.clampf %y, %y, %y, propagateNan = all : f32
  tt.return %0, %1 : tensor<8xf32>, f32
}

// CHECK-LABEL: @precise
// CHECK: math.sqrt %{{.*}} : f32
// CHECK: arith.divf %{{.*}}, %{{.*}} : f32
// CHECK: [[LOW:%.*]], [[HIGH:%.*]] = arith.mului_extended
// CHECK-NEXT: linalg.yield [[HIGH]] : i32
tt.func public @precise(%x: tensor<8xf32>, %i: tensor<8xi32>) -> (tensor<8xf32>, tensor<8xi32>) {
  %0 = tt.precise_sqrt %x : tensor<8xf32>
  %1 = tt.precise_divf %0, %x : tensor<8xf32>
  %2 = tt.mulhiui %i, %i : tensor<8xi32>
  tt.return %1, %2 : tensor<8xf32>, tensor<8xi32>
}

// A conversion to 8 bits stops at the largest finite number; one towards zero says so.
// CHECK-LABEL: @conversions
// CHECK: arith.constant -5.734400e+04 : f32
// CHECK-NEXT: arith.maximumf
// CHECK-NEXT: arith.constant 5.734400e+04 : f32
// CHECK-NEXT: arith.minimumf
// CHECK-NEXT: arith.truncf %{{.*}} : f32 to f8E5M2
// CHECK: arith.extf %{{.*}} : f8E5M2 to f16
// CHECK: arith.truncf %{{.*}} toward_zero : f32 to bf16
// CHECK: arith.extf %{{.*}} : f8E5M2 to f32
// CHECK: arith.truncf %{{.*}} : f32 to f8E4M3FN
// CHECK: arith.bitcast %{{.*}} : f8E5M2 to i8
tt.func public @conversions(%x: tensor<8xf32>)
    -> (tensor<8xf16>, tensor<8xbf16>, tensor<8xf8E4M3FN>, tensor<8xi8>) {
  %0 = tt.fp_to_fp %x, rounding = rtne : tensor<8xf32> -> tensor<8xf8E5M2>
  %1 = tt.fp_to_fp %0 : tensor<8xf8E5M2> -> tensor<8xf16>
  %2 = tt.fp_to_fp %x, rounding = rtz : tensor<8xf32> -> tensor<8xbf16>
  %3 = tt.fp_to_fp %0 : tensor<8xf8E5M2> -> tensor<8xf8E4M3FN>
  %4 = tt.bitcast %0 : tensor<8xf8E5M2> -> tensor<8xi8>
  tt.return %1, %2, %3, %4 : tensor<8xf16>, tensor<8xbf16>, tensor<8xf8E4M3FN>, tensor<8xi8>
}

// A device function with the value of an operation of math is that; another one is called, and declared once.
// CHECK-LABEL: @device_functions
// CHECK: math.erf %{{.*}} : f32
// CHECK: arith.cmpf uno
// CHECK-NEXT: arith.extui %{{.*}} : i1 to i32
// CHECK: func.call @__nv_j0f(%{{.*}}) : (f32) -> f32
// CHECK: func.call @__nv_j0f(%x) : (f32) -> f32
// CHECK: func.func private @__nv_j0f(f32) -> f32
// CHECK-NOT: func.func
tt.func public @device_functions(%t: tensor<8xf32>, %x: f32) -> (tensor<8xf32>, tensor<8xi32>, f32) {
  %0 = tt.extern_elementwise %t {libname = "", libpath = "", pure = true, symbol = "__nv_erff"} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = tt.extern_elementwise %t {libname = "", libpath = "", pure = true, symbol = "__nv_isnanf"} : (tensor<8xf32>) -> tensor<8xi32>
  %2 = tt.extern_elementwise %0 {libname = "", libpath = "", pure = true, symbol = "__nv_j0f"} : (tensor<8xf32>) -> tensor<8xf32>
  %3 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_j0f"} : (f32) -> f32
  tt.return %2, %1, %3 : tensor<8xf32>, tensor<8xi32>, f32
}
