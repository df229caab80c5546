// RUN: tlx-opt %s -p linalg-lower-tensors,dce | filecheck %s

// Operations of linalg on tensors have no effects, so what is not used goes; those on memory stay, and so does what
// calls a function that is not known.
// CHECK-LABEL: @values
// CHECK-NEXT: linalg.fill ins(%s : f32) outs(%m : memref<4xf32>)
// CHECK-NEXT: tensor.empty
// CHECK-NEXT: linalg.generic
// CHECK-NEXT: ^bb0
// CHECK-NEXT: func.call @__nv_j0f
// CHECK-NEXT: linalg.yield
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
tt.func public @values(%x: tensor<64x2xf32>, %i: tensor<64x2xi32>, %s: f32, %m: memref<4xf32>, %a: tensor<64x64xf32>) {
  %0 = arith.addf %x, %x : tensor<64x2xf32>
  %1 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %2 = tt.expand_dims %1 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %3 = tt.broadcast %2 : tensor<64x1xi32> -> tensor<64x2xi32>
  %4 = tt.splat %s : f32 -> tensor<64xf32>
  %5 = tt.trans %0 {order = array<i32: 1, 0>} : tensor<64x2xf32> -> tensor<2x64xf32>
  %6 = "tt.reduce"(%0) <{axis = 1 : i32}> ({
  ^bb0(%p: f32, %q: f32):
    %7 = arith.maxnumf %p, %q : f32
    tt.reduce.return %7 : f32
  }) : (tensor<64x2xf32>) -> tensor<64xf32>
  %8 = tt.gather %x[%i] {axis = 0 : i32} : (tensor<64x2xf32>, tensor<64x2xi32>) -> tensor<64x2xf32>
  %9 = tt.dot %x, %5, %a : tensor<64x2xf32> * tensor<2x64xf32> -> tensor<64x64xf32>
  linalg.fill ins(%s : f32) outs(%m : memref<4xf32>)
  %10 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_j0f"} : (tensor<64x2xf32>) -> tensor<64x2xf32>
  tt.return
}
