// RUN: tlx-opt %s -p tlx-keep-memdesc-branches --split-input-file --verify-diagnostics | filecheck %s

// Each branch computes the buffer that it yields, and after the choice it has its type again.

// CHECK-LABEL: @whole_buffers
// CHECK:         [[BITS:%\w+]] = scf.if %c -> (!ttg.memdesc<64xi32,
// CHECK-NEXT:      [[THEN:%\w+]] = ttg.memdesc_reinterpret %a : !ttg.memdesc<64xf32, {{.*}} -> !ttg.memdesc<64xi32,
// CHECK-NEXT:      scf.yield [[THEN]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      [[ELSE:%\w+]] = ttg.memdesc_reinterpret %b : !ttg.memdesc<64xf32, {{.*}} -> !ttg.memdesc<64xi32,
// CHECK-NEXT:      scf.yield [[ELSE]]
// CHECK-NEXT:    }
// CHECK-NEXT:    [[VIEW:%\w+]] = ttg.memdesc_reinterpret [[BITS]] : !ttg.memdesc<64xi32, {{.*}} -> !ttg.memdesc<64xf32,
// CHECK-NEXT:    ttg.local_load [[VIEW]]
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#t = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @whole_buffers(%c: i1) {
    %a = ttg.local_alloc : () -> !ttg.memdesc<64xf32, #s, #smem, mutable>
    %b = ttg.local_alloc : () -> !ttg.memdesc<64xf32, #s, #smem, mutable>
    %view = scf.if %c -> (!ttg.memdesc<64xf32, #s, #smem, mutable>) {
      scf.yield %a : !ttg.memdesc<64xf32, #s, #smem, mutable>
    } else {
      scf.yield %b : !ttg.memdesc<64xf32, #s, #smem, mutable>
    }
    %v = ttg.local_load %view : !ttg.memdesc<64xf32, #s, #smem, mutable> -> tensor<64xf32, #t>
    tt.return
  }
}

// -----

// Barriers are integers already; a number beside them is none of our business, and neither is tensor memory.

// CHECK-LABEL: @among_others
// CHECK:         scf.if %c -> (i32, !ttg.memdesc<1xf64, {{.*}}, !ttg.memdesc<64x64xf32, #tmem,
// CHECK:           [[THEN:%\w+]] = ttg.memdesc_reinterpret %a : !ttg.memdesc<1xi64, {{.*}} -> !ttg.memdesc<1xf64,
// CHECK-NEXT:      scf.yield %i, [[THEN]], %d
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 64, blockN = 64, colStride = 1>
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @among_others(%c: i1, %i: i32, %j: i32) {
    %a = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #s, #smem, mutable>
    %b = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #s, #smem, mutable>
    %d = ttng.tmem_alloc : () -> !ttg.memdesc<64x64xf32, #tmem, #ttng.tensor_memory, mutable>
    %e = ttng.tmem_alloc : () -> !ttg.memdesc<64x64xf32, #tmem, #ttng.tensor_memory, mutable>
    %r:3 = scf.if %c -> (i32, !ttg.memdesc<1xi64, #s, #smem, mutable>, !ttg.memdesc<64x64xf32, #tmem, #ttng.tensor_memory, mutable>) {
      scf.yield %i, %a, %d : i32, !ttg.memdesc<1xi64, #s, #smem, mutable>, !ttg.memdesc<64x64xf32, #tmem, #ttng.tensor_memory, mutable>
    } else {
      scf.yield %j, %b, %e : i32, !ttg.memdesc<1xi64, #s, #smem, mutable>, !ttg.memdesc<64x64xf32, #tmem, #ttng.tensor_memory, mutable>
    }
    tt.return
  }
}

// -----

// A part that a branch takes itself is computed there already.

// CHECK-LABEL: @parts_taken_in_branches
// CHECK-NOT:     ttg.memdesc_reinterpret
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @parts_taken_in_branches(%c: i1) {
    %a = ttg.local_alloc : () -> !ttg.memdesc<64xf32, #s, #smem, mutable>
    %view = scf.if %c -> (!ttg.memdesc<32xf32, #s, #smem, mutable, 64>) {
      %p = ttg.memdesc_subslice %a[0] : !ttg.memdesc<64xf32, #s, #smem, mutable> -> !ttg.memdesc<32xf32, #s, #smem, mutable, 64>
      scf.yield %p : !ttg.memdesc<32xf32, #s, #smem, mutable, 64>
    } else {
      %q = ttg.memdesc_subslice %a[32] : !ttg.memdesc<64xf32, #s, #smem, mutable> -> !ttg.memdesc<32xf32, #s, #smem, mutable, 64>
      scf.yield %q : !ttg.memdesc<32xf32, #s, #smem, mutable, 64>
    }
    tt.return
  }
}

// -----

// Parts that are there before become a select for certain, and a view of another type would lose where they start.

#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32} {
  tt.func public @parts(%c: i1) {
    %a = ttg.local_alloc : () -> !ttg.memdesc<64xf32, #s, #smem, mutable>
    %p = ttg.memdesc_subslice %a[0] : !ttg.memdesc<64xf32, #s, #smem, mutable> -> !ttg.memdesc<32xf32, #s, #smem, mutable, 64>
    %q = ttg.memdesc_subslice %a[32] : !ttg.memdesc<64xf32, #s, #smem, mutable> -> !ttg.memdesc<32xf32, #s, #smem, mutable, 64>
    // expected-error@+1 {{Triton 3.6 and 3.7 can't choose between parts of buffers, 3.8 is the first version that can}}
    %view = scf.if %c -> (!ttg.memdesc<32xf32, #s, #smem, mutable, 64>) {
      scf.yield %p : !ttg.memdesc<32xf32, #s, #smem, mutable, 64>
    } else {
      scf.yield %q : !ttg.memdesc<32xf32, #s, #smem, mutable, 64>
    }
    tt.return
  }
}
