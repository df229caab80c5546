// RUN: tlx-opt %s -p tlx-storage-alias-size-definition --verify-diagnostics

// A spec must be known where it is used: it can't come from outside of the function.

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @foreign(%s: !tlx.storage_alias_spec<smem>) {
  // expected-error @below {{requires a valid storage_alias_spec}}
  %a = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem> -> !ttg.memdesc<2x64xi32, #shared, #smem, mutable>
  tt.return
}
