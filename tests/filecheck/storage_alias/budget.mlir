// RUN: tlx-opt %s -p tlx-storage-budget --split-input-file --verify-diagnostics

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!half = !ttg.memdesc<4x128x128xf16, #shared, #smem, mutable>
!all = !ttg.memdesc<8x128x128xf16, #shared, #smem, mutable>

// One allocation of 8 * 32,768 bytes can't fit.
module attributes {"ttg.target" = "cuda:90"} {
  tt.func @error() {
    // expected-error @below {{'error' needs 262,144 B of shared memory, sm_90a has 232,448}}
    // expected-note @below {{262,144 B: a, 8 buffers of 32,768}}
    // expected-note @below {{131,072 B: b, 4 buffers of 32,768}}
    %a = ttg.local_alloc : () -> !all
    %b = ttg.local_alloc : () -> !half
    tt.return
  }
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!half = !ttg.memdesc<4x128x128xf16, #shared, #smem, mutable>

// Two halves may fit where their lives don't meet: stock Triton knows.
module attributes {"ttg.target" = "cuda:90"} {
  tt.func @warning() {
    // expected-warning @below {{'warning' allocates 262,144 B of shared memory, sm_90a has 232,448: it fits only where}}
    // expected-note @below {{131,072 B: a, 4 buffers of 32,768}}
    // expected-note @below {{131,072 B: b, 4 buffers of 32,768}}
    %a = ttg.local_alloc : () -> !half
    %b = ttg.local_alloc : () -> !half
    tt.return
  }
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>

// No target, no budget.
tt.func @unknown() {
  %a = ttg.local_alloc : () -> !ttg.memdesc<8x128x128xf16, #shared, #ttg.shared_memory, mutable>
  tt.return
}
