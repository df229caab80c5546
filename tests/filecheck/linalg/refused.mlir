// RUN: tlx-opt %s -p triton-to-linalg --split-input-file --verify-diagnostics

tt.func public @polls(%x: !tt.ptr<i32>, %v: i32) {
  // expected-error @below {{'tt.atomic_poll' cannot be lowered to linalg: it waits for other programs, which run one after the other}}
  %0 = tt.atomic_poll relaxed, gpu, %x, %v : !tt.ptr<i32>, i32 -> i1
  tt.return
}

// -----

tt.func public @splits(%x: !tt.ptr<f32>) {
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<8x2x!tt.ptr<f32>>
  // expected-error @below {{'tt.split' cannot be lowered to linalg: the bases of its pointers are not known}}
  %q, %r = tt.split %p : tensor<8x2x!tt.ptr<f32>> -> tensor<8x!tt.ptr<f32>>
  %v = tt.load %q : tensor<8x!tt.ptr<f32>>
  tt.return
}

// -----

tt.func public @carries_wider_pointers(%x: !tt.ptr<i8>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %moved = tt.addptr %x, %n : !tt.ptr<i8>, i32
  %wide = tt.bitcast %moved : !tt.ptr<i8> -> !tt.ptr<i32>
  // expected-error @below {{'scf.for' cannot be lowered to linalg: its offsets in elements of 1 bytes may be no multiples of 4 bytes}}
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%p = %wide) -> (!tt.ptr<i32>) : i32 {
    %next = tt.addptr %p, %c1 : !tt.ptr<i32>, i32
    scf.yield %next : !tt.ptr<i32>
  }
  %v = tt.load %last : !tt.ptr<i32>
  tt.return
}
