// RUN: tlx-opt %s | filecheck %s
// RUN: TLX_ROUNDTRIP

// Pointers to blocks, which older versions of Triton have.
// CHECK-LABEL: @block_pointers(
tt.func @block_pointers(%x: !tt.ptr<f16>, %n: i64, %i: i32) {
  // CHECK: %p = tt.make_tensor_ptr %x, [%n, %n], [%n, %n], [%i, %i] {order = array<i32: 1, 0>} : <tensor<8x4xf16>>
  %p = tt.make_tensor_ptr %x, [%n, %n], [%n, %n], [%i, %i] {order = array<i32: 1, 0>} : <tensor<8x4xf16>>
  // CHECK: %q = tt.advance %p, [%i, %i] : <tensor<8x4xf16>>
  %q = tt.advance %p, [%i, %i] : <tensor<8x4xf16>>
  // CHECK: %v = tt.load %q {boundaryCheck = array<i32: 0, 1>, padding = 2 : i32} : !tt.ptr<tensor<8x4xf16>>
  %v = tt.load %q {boundaryCheck = array<i32: 0, 1>, padding = 2 : i32} : !tt.ptr<tensor<8x4xf16>>
  // CHECK: tt.store %p, %v {boundaryCheck = array<i32: 1>} : !tt.ptr<tensor<8x4xf16>>
  tt.store %p, %v {boundaryCheck = array<i32: 1>} : !tt.ptr<tensor<8x4xf16>>
  tt.return
}
