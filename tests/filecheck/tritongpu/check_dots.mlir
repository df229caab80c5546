// RUN: tlx-opt %s -p tlx-check-dots-in-flight --split-input-file --verify-diagnostics

// What a wait covers may be used: pendings = 1 covers all dots but the last one.

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!tile = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @covered(%a: !tile, %b: !tile, %zero: tensor<64x64xf32>) {
    %first = ttng.warp_group_dot %a, %b, %zero {isAsync = true} : !tile * !tile -> tensor<64x64xf32>
    %second = ttng.warp_group_dot %b, %a, %zero {isAsync = true} : !tile * !tile -> tensor<64x64xf32>
    %one = ttng.warp_group_dot_wait %first {pendings = 1 : i32} : tensor<64x64xf32>
    %used = arith.mulf %one, %one : tensor<64x64xf32>
    %two = ttng.warp_group_dot_wait %second {pendings = 0 : i32} : tensor<64x64xf32>
    %sum = arith.addf %used, %two : tensor<64x64xf32>
    tt.return
  }

  // Another dot adds to it, and a loop carries it, in flight.
  tt.func @carried(%a: !tile, %b: !tile, %zero: tensor<64x64xf32>, %n: i32) -> tensor<64x64xf32> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %d = ttng.warp_group_dot %a, %b, %acc {isAsync = true} : !tile * !tile -> tensor<64x64xf32>
      %w = ttng.warp_group_dot_wait %d {pendings = 1 : i32} : tensor<64x64xf32>
      scf.yield %w : tensor<64x64xf32>
    }
    %done = ttng.warp_group_dot_wait %sum {pendings = 0 : i32} : tensor<64x64xf32>
    tt.return %done : tensor<64x64xf32>
  }

  // A dot that is not asynchronous waits for itself.
  tt.func @synchronous(%a: !tile, %b: !tile, %zero: tensor<64x64xf32>) -> tensor<64x64xf32> {
    %d = ttng.warp_group_dot %a, %b, %zero : !tile * !tile -> tensor<64x64xf32>
    tt.return %d : tensor<64x64xf32>
  }
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!tile = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @no_wait(%a: !tile, %b: !tile, %zero: tensor<64x64xf32>) {
    %d = ttng.warp_group_dot %a, %b, %zero {isAsync = true} : !tile * !tile -> tensor<64x64xf32>
    // expected-error@+1 {{'arith.mulf' uses the result of an asynchronous dot that may still be in flight}}
    %used = arith.mulf %d, %d : tensor<64x64xf32>
    tt.return
  }
}

// -----

// The wait makes its own result safe: the name that went in stands for registers that it has not seen.

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!tile = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @old_name(%a: !tile, %b: !tile, %zero: tensor<64x64xf32>) {
    %d = ttng.warp_group_dot %a, %b, %zero {isAsync = true} : !tile * !tile -> tensor<64x64xf32>
    %w = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : tensor<64x64xf32>
    // expected-error@+1 {{'arith.mulf' uses the result of an asynchronous dot}}
    %used = arith.mulf %d, %w : tensor<64x64xf32>
    tt.return
  }
}

// -----

// The last dot is the one that pendings = 1 leaves.

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!tile = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @too_few(%a: !tile, %b: !tile, %zero: tensor<64x64xf32>) {
    %d = ttng.warp_group_dot %a, %b, %zero {isAsync = true} : !tile * !tile -> tensor<64x64xf32>
    %w = ttng.warp_group_dot_wait %d {pendings = 1 : i32} : tensor<64x64xf32>
    // expected-error@+1 {{'ttg.local_alloc' uses the result of an asynchronous dot}}
    %copy = ttg.local_alloc %w : (tensor<64x64xf32>) -> !ttg.memdesc<64x64xf32, #shared, #smem, mutable>
    tt.return
  }
}

// -----

// Of two branches the one with fewer dots counts: where %p is false, pendings = 1 does not reach the first dot.

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!tile = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @branch(%a: !tile, %b: !tile, %zero: tensor<64x64xf32>, %p: i1) {
    %d = ttng.warp_group_dot %a, %b, %zero {isAsync = true} : !tile * !tile -> tensor<64x64xf32>
    %other = scf.if %p -> (tensor<64x64xf32>) {
      %e = ttng.warp_group_dot %a, %b, %zero {isAsync = true} : !tile * !tile -> tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    } else {
      scf.yield %zero : tensor<64x64xf32>
    }
    %w = ttng.warp_group_dot_wait %d {pendings = 1 : i32} : tensor<64x64xf32>
    // expected-error@+1 {{'arith.mulf' uses the result of an asynchronous dot}}
    %used = arith.mulf %w, %w : tensor<64x64xf32>
    tt.return
  }
}

// -----

// What goes round a loop is in flight at its head, from the second turn on.

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!tile = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @round(%a: !tile, %b: !tile, %zero: tensor<64x64xf32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      // expected-error@+1 {{'arith.mulf' uses the result of an asynchronous dot}}
      %scaled = arith.mulf %acc, %acc : tensor<64x64xf32>
      %d = ttng.warp_group_dot %a, %b, %scaled {isAsync = true} : !tile * !tile -> tensor<64x64xf32>
      scf.yield %d : tensor<64x64xf32>
    }
    tt.return
  }
}
