// RUN: tlx-opt %s -p tlx-storage-alias-allocation --verify-diagnostics

// Places that were written by hand stay in the region, as those of the passes do.

#line = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
tt.func @after_the_end() {
  %s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 512>} : !tlx.storage_alias_spec<smem>
  // expected-error @below {{the last buffer ends 768 bytes after the start of its storage_alias_spec, which has 512}}
  %a = tlx.storage_alias_local_alloc %s {buffer_offset = 256 : i64, bytes_between_buffers = 256 : i64, group_size = 1 : i64} : !tlx.storage_alias_spec<smem> -> !ttg.memdesc<2x64xi32, #line, #ttg.shared_memory, mutable>
  tt.return
}
