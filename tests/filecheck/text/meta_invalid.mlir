// RUN: tlx-opt --split-input-file --verify-diagnostics %s

// What nothing in upstream's dialects means the same as is refused by name.

tt.func @unknown() {
  // expected-error @below {{'ttng.clc_advance' is Meta's Triton's own, it has no counterpart}}
  %valid, %x, %y, %z = ttng.clc_advance : i1, i32, i32, i32
  tt.return
}

// -----

#s = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
tt.func @hint(%d: !tt.tensordesc<64x64xf16, #s>, %x: !ttg.memdesc<64x64xf16, #s, #ttg.shared_memory>, %i: i32) {
  // expected-error @below {{'evictionPolicy' is Meta's Triton's own: a cache hint of a store or a reduction by TMA}}
  ttng.async_tma_copy_local_to_global %d[%i, %i] %x evictionPolicy = evict_first : !tt.tensordesc<64x64xf16, #s>, !ttg.memdesc<64x64xf16, #s, #ttg.shared_memory>
  tt.return
}

// -----

tt.func @memory(%p: !tt.ptr<i8>, %n: i32, %s: i64) {
  // expected-error @below {{'descPtr' is Meta's Triton's own: memory for a descriptor}}
  %0 = tt.make_tensor_descriptor %p, [%n, %n], [%s, %s], descPtr = %p : !tt.ptr<i8> : !tt.ptr<i8>, !tt.tensordesc<64x64xi8>
  tt.return
}

// -----

// expected-error @below {{'ctaMode' is Meta's Triton's own: the mode of accumulators of 64 rows in pairs of CTAs}}
#tmem = #ttng.tensor_memory_encoding<blockM = 64, blockN = 128, colStride = 1, ctaMode = twocta_rhs>

// -----

#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
tt.func @far(%bar: !ttg.memdesc<1xi64, #b, #ttng.shared_cluster_memory, mutable>) {
  // expected-error @below {{an arrival of each thread at another CTA is Meta's Triton's own}}
  ttng.arrive_barrier %bar, 1 {perThread} : !ttg.memdesc<1xi64, #b, #ttng.shared_cluster_memory, mutable>
  tt.return
}

// -----

tt.func @threads(%i: i32) {
  // expected-error @below {{the threads at a named barrier are a constant here}}
  ttng.arrive_barrier_named %i, %i : i32, i32
  tt.return
}

// -----

tt.func @too_few(%i: i32) {
  // expected-error @below {{expected 2 types, found 1}}
  ttng.wait_barrier_named %i, %i : i32
  tt.return
}

// -----

tt.func @unwritten(%i: i32) {
  // expected-error @below {{expected 2 types, found 3}}
  ttng.async_store %i, %i, %i : i32, i32, i32
  tt.return
}

// -----

tt.func @no_response(%i: i32) {
  // expected-error @below {{expected the type of a response, found 0 types}}
  %x, %y, %z = ttng.clc_query_cancel %i : () -> (i32, i32, i32)
  tt.return
}
