// RUN: tlx-opt %s -p triton-to-linalg,linalg-mark-arguments | filecheck %s
// RUN: tlx-opt %s -p 'triton-to-linalg,linalg-mark-arguments{distinct=true}' | filecheck %s --check-prefix=DISTINCT
// RUN: tlx-opt %s -p triton-to-linalg,linalg-mark-arguments | tlx-opt | filecheck %s

// %x is read; %y is read and written; of %out only the address is known.
// CHECK: func.func @kernel(%x: memref<*xf32> {llvm.readonly}, %y: memref<*xf32>, %out: memref<*xi64>, %n: i32, %pid_x: i32,
// DISTINCT: @kernel(%x: memref<*xf32> {llvm.noalias, llvm.readonly}, %y: memref<*xf32> {llvm.noalias}, %out: memref<*xi64> {llvm.noalias}, %n: i32,
tt.func public @kernel(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %out: !tt.ptr<i64>, %n: i32) {
  %i = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %s = tt.splat %n : i32 -> tensor<8xi32>
  %m = arith.cmpi slt, %i, %s : tensor<8xi32>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %xs = tt.addptr %p, %i : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %q = tt.splat %y : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  %ys = tt.addptr %q, %i : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %a = tt.load %xs, %m : tensor<8x!tt.ptr<f32>>
  %b = tt.load %ys : tensor<8x!tt.ptr<f32>>
  %c = arith.addf %a, %b : tensor<8xf32>
  tt.store %ys, %c : tensor<8x!tt.ptr<f32>>
  %d = tt.ptr_to_int %out : !tt.ptr<i64> -> i64
  tt.store %out, %d : !tt.ptr<i64>
  tt.return
}
