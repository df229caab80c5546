// RUN: tlx-opt %s --canonicalize | filecheck %s

// Constants go through shape operations.

// CHECK-LABEL: @constants
// CHECK-NEXT:    %[[C:.*]] = arith.constant dense<7> : tensor<4x64xi32>
// CHECK-NEXT:    tt.store %ptrs, %[[C]]
tt.func public @constants(%ptrs: tensor<4x64x!tt.ptr<i32>>) {
  %c7 = arith.constant 7 : i32
  %0 = tt.splat %c7 : i32 -> tensor<64xi32>
  %1 = tt.expand_dims %0 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %2 = tt.broadcast %1 : tensor<1x64xi32> -> tensor<4x64xi32>
  tt.store %ptrs, %2 : tensor<4x64x!tt.ptr<i32>>
  tt.return
}

// So do splats of values that are not known; a block that is no splat is left alone.

// CHECK-LABEL: @splats
// CHECK-NEXT:    %[[S:.*]] = tt.splat %x : i32 -> tensor<4x64xi32>
// CHECK-NEXT:    tt.store %ptrs, %[[S]]
// CHECK-NEXT:    %[[B:.*]] = tt.broadcast %row
// CHECK-NEXT:    tt.store %ptrs, %[[B]]
tt.func public @splats(%ptrs: tensor<4x64x!tt.ptr<i32>>, %x: i32, %row: tensor<1x64xi32>) {
  %0 = tt.splat %x : i32 -> tensor<1x64xi32>
  %1 = tt.broadcast %0 : tensor<1x64xi32> -> tensor<4x64xi32>
  tt.store %ptrs, %1 : tensor<4x64x!tt.ptr<i32>>
  %2 = tt.broadcast %row : tensor<1x64xi32> -> tensor<4x64xi32>
  tt.store %ptrs, %2 : tensor<4x64x!tt.ptr<i32>>
  tt.return
}

// A pointer that moves by zero stays; one that moves by one moves.

// CHECK-LABEL: @pointers
// CHECK:         %[[ONE:.*]] = arith.constant 1 : i32
// CHECK-NEXT:    tt.load %p : !tt.ptr<i32>
// CHECK-NEXT:    %[[NEXT:.*]] = tt.addptr %p, %[[ONE]]
tt.func public @pointers(%p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %0 = tt.addptr %p, %c0 : !tt.ptr<i32>, i32
  %1 = tt.load %0 : !tt.ptr<i32>
  %2 = tt.addptr %p, %c1 : !tt.ptr<i32>, i32
  tt.store %2, %1 : !tt.ptr<i32>
  tt.return
}
