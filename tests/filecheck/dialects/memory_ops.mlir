// RUN: tlx-opt %s | filecheck %s
// RUN: TLX_ROUNDTRIP
// RUN: tlx-opt %s --mlir-version 19 | filecheck %s --check-prefix=LLVM19
// RUN: tlx-opt %s --mlir-version 19 | tlx-opt --mlir-version newest | filecheck %s

// Memory of upstream MLIR: what xDSL reads in part or not at all, in the text of the newest LLVM and in that of LLVM 19.

// CHECK-LABEL: @views(
// LLVM19-LABEL: @views(
func.func @views(%p: memref<*xf32>, %q: memref<*xf32>, %o: index, %c: i1) {
  // Memory of an unknown rank gets one.
  // CHECK-NEXT: %row = memref.reinterpret_cast %p to offset: [%o], sizes: [128], strides: [1] : memref<*xf32> to memref<128xf32, strided<[1], offset: ?>>
  %row = memref.reinterpret_cast %p to offset: [%o], sizes: [128], strides: [1] : memref<*xf32> to memref<128xf32, strided<[1], offset: ?>>
  // CHECK-NEXT: %box = memref.reinterpret_cast %p to offset: [0], sizes: [4, %o], strides: [%o, 1] : memref<*xf32> to memref<4x?xf32, strided<[?, 1]>>
  %box = memref.reinterpret_cast %p to offset: [0], sizes: [4, %o], strides: [%o, 1] : memref<*xf32> to memref<4x?xf32, strided<[?, 1]>>
  // CHECK-NEXT: %part = memref.subview %row[0] [%o] [1] : memref<128xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[1], offset: ?>>
  %part = memref.subview %row[0] [%o] [1] : memref<128xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[1], offset: ?>>
  // Dimensions of size 1 may go.
  // CHECK-NEXT: %line = memref.subview %box[2, %o] [1, 8] [1, 2] : memref<4x?xf32, strided<[?, 1]>> to memref<8xf32, strided<[2], offset: ?>>
  %line = memref.subview %box[2, %o] [1, 8] [1, 2] : memref<4x?xf32, strided<[?, 1]>> to memref<8xf32, strided<[2], offset: ?>>
  // CHECK-NEXT: %more = memref.cast %row : memref<128xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[?], offset: ?>>
  %more = memref.cast %row : memref<128xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[?], offset: ?>>
  // CHECK-NEXT: %any = memref.cast %row : memref<128xf32, strided<[1], offset: ?>> to memref<*xf32>
  %any = memref.cast %row : memref<128xf32, strided<[1], offset: ?>> to memref<*xf32>
  // CHECK-NEXT: %either = arith.select %c, %p, %q : memref<*xf32>
  %either = arith.select %c, %p, %q : memref<*xf32>
  // CHECK-NEXT: %address = memref.extract_aligned_pointer_as_index %either : memref<*xf32> -> index
  %address = memref.extract_aligned_pointer_as_index %either : memref<*xf32> -> index
  return
}

// CHECK-LABEL: @accesses(
// LLVM19-LABEL: @accesses(
func.func @accesses(%m: memref<8xf32, strided<[1], offset: ?>>, %n: memref<8xi32>, %i: index, %k: i32) {
  // CHECK-NEXT: %a = memref.alloc() : memref<8xf32>
  %a = memref.alloc() : memref<8xf32>
  // CHECK-NEXT: memref.copy %m, %a : memref<8xf32, strided<[1], offset: ?>> to memref<8xf32>
  memref.copy %m, %a : memref<8xf32, strided<[1], offset: ?>> to memref<8xf32>
  // CHECK-NEXT: %t = bufferization.to_tensor %a restrict writable : memref<8xf32> to tensor<8xf32>
  // LLVM19: %t = bufferization.to_tensor %a restrict writable : memref<8xf32>{{$}}
  %t = bufferization.to_tensor %a restrict writable : memref<8xf32>
  // CHECK-NEXT: %u = bufferization.to_tensor %m : memref<8xf32, strided<[1], offset: ?>> to tensor<8xf32>
  %u = bufferization.to_tensor %m : memref<8xf32, strided<[1], offset: ?>> to tensor<8xf32>
  // CHECK-NEXT: %b = bufferization.to_buffer %t read_only : tensor<8xf32> to memref<8xf32>
  // LLVM19: %b = bufferization.to_memref %t read_only : memref<8xf32>
  %b = bufferization.to_memref %t read_only : memref<8xf32>
  // CHECK-NEXT: bufferization.materialize_in_destination %t in writable %m : (tensor<8xf32>, memref<8xf32, strided<[1], offset: ?>>) -> ()
  bufferization.materialize_in_destination %t in writable %m : (tensor<8xf32>, memref<8xf32, strided<[1], offset: ?>>) -> ()
  // CHECK-NEXT: %v = memref.load %m[%i] : memref<8xf32, strided<[1], offset: ?>>
  %v = memref.load %m[%i] : memref<8xf32, strided<[1], offset: ?>>
  // CHECK-NEXT: affine.store %v, %a[0] : memref<8xf32>
  affine.store %v, %a[0] : memref<8xf32>
  // CHECK-NEXT: %old = memref.atomic_rmw addf %v, %m[%i] : (f32, memref<8xf32, strided<[1], offset: ?>>) -> f32
  %old = memref.atomic_rmw addf %v, %m[%i] : (f32, memref<8xf32, strided<[1], offset: ?>>) -> f32
  // CHECK-NEXT: %before = memref.atomic_rmw maxu %k, %n[%i] : (i32, memref<8xi32>) -> i32
  %before = memref.atomic_rmw maxu %k, %n[%i] : (i32, memref<8xi32>) -> i32
  // CHECK-NEXT: %new = memref.generic_atomic_rmw %m[%i] : memref<8xf32, strided<[1], offset: ?>> {
  %new = memref.generic_atomic_rmw %m[%i] : memref<8xf32, strided<[1], offset: ?>> {
  // CHECK-NEXT: ^{{.*}}(%current: f32):
  ^bb0(%current: f32):
    // CHECK-NEXT: %sum = arith.addf %current, %v : f32
    %sum = arith.addf %current, %v : f32
    // CHECK-NEXT: memref.atomic_yield %sum : f32
    memref.atomic_yield %sum : f32
  }
  memref.dealloc %a : memref<8xf32>
  return
}
