// RUN: tlx-opt %s -p triton-to-linalg --split-input-file --verify-diagnostics

tt.func public @polls(%x: !tt.ptr<i32>, %v: i32) {
  // expected-error @below {{'tt.atomic_poll' cannot be lowered to linalg: it waits for other programs, which run one after the other}}
  %0 = tt.atomic_poll relaxed, gpu, %x, %v : !tt.ptr<i32>, i32 -> i1
  tt.return
}

// -----

tt.func public @joins(%x: !tt.ptr<f32>) {
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
  // expected-error @below {{'tt.join' cannot be lowered to linalg: the bases of its pointers are not known}}
  %q = tt.join %p, %p : tensor<8x!tt.ptr<f32>> -> tensor<8x2x!tt.ptr<f32>>
  %v = tt.load %q : tensor<8x2x!tt.ptr<f32>>
  tt.return
}

// -----

tt.func public @tensor_of_pointers(%p: tensor<8x!tt.ptr<f32>>) {
  // expected-error @below {{'tt.load' cannot be lowered to linalg: the base of its pointer is not known (it comes from an argument)}}
  %v = tt.load %p : tensor<8x!tt.ptr<f32>>
  tt.return
}
