// RUN: tlx-opt %s -p linalg-lower-tensors --split-input-file --verify-diagnostics
// RUN: not tlx-opt %S/Inputs/inline_asm.mlir -p linalg-lower-tensors 2>&1 | filecheck %s

// What could be used instead is listed.
// CHECK: inline_asm.mlir:2:8: error: 'tt.elementwise_inline_asm' cannot be lowered to linalg: its PTX runs on NVIDIA's GPUs only
// CHECK: note: supported on tensors of numbers: arith, math, and tt.approx_divf, tt.bitcast, tt.broadcast,

tt.func public @ptx(%x: tensor<8xi32>) -> tensor<8xi32> {
  // expected-error @below {{'tt.elementwise_inline_asm' cannot be lowered to linalg: its PTX runs on NVIDIA's GPUs only}}
  %0 = tt.elementwise_inline_asm "not.b32 $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : tensor<8xi32> -> tensor<8xi32>
  tt.return %0 : tensor<8xi32>
}

// -----

tt.func public @accumulator(%x: tensor<16x16xi8>, %c: tensor<16x16xi64>) -> tensor<16x16xi64> {
  // expected-error @below {{'tt.dot' cannot be lowered to linalg: integers are accumulated in i32, not in i64}}
  %0 = tt.dot %x, %x, %c : tensor<16x16xi8> * tensor<16x16xi8> -> tensor<16x16xi64>
  tt.return %0 : tensor<16x16xi64>
}

// -----

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
tt.func public @layout(%x: tensor<128xf32, #b>) -> tensor<128xf32, #b> {
  // expected-error @below {{'arith.addf' cannot be lowered to linalg: its tensors have layouts, and this pass takes Triton's IR before they are chosen}}
  %0 = arith.addf %x, %x : tensor<128xf32, #b>
  tt.return %0 : tensor<128xf32, #b>
}

// -----

tt.func public @gpu(%x: tensor<128xf32>) {
  // expected-error @below {{'ttg.local_alloc' cannot be lowered to linalg: it is an operation of NVIDIA's GPUs}}
  %0 = ttg.local_alloc %x : (tensor<128xf32>) -> !ttg.memdesc<128xf32, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>, #ttg.shared_memory>
  tt.return
}
