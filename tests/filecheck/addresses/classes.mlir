// RUN: tlx-opt %s -p tlx-annotate-program-addresses | filecheck %s

// Every program reads the same elements.
// CHECK-LABEL: tt.func @independent(
// CHECK: tt.load {{.*}}"PATTERN(PID_INDEPENDENT, block_size=64, coalesced=true)"}
tt.func @independent(%p: !tt.ptr<f16>) {
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %b = tt.splat %p : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
  %q = tt.addptr %b, %r : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
  %v = tt.load %q : tensor<64x!tt.ptr<f16>>
  tt.return
}

// A tile of a matrix with a row stride that is an argument: a stride along each axis of the grid, in 64 bits.
// CHECK-LABEL: tt.func @tiles(
// CHECK: "PID_INFO(axis=0, stride=32, offset=[0,31], elem_range)"
// CHECK: tt.store {{.*}}"PATTERN(PID_MULTI_AXIS, block=32x64, strides=[64*%stride, 128], coalesced=true)"}
tt.func @tiles(%p: !tt.ptr<f16>, %stride: i64) {
  %c32 = arith.constant 32 : i64
  %c64 = arith.constant 64 : i64
  %x = tt.get_program_id x : i32
  %y = tt.get_program_id y : i32
  %x64 = arith.extsi %x : i32 to i64
  %y64 = arith.extsi %y : i32 to i64
  %row = arith.muli %x64, %c32 : i64
  %column = arith.muli %y64, %c64 : i64
  %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %r64 = arith.extsi %r : tensor<32xi32> to tensor<32xi64>
  %first = tt.splat %row : i64 -> tensor<32xi64>
  %rows = arith.addi %first, %r64 : tensor<32xi64>
  %strides = tt.splat %stride : i64 -> tensor<32xi64>
  %starts = arith.muli %rows, %strides : tensor<32xi64>
  %starts2 = tt.expand_dims %starts {axis = 1 : i32} : tensor<32xi64> -> tensor<32x1xi64>
  %c = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %c64s = arith.extsi %c : tensor<64xi32> to tensor<64xi64>
  %left = tt.splat %column : i64 -> tensor<64xi64>
  %columns = arith.addi %left, %c64s : tensor<64xi64>
  %columns2 = tt.expand_dims %columns {axis = 0 : i32} : tensor<64xi64> -> tensor<1x64xi64>
  %a = tt.broadcast %starts2 : tensor<32x1xi64> -> tensor<32x64xi64>
  %b = tt.broadcast %columns2 : tensor<1x64xi64> -> tensor<32x64xi64>
  %o = arith.addi %a, %b : tensor<32x64xi64>
  %base = tt.splat %p : !tt.ptr<f16> -> tensor<32x64x!tt.ptr<f16>>
  %q = tt.addptr %base, %o : tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi64>
  %v = arith.constant dense<0.0> : tensor<32x64xf16>
  tt.store %q, %v : tensor<32x64x!tt.ptr<f16>>
  tt.return
}

// Tiles in the order of groups of rows: exact, and affine in pieces.
// CHECK-LABEL: tt.func @grouped(
// CHECK: tt.descriptor_load {{.*}}"PATTERN(PID_QUASI_AFFINE, block=64x64, offset=
// CHECK-SAME: 128*%d.stride.0*((pid_x % 32) % 8) + 1024*%d.stride.0*(pid_x // 32) + 128*((pid_x % 32) // 8) + 2*%d.stride.0*i0 + 2*i1, coalesced=true)"
tt.func @grouped(%d: !tt.tensordesc<64x64xf16>) {
  %c8 = arith.constant 8 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %pid = tt.get_program_id x : i32
  %group = arith.divsi %pid, %c32 : i32
  %first = arith.muli %group, %c8 : i32
  %in = arith.remsi %pid, %c32 : i32
  %part = arith.remsi %in, %c8 : i32
  %m = arith.addi %first, %part : i32
  %n = arith.divsi %in, %c8 : i32
  %row = arith.muli %m, %c64 : i32
  %column = arith.muli %n, %c64 : i32
  %v = tt.descriptor_load %d[%row, %column] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
  tt.return
}

// An atomic addition to a counter that the program's ids are hashed to.
// CHECK-LABEL: tt.func @nonlinear(
// CHECK: tt.atomic_rmw {{.*}}"PATTERN(PID_NONLINEAR, block_size=1, offset=4*(xor(pid_x, 5) % 64), coalesced=true)"
tt.func @nonlinear(%p: !tt.ptr<i32>) {
  %c5 = arith.constant 5 : i32
  %c63 = arith.constant 63 : i32
  %pid = tt.get_program_id x : i32
  %mixed = arith.xori %pid, %c5 : i32
  %slot = arith.andi %mixed, %c63 : i32
  %q = tt.addptr %p, %slot : !tt.ptr<i32>, i32
  %on = arith.constant true
  %old = tt.atomic_rmw add, relaxed, gpu, %q, %c5, %on : (!tt.ptr<i32>, i32, i1) -> i32
  tt.return
}

// A row that memory names.
// CHECK-LABEL: tt.func @unknown(
// CHECK: "PATTERN(PID_AFFINE, block_size=1, stride=4, coalesced=true)"}
// CHECK: tt.load {{.*}}"PATTERN(UNKNOWN, it depends on 'row', which comes from memory or is not known)"}
tt.func @unknown(%p: !tt.ptr<f32>, %rows: !tt.ptr<i32>) {
  %pid = tt.get_program_id x : i32
  %at = tt.addptr %rows, %pid : !tt.ptr<i32>, i32
  %row = tt.load %at : !tt.ptr<i32>
  %q = tt.addptr %p, %row : !tt.ptr<f32>, i32
  %v = tt.load %q : !tt.ptr<f32>
  tt.return
}
