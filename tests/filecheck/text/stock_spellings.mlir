// RUN: tlx-opt --split-input-file %s | filecheck %s
// RUN: tlx-opt --split-input-file %s | tlx-opt --split-input-file | filecheck %s

// Spellings that MLIR or stock Triton reads and does not print.

// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @defaults(%a: tensor<64x64xf32, #mma>, %b: !ttg.memdesc<64x64xf16, #shared, #smem>) {
  tt.return
}

// -----

tt.func @one_result(%c: i1, %n: i32) {
  // CHECK: scf.if %c -> (i32) {
  %0 = scf.if %c -> i32 {
    scf.yield %n : i32
  } else {
    scf.yield %n : i32
  }
  // CHECK: scf.for %i = %n to %n step %n iter_args(%x = %n) -> (i32)  : i32 {
  %1 = scf.for %i = %n to %n step %n iter_args(%x = %n) -> i32 : i32 {
    scf.yield %x : i32
  }
  tt.return
}

// -----

tt.func @quoted_predicate(%a: i32, %f: f32) {
  // CHECK: arith.cmpi slt, %a, %a : i32
  %0 = arith.cmpi "slt", %a, %a : i32
  // CHECK: arith.cmpf olt, %f, %f : f32
  %1 = arith.cmpf "olt", %f, %f : f32
  tt.return
}

// -----

// The last operation of a region has a result, and the terminator carries nothing.
tt.func @terminator(%n: i32) {
  // CHECK:      scf.execute_region {
  // CHECK-NEXT:   %0 = arith.addi %n, %n : i32
  // CHECK-NEXT:   scf.yield
  // CHECK-NEXT: }
  scf.execute_region {
    %0 = arith.addi %n, %n : i32
    scf.yield
  }
  // CHECK: scf.execute_region -> i32 {
  %1 = scf.execute_region -> i32 {
    scf.yield %n : i32
  }
  tt.return
}

// -----

// A name of digits alone is no name.
// CHECK: tt.func @numbers(%0: i32)
tt.func @numbers(%_0: i32) {
  // CHECK: %1 = arith.addi %0, %0 : i32
  %_1 = arith.addi %_0, %_0 : i32
  tt.return
}

// -----

// A file of aliases is an empty module.
// CHECK: builtin.module {
#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

// -----

// What tools keep for themselves is skipped.
// CHECK: tt.func @resources()
tt.func @resources() {
  tt.return
}

{-#
  external_resources: {
    mlir_reproducer: {
      pipeline: "builtin.module(cse)",
      disable_threading: true
    }
  }
#-}
