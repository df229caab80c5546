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

// What an attribute dictionary says of a property is the property.
tt.func @properties(%x: tensor<64xf16>) {
  // CHECK: tt.fp_to_fp %x, rounding = rtne : tensor<64xf16> -> tensor<64xf8E5M2>
  %0 = tt.fp_to_fp %x {rounding = 1 : i32} : tensor<64xf16> -> tensor<64xf8E5M2>
  tt.return
}

// -----

// Older parameters of one CTA say nothing.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], CTAsPerCGA = [1, 1], CTASplitNum = [1, 1], CTAOrder = [1, 0], instrShape = [16, 64, 16]}>
tt.func @of_one_cta(%a: tensor<64x64xf32, #mma>) {
  tt.return
}

// -----

// CHECK: tt.func @of_llvm(%c: i1, %p: !llvm.ptr<3>)
tt.func @of_llvm(%c: i1, %p: !llvm.ptr<3>) {
  // CHECK: llvm.intr.assume %c : i1 {ttg.partition = array<i32: 1>}
  llvm.intr.assume %c : i1 {ttg.partition = array<i32: 1>}
  // CHECK: llvm.inline_asm has_side_effects asm_dialect = att operand_attrs = [] "x $0", "b,r" %c, %p : (i1, !llvm.ptr<3>) -> !llvm.void
  %0 = llvm.inline_asm has_side_effects asm_dialect = att operand_attrs = [] "x $0", "b,r" %c, %p : (i1, !llvm.ptr<3>) -> !llvm.void
  tt.return
}

// -----

// Scales are in tensor memory four times, and blocks of 128 rows are of either CTA of a pair.
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>
#scales = #ttng.tensor_memory_scales_encoding<>
// CHECK: tt.func @columns(
tt.func @columns(%s: !ttg.memdesc<128x32xi8, #scales, #ttng.tensor_memory, mutable>) {
  // CHECK: ttg.memdesc_reinterpret
  %0 = ttg.memdesc_reinterpret %s : !ttg.memdesc<128x32xi8, #scales, #ttng.tensor_memory, mutable> -> !ttg.memdesc<128x128xi8, #tmem, #ttng.tensor_memory, mutable>
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
