// RUN: tlx-opt %s -p tlx-ws-host-descriptors --split-input-file | filecheck %s

// Two descriptors that are equal in all become one argument; the pointer goes, and the sizes stay where they are used.

// CHECK-LABEL: @equal
// CHECK-SAME:    (%a: !tt.tensordesc<16x64xf16> {tlx.host_descriptor = {pointer = "x_ptr", shape = ["M", "(N // 2)"], strides = ["N", "1"]}}
// CHECK-SAME:    i32, %{{.*}}: i32, %{{.*}}: i64, %{{.*}}: i64, %N: i32)
// CHECK-SAME:    tlx.launch_conditions = ["N >= 0", "M > 0", "(N // 2) > 0"]
// CHECK-NOT:     tt.make_tensor_descriptor
// CHECK:         [[X:%.*]] = tt.descriptor_load %a[%N, %N]
// CHECK-NEXT:    tt.descriptor_store %a[%N, %c0], [[X]]
builtin.module {
  tt.func public @equal(%x_ptr: !tt.ptr<f16>, %M: i32, %N: i32) {
    %c0 = arith.constant 0 : i32
    %c2 = arith.constant 2 : i32
    %one = arith.constant 1 : i64
    %half = arith.divsi %N, %c2 : i32
    %stride = arith.extsi %N : i32 to i64
    %a = tt.make_tensor_descriptor %x_ptr, [%M, %half], [%stride, %one] : <f16>, <16x64xf16>
    %b = tt.make_tensor_descriptor %x_ptr, [%M, %half], [%stride, %one] : <f16>, <16x64xf16>
    %x = tt.descriptor_load %a[%N, %N] : !tt.tensordesc<16x64xf16> -> tensor<16x64xf16>
    tt.descriptor_store %b[%N, %c0], %x : !tt.tensordesc<16x64xf16>, tensor<16x64xf16>
    tt.return
  }
}

// -----

// The number of rows is known to the kernel alone.

// CHECK-LABEL: @loaded
// CHECK:         tt.make_tensor_descriptor %x_ptr
builtin.module {
  tt.func public @loaded(%x_ptr: !tt.ptr<f16>, %rows: !tt.ptr<i32>, %stride: i64) {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %one = arith.constant 1 : i64
    %M = tt.load %rows : !tt.ptr<i32>
    %a = tt.make_tensor_descriptor %x_ptr, [%M, %c64], [%stride, %one] : <f16>, <16x64xf16>
    %x = tt.descriptor_load %a[%c0, %c0] : !tt.tensordesc<16x64xf16> -> tensor<16x64xf16>
    tt.descriptor_store %a[%c0, %c0], %x : !tt.tensordesc<16x64xf16>, tensor<16x64xf16>
    tt.return
  }
}
