// RUN: tlx-opt %s --print-debuginfo | filecheck %s
// RUN: tlx-opt %s --print-debuginfo | tlx-opt --print-debuginfo | filecheck %s
// RUN: tlx-opt %s --triton-version 3.6 | filecheck %s --check-prefix=OLD

// Aliases may be used before they are defined, as Triton does with locations; each layout and each location is
// written once. Both spellings of descriptors are read, one is written.

// CHECK:       #shared = #ttg.nvmma_shared
// CHECK-NOT:   #shared1
// CHECK:       tt.func public @k(%d: !tt.tensordesc<64x64xf16, #shared> loc([[D:#loc[0-9]*]]), %e: !tt.tensordesc<64x64xf16, #shared> loc(
// CHECK-NEXT:    tt.return loc([[RETURN:#loc[0-9]*]])
// CHECK:       [[D]] = loc("kernel.py":3:7)
// CHECK:       [[INNER:#loc[0-9]*]] = loc("helper.py":1:2)
// CHECK-NEXT:  [[RETURN]] = loc(callsite([[INNER]] at [[D]]))

// OLD:         tt.func public @k(%d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %e: !tt.tensordesc<tensor<64x64xf16, #shared>>)
tt.func public @k(%d: !tt.tensordesc<64x64xf16, #s> loc(#here), %e: !tt.tensordesc<tensor<64x64xf16, #s>>) {
  tt.return loc(callsite("helper.py":1:2 at #here))
}
#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#here = loc("kernel.py":3:7)
