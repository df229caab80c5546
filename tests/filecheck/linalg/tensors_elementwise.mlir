// RUN: tlx-opt %s -p linalg-lower-tensors | filecheck %s

// CHECK: [[MATRIX:#map.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK: [[NUMBER:#map.*]] = affine_map<() -> ()>
// CHECK: [[SAME:#map.*]] = affine_map<(d0) -> ()>
// CHECK: [[ROW:#map.*]] = affine_map<(d0) -> (d0)>

// One linalg.generic for each operation; scalars stay as they are.
// CHECK-LABEL: @arithmetic
// CHECK-NEXT: [[E:%.*]] = tensor.empty() : tensor<4x8xf32>
// CHECK-NEXT: [[R:%.*]] = linalg.generic {indexing_maps = [[[MATRIX]], [[MATRIX]], [[MATRIX]]], iterator_types = ["parallel", "parallel"]} ins(%x, %y : tensor<4x8xf32>, tensor<4x8xf32>) outs([[E]] : tensor<4x8xf32>) {
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
// CHECK: linalg.generic {indexing_maps = [[[NUMBER]], [[NUMBER]], [[NUMBER]]], iterator_types = []}
// CHECK: arith.cmpi ult
// CHECK: -> tensor<i1>
tt.func public @rank_0(%x: tensor<i32>, %y: tensor<i32>) -> tensor<i1> {
  %0 = arith.cmpi ult, %x, %y : tensor<i32>
  tt.return %0 : tensor<i1>
}

// One condition for all elements is an input without dimensions.
// CHECK-LABEL: @select
// CHECK: linalg.generic {indexing_maps = [[[SAME]], [[ROW]], [[ROW]], [[ROW]]]
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

// A conversion to 8 bits stops at the largest finite number; one towards zero goes back where the nearest number is
// farther from it.
// CHECK-LABEL: @conversions
// CHECK: arith.constant -5.734400e+04 : f32
// CHECK-NEXT: arith.maximumf
// CHECK-NEXT: arith.constant 5.734400e+04 : f32
// CHECK-NEXT: arith.minimumf
// CHECK-NEXT: arith.truncf %{{.*}} : f32 to f8E5M2
// CHECK: arith.extf %{{.*}} : f8E5M2 to f16
// CHECK: [[NEAR:%.*]] = arith.truncf %{{.*}} : f32 to bf16
// CHECK: arith.subi %{{.*}}, %{{.*}} : i16
// CHECK: arith.extf [[NEAR]] : bf16 to f32
// CHECK: arith.cmpf ogt
// CHECK: arith.select %{{.*}}, %{{.*}}, [[NEAR]] : bf16
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

// A CPU traps where a GPU gives any number, and a mask often hides an element whose divisor is 0: that is divided by 1,
// and has every bit set. So is the smallest number that is divided by -1, which wraps around.
// CHECK-LABEL: @divisions
// CHECK: ^bb0([[A:%.*]]: i32, [[B:%.*]]: i32, %{{.*}}: i32):
// CHECK: [[LOW:%.*]] = arith.cmpi eq, [[A]], %{{.*}} : i32
// CHECK: [[MINUS:%.*]] = arith.cmpi eq, [[B]], %{{.*}} : i32
// CHECK: [[WRAPS:%.*]] = arith.andi [[LOW]], [[MINUS]] : i1
// CHECK: [[ZERO:%.*]] = arith.cmpi eq, [[B]], %{{.*}} : i32
// CHECK: [[ONE:%.*]] = arith.ori [[ZERO]], [[WRAPS]] : i1
// CHECK: [[D:%.*]] = arith.select [[ONE]], %{{.*}}, [[B]] : i32
// CHECK: [[Q:%.*]] = arith.divsi [[A]], [[D]] : i32
// CHECK: arith.select [[ZERO]], %{{.*}}, [[Q]] : i32
// An unsigned quotient does not wrap around.
// CHECK: ^bb0([[A:%.*]]: i32, [[B:%.*]]: i32, %{{.*}}: i32):
// CHECK-NOT: arith.andi
// CHECK: arith.remui
// Nothing is needed for a divisor that is known.
// CHECK: ^bb0([[A:%.*]]: i32, [[B:%.*]]: i32, %{{.*}}: i32):
// CHECK-NEXT: arith.remsi [[A]], [[B]] : i32
// Scalars are not hidden by masks.
// CHECK: arith.divsi %s, %s : i32
tt.func public @divisions(%x: tensor<8xi32>, %y: tensor<8xi32>, %s: i32) -> (tensor<8xi32>, tensor<8xi32>, tensor<8xi32>, i32) {
  %c = arith.constant dense<16> : tensor<8xi32>
  %0 = arith.divsi %x, %y : tensor<8xi32>
  %1 = arith.remui %x, %y : tensor<8xi32>
  %2 = arith.remsi %x, %c : tensor<8xi32>
  %3 = arith.divsi %s, %s : i32
  tt.return %0, %1, %2, %3 : tensor<8xi32>, tensor<8xi32>, tensor<8xi32>, i32
}

// A device function with the value of an operation of math is that; another one is called, and declared once.
// CHECK-LABEL: @device_functions
// CHECK: math.erf %{{.*}} : f32
// CHECK: arith.cmpf uno
// CHECK-NEXT: arith.extui %{{.*}} : i1 to i32
// CHECK: func.call @__nv_j0f(%{{.*}}) : (f32) -> f32
// CHECK: func.call @__nv_j0f(%x) : (f32) -> f32
// The sign is a bit, of zeros and NaN, too.
// CHECK: arith.bitcast %{{.*}} : f32 to i32
// CHECK: arith.cmpi slt
// CHECK: func.func private @__nv_j0f(f32) -> f32
// CHECK-NOT: func.func
tt.func public @device_functions(%t: tensor<8xf32>, %x: f32) -> (tensor<8xf32>, tensor<8xi32>, tensor<8xi32>, f32) {
  %0 = tt.extern_elementwise %t {libname = "", libpath = "", pure = true, symbol = "__nv_erff"} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = tt.extern_elementwise %t {libname = "", libpath = "", pure = true, symbol = "__nv_isnanf"} : (tensor<8xf32>) -> tensor<8xi32>
  %2 = tt.extern_elementwise %0 {libname = "", libpath = "", pure = true, symbol = "__nv_j0f"} : (tensor<8xf32>) -> tensor<8xf32>
  %3 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_j0f"} : (f32) -> f32
  %4 = tt.extern_elementwise %t {libname = "", libpath = "", pure = true, symbol = "__nv_signbitf"} : (tensor<8xf32>) -> tensor<8xi32>
  tt.return %2, %1, %4, %3 : tensor<8xf32>, tensor<8xi32>, tensor<8xi32>, f32
}
