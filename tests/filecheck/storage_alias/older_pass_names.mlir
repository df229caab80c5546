// RUN: tlx-opt %s --tlx-shared-buffer-size-definition | filecheck %s --check-prefix SIZE
// RUN: tlx-opt %s -p tlx-shared-buffer-size-definition,tlx-reused-buffer-offset-calculation | filecheck %s --check-prefix OFFSETS
// RUN: tlx-opt %s -p tlx-shared-buffer-size-definition,tlx-reused-buffer-offset-calculation,tlx-shared-buffer-allocation | filecheck %s --check-prefix ALLOCATION

// The names that the passes had in an early design of TLX.

#line = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!spec = !tlx.storage_alias_spec<smem>
!a = !ttg.memdesc<2x64xi32, #line, #smem, mutable>

// SIZE: tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 512>}
// OFFSETS: tlx.storage_alias_local_alloc %s {buffer_offset = 0 : i64, bytes_between_buffers = 256 : i64, group_size = 1 : i64}
// ALLOCATION: %a = tlx.local_alias
tt.func @f() {
  %s = tlx.storage_alias_spec storage = smem : !spec
  %a = tlx.storage_alias_local_alloc %s : !spec -> !a
  %g = tlx.reuse_group(%a) group_kind = shared : (!a) -> !tlx.reuse_group<shared>
  tlx.set_buffer_overlap(%s, %g) : (!spec, !tlx.reuse_group<shared>) -> ()
  tt.return
}
