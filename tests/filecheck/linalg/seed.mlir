// RUN: tlx-opt %s -p triton-to-linalg | filecheck %s

// Seed 004's input as it stands, and its result line by line. What differs, and why:
// - the function states how many of its last arguments the grid gives, which an interpreter of it must know;
// - `to_tensor` states the type of the tensor, as MLIR does since LLVM 20 (`--llvm-spelling 19` leaves it out);
// - the constant of the reduction stands where it is used, and the memory of a load is allocated before it is seen.

tt.func @kernel(%afloat : !tt.ptr<bf16>, %res : !tt.ptr<bf16>) {
  %0 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %1 = tt.splat %afloat : (!tt.ptr<bf16>) -> tensor<128x!tt.ptr<bf16>>
  %2 = tt.addptr %1, %0 : tensor<128x!tt.ptr<bf16>>, tensor<128xi32>
  %afm = tt.load %2 : tensor<128x!tt.ptr<bf16>>
  %3 = "tt.reduce"(%afm) ({
  ^bb0(%arg5: bf16, %arg6: bf16):
    %21 = arith.addf %arg5, %arg6 : bf16
    tt.reduce.return %21 : bf16
  }) {axis = 0 : i32} : (tensor<128xbf16>) -> bf16
  tt.store %res, %3 : !tt.ptr<bf16>
  tt.return
}

// CHECK:      func.func @kernel(%[[A:.*]]: memref<*xbf16>, %[[R:.*]]: memref<*xbf16>, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32) attributes {tt.program_ids = 3 : i32} {
// CHECK-NEXT:   %[[ALLOC:.*]] = memref.alloc() : memref<128xbf16>
// CHECK-NEXT:   %[[VIEW:.*]] = memref.reinterpret_cast %[[A]] to offset: [0], sizes: [128], strides: [1] : memref<*xbf16> to memref<128xbf16, strided<[1]>>
// CHECK-NEXT:   memref.copy %[[VIEW]], %[[ALLOC]] : memref<128xbf16, strided<[1]>> to memref<128xbf16>
// CHECK-NEXT:   %[[LOADED:.*]] = bufferization.to_tensor %[[ALLOC]] restrict writable : memref<128xbf16> to tensor<128xbf16>
// CHECK-NEXT:   %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:   %[[EMPTY:.*]] = bufferization.alloc_tensor() : tensor<f32>
// CHECK-NEXT:   %[[START:.*]] = tensor.insert %[[ZERO]] into %[[EMPTY]][] : tensor<f32>
// CHECK-NEXT:   %[[SUM:.*]] = linalg.reduce ins(%[[LOADED]] : tensor<128xbf16>) outs(%[[START]] : tensor<f32>) dimensions = [0] (%[[IN:.*]]: bf16, %[[INIT:.*]]: f32) {
// CHECK-NEXT:     %[[WIDE:.*]] = arith.extf %[[IN]] : bf16 to f32
// CHECK-NEXT:     %[[ADDED:.*]] = arith.addf %[[WIDE]], %[[INIT]] : f32
// CHECK-NEXT:     linalg.yield %[[ADDED]] : f32
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[TOTAL:.*]] = tensor.extract %[[SUM]][] : tensor<f32>
// CHECK-NEXT:   %[[NARROW:.*]] = arith.truncf %[[TOTAL]] : f32 to bf16
// CHECK-NEXT:   %[[TARGET:.*]] = memref.reinterpret_cast %[[R]] to offset: [0], sizes: [1], strides: [1] : memref<*xbf16> to memref<1xbf16, strided<[1]>>
// CHECK-NEXT:   affine.store %[[NARROW]], %[[TARGET]][0] : memref<1xbf16, strided<[1]>>
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
