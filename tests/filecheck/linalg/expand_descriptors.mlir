// RUN: tlx-opt %s -p linalg-expand-descriptors --split-input-file --verify-diagnostics | filecheck %s

// A block at an index: its places along each dimension, and what is inside of the tensor.
// CHECK-LABEL: @load
tt.func public @load(%x: !tt.ptr<f16>, %m: i32, %n: i32, %s: i64, %i: i32, %j: i32) -> tensor<8x16xf16> {
  %one = arith.constant 1 : i64
  // CHECK-NOT: tt.make_tensor_descriptor
  %d = tt.make_tensor_descriptor %x, [%m, %n], [%s, %one] : <f16>, <8x16xf16>
  // CHECK: %[[I:.*]] = arith.extsi %i : i32 to i64
  // CHECK: %[[FIRST:.*]] = tt.splat %[[I]] : i64 -> tensor<8xi64>
  // CHECK: %[[ROW:.*]] = arith.addi %[[FIRST]], %{{.*}} : tensor<8xi64>
  // CHECK: arith.cmpi sge, %[[ROW]]
  // CHECK: arith.cmpi slt, %[[ROW]]
  // CHECK: tt.splat %x : !tt.ptr<f16> -> tensor<8x16x!tt.ptr<f16>>
  // CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f16
  // CHECK-NEXT: %[[FILL:.*]] = tt.splat %[[ZERO]]
  // CHECK-NEXT: tt.load %{{.*}}, %{{.*}}, %[[FILL]]
  %v = tt.descriptor_load %d[%i, %j] : !tt.tensordesc<8x16xf16> -> tensor<8x16xf16>
  tt.return %v : tensor<8x16xf16>
}

// -----

// A descriptor among the arguments becomes the pointer to its tensor; one that pads with NaN loads NaN.
// CHECK-LABEL: @arguments(
// CHECK-SAME: %d: !tt.ptr<i32>, %m: i32, %s: i64
tt.func public @arguments(%d: !tt.tensordesc<16xsi32>, %m: i32, %s: i64, %v: tensor<16xi32>, %x: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  // CHECK: tt.atomic_rmw max
  tt.descriptor_reduce max, %d[%c0], %v : !tt.tensordesc<16xsi32>, tensor<16xi32>
  %e = tt.make_tensor_descriptor %x, [%m], [%s] {padding = 2 : i32} : <f32>, <16xf32>
  // CHECK: arith.constant 0x7fc00000 : f32
  %w = tt.descriptor_load %e[%c0] : !tt.tensordesc<16xf32> -> tensor<16xf32>
  tt.descriptor_store %e[%c0], %w : !tt.tensordesc<16xf32>, tensor<16xf32>
  tt.return
}

// -----

// expected-error @below {{'tt.func' cannot be lowered to linalg: argument 0 is a descriptor without its sizes and strides}}
tt.func public @alone(%d: !tt.tensordesc<16xf32>) {
  tt.return
}
