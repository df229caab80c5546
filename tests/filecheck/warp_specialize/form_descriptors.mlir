// RUN: tlx-opt %s -p tlx-ws-form-descriptors --split-input-file | filecheck %s

// The pointers move by a block in each turn, and the mask is the end of the rows: the column is that of the block.

// CHECK-LABEL: @columns
// CHECK-SAME:    tlx.launch_conditions = ["stride > 0", "K > 0"]
// CHECK-DAG:     [[STRIDE:%.*]] = arith.extsi %stride : i32 to i64
// CHECK-DAG:     [[ONE:%.*]] = arith.constant 1 : i64
// CHECK:         [[A:%.*]] = tt.make_tensor_descriptor %a_ptr, [%{{.*}}, %K], {{\[}}[[STRIDE]], [[ONE]]] : <f16>, <16x64xf16>
// CHECK:         scf.for %k = %c0 to %K step %c64 iter_args(%{{.*}}) -> (tensor<16x64xf16>)
// CHECK:           tt.descriptor_load [[A]][%c0, %k]
// CHECK-SAME:      tlx.note = "TMA: the mask is that of the tensor's bounds, outside of which TMA gives 0"
// CHECK-NEXT:      arith.addf
// CHECK-NEXT:      scf.yield
builtin.module {
  tt.func public @columns(%a_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f16>, %K: i32, %stride: i32 {tt.divisibility = 16 : i32}) {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<16x64xf16>
    %step = arith.constant dense<64> : tensor<16x64xi64>
    %i = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
    %j = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %i64 = arith.extsi %i : tensor<16xi32> to tensor<16xi64>
    %j64 = arith.extsi %j : tensor<64xi32> to tensor<64xi64>
    %rows = tt.expand_dims %i64 {axis = 1 : i32} : tensor<16xi64> -> tensor<16x1xi64>
    %columns = tt.expand_dims %j64 {axis = 0 : i32} : tensor<64xi64> -> tensor<1x64xi64>
    %wide = arith.extsi %stride : i32 to i64
    %by = tt.splat %wide : i64 -> tensor<16x1xi64>
    %down = arith.muli %rows, %by : tensor<16x1xi64>
    %d = tt.broadcast %down : tensor<16x1xi64> -> tensor<16x64xi64>
    %r = tt.broadcast %columns : tensor<1x64xi64> -> tensor<16x64xi64>
    %at = arith.addi %d, %r : tensor<16x64xi64>
    %base = tt.splat %a_ptr : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>>
    %first = tt.addptr %base, %at : tensor<16x64x!tt.ptr<f16>>, tensor<16x64xi64>
    %sum, %last = scf.for %k = %c0 to %K step %c64 iter_args(%acc = %zero, %p = %first) -> (tensor<16x64xf16>, tensor<16x64x!tt.ptr<f16>>) : i32 {
      %left = arith.subi %K, %k : i32
      %end = tt.splat %left : i32 -> tensor<64xi32>
      %inside = arith.cmpi slt, %j, %end : tensor<64xi32>
      %row = tt.expand_dims %inside {axis = 0 : i32} : tensor<64xi1> -> tensor<1x64xi1>
      %mask = tt.broadcast %row : tensor<1x64xi1> -> tensor<16x64xi1>
      %x = tt.load %p, %mask, %zero : tensor<16x64x!tt.ptr<f16>>
      %next = arith.addf %acc, %x : tensor<16x64xf16>
      %moved = tt.addptr %p, %step : tensor<16x64x!tt.ptr<f16>>, tensor<16x64xi64>
      scf.yield %next, %moved : tensor<16x64xf16>, tensor<16x64x!tt.ptr<f16>>
    }
    %o = tt.splat %out : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>>
    tt.store %o, %sum : tensor<16x64x!tt.ptr<f16>>
    tt.return
  }
}

// -----

// The same pointers, and a mask that ends where nothing says that the tensor does.

// CHECK-LABEL: @loaded_end
// CHECK-NOT:     tt.descriptor_load
// CHECK:         %x = tt.load %p, %mask {tlx.note = "loaded by the threads, because its mask ends at end, and 'store' may bring what is there into memory
builtin.module {
  tt.func public @loaded_end(%a_ptr: !tt.ptr<f16>, %ends: !tt.ptr<i32>, %out: !tt.ptr<f16>) {
    %c64 = arith.constant dense<64> : tensor<16x1xi32>
    %i = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
    %j = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %rows = tt.expand_dims %i {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
    %columns = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %down = arith.muli %rows, %c64 : tensor<16x1xi32>
    %d = tt.broadcast %down : tensor<16x1xi32> -> tensor<16x64xi32>
    %r = tt.broadcast %columns : tensor<1x64xi32> -> tensor<16x64xi32>
    %at = arith.addi %d, %r : tensor<16x64xi32>
    %base = tt.splat %a_ptr : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>>
    %p = tt.addptr %base, %at : tensor<16x64x!tt.ptr<f16>>, tensor<16x64xi32>
    %end = tt.load %ends : !tt.ptr<i32>
    %e = tt.splat %end : i32 -> tensor<16x1xi32>
    %inside = arith.cmpi slt, %rows, %e : tensor<16x1xi32>
    %mask = tt.broadcast %inside : tensor<16x1xi1> -> tensor<16x64xi1>
    %x = tt.load %p, %mask : tensor<16x64x!tt.ptr<f16>>
    %o = tt.splat %out : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>>
    tt.store %o, %x : tensor<16x64x!tt.ptr<f16>>
    tt.return
  }
}
