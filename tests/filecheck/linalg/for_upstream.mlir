// RUN: tlx-opt %s -p linalg-for-upstream | filecheck %s
// RUN: tlx-opt %s -p 'linalg-for-upstream{saturating=true distinct=true}' | filecheck %s --check-prefix=PROMISED

// A copy between views is a loop nest to MLIR; one of whole buffers is a `memcpy`.
// CHECK-LABEL: @copies
// CHECK: linalg.copy ins(%v : memref<8xf32, strided<[2]>>) outs(%b : memref<8xf32>)
// CHECK: memref.copy %a, %a
func.func @copies(%a: memref<16xf32>, %b: memref<8xf32>) {
  %v = memref.subview %a[0] [8] [2] : memref<16xf32> to memref<8xf32, strided<[2]>>
  memref.copy %v, %b : memref<8xf32, strided<[2]>> to memref<8xf32>
  memref.copy %a, %a : memref<16xf32> to memref<16xf32>
  func.return
}

// CHECK-LABEL: @conversions
func.func @conversions(%x: f32, %d: f64, %h: f16) -> (bf16, f16, f32, i32) {
  // bf16 is the high half, rounded.
  // CHECK: %[[BITS:.*]] = arith.bitcast %x : f32 to i32
  // CHECK: arith.trunci {{.*}} : i32 to i16
  // CHECK: arith.bitcast {{.*}} : i16 to bf16
  %b = arith.truncf %x : f32 to bf16
  // f64 to f16 is a call to LLVM: by way of f32, rounded once.
  // CHECK: arith.truncf %d : f64 to f32
  // CHECK: arith.truncf {{.*}} : f32 to f16
  %s = arith.truncf %d : f64 to f16
  // Every processor has this one.
  // CHECK: arith.extf %h : f16 to f32
  %w = arith.extf %h : f16 to f32
  // CHECK: arith.fptosi %x : f32 to i32
  // PROMISED: arith.constant 2147483647 : i32
  %i = arith.fptosi %x : f32 to i32
  func.return %b, %s, %w, %i : bf16, f16, f32, i32
}

// %x is read; %y is read and written; of %out the address is known, too.
// CHECK-LABEL: @kernel
// CHECK-SAME: (%x: memref<*xf32> {llvm.readonly}, %y: memref<*xf32>, %out: memref<*xi64>, %n: i32, %pid_x: i32,
// PROMISED: @kernel(%x: memref<*xf32> {llvm.noalias, llvm.readonly}, %y: memref<*xf32> {llvm.noalias}, %out: memref<*xi64> {llvm.noalias}, %n: i32,
func.func @kernel(%x: memref<*xf32>, %y: memref<*xf32>, %out: memref<*xi64>, %n: i32, %pid_x: i32, %pid_y: i32, %pid_z: i32) attributes {tt.program_ids = 3 : i32} {
  %xs = memref.reinterpret_cast %x to offset: [0], sizes: [8], strides: [1] : memref<*xf32> to memref<8xf32, strided<[1]>>
  %ys = memref.reinterpret_cast %y to offset: [0], sizes: [8], strides: [1] : memref<*xf32> to memref<8xf32, strided<[1]>>
  memref.copy %xs, %ys : memref<8xf32, strided<[1]>> to memref<8xf32, strided<[1]>>
  %at = memref.extract_aligned_pointer_as_index %out : memref<*xi64> -> index
  func.return
}
