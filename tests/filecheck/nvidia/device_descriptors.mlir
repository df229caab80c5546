// RUN: tlx-opt %s -p tlx-lower-device-descriptors --split-input-file --verify-diagnostics | filecheck %s
// covers: ttng.tensormap

#tiles = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>

// The box is as wide as the swizzle, sizes and strides count from the fastest dimension, strides are bytes.

// CHECK-LABEL: @written
// CHECK-DAG:     %[[INNER:.*]] = arith.constant 64 : i32
// CHECK-DAG:     %[[OUTER:.*]] = arith.constant 32 : i32
// CHECK-DAG:     %[[SIZE:.*]] = arith.constant 2 : i64
// CHECK-DAG:     %[[BYTES:.*]] = arith.muli %s, %[[SIZE]] : i64
// CHECK:         ttng.tensormap_create %where, %p, [%[[INNER]], %[[OUTER]]], [%n, %m], [%[[BYTES]]], [%{{.*}}, %{{.*}}] {elem_type = 6 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32, fill_mode = 1 : i32}
// CHECK-NEXT:    ttng.tensormap_fenceproxy_acquire %where
// CHECK-NEXT:    ttng.reinterpret_tensor_descriptor %where : !tt.ptr<i8> to !tt.tensordesc<32x128xf16, #shared>
builtin.module {
  tt.func public @written(%where: !tt.ptr<i8>, %p: !tt.ptr<f16>, %m: i32, %n: i32, %s: i64, %one: i64) {
    %d = tlx.make_tensor_descriptor %where, %p, [%m, %n], [%s, %one] {padding = 2 : i32} : <i8>, <f16>, <32x128xf16, #tiles>
    tt.return
  }
}

// -----

#turned = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>

builtin.module {
  tt.func public @turned(%where: !tt.ptr<i8>, %p: !tt.ptr<f16>, %m: i32, %n: i32, %s: i64, %one: i64) {
    // expected-error @+1 {{TMA writes no tile whose first dimension is the fastest one in shared memory}}
    %d = tlx.make_tensor_descriptor %where, %p, [%m, %n], [%s, %one] : <i8>, <f16>, <64x64xf16, #turned>
    tt.return
  }
}

// -----

builtin.module {
  tt.func public @without_layout(%where: !tt.ptr<i8>, %p: !tt.ptr<f16>, %m: i32, %n: i32, %s: i64, %one: i64) {
    // expected-error @+1 {{a descriptor needs the layout of its tiles in shared memory here}}
    %d = tlx.make_tensor_descriptor %where, %p, [%m, %n], [%s, %one] : <i8>, <f16>, <64x64xf16>
    tt.return
  }
}
