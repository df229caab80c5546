// Section 7 as its text stands: a scalar is added to a tensor.
// RUN: not tlx-opt %s -p tlx-annotate-program-addresses 2>&1 | filecheck %s

// CHECK: vector_add_invalid.mlir:[[# @LINE + 6]]:27: error: operand is used with type tensor<128xi32>, but has been previously used or defined with type i32
tt.func @vector_add(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<f32>, %arg2: !tt.ptr<f32>) {
    %c128 = arith.constant 128 : i32
    %pid = tt.get_program_id x : i32
    %block_start = arith.muli %pid, %c128 : i32
    %offsets = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
    %indices = arith.addi %block_start, %offsets : tensor<128xi32>

    %ptr_a = tt.splat %arg0 : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
    %ptrs_a = tt.addptr %ptr_a, %indices : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    %a = tt.load %ptrs_a : tensor<128x!tt.ptr<f32>>
    tt.return
}
