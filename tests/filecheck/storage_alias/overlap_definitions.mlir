// RUN: not tlx-opt %s --split-input-file -p tlx-storage-alias-size-definition,tlx-buffer-offset-calculation 2>&1 | filecheck %s
// RUN: not tlx-opt %s --split-input-file -p tlx-storage-alias-size-definition{strict=true},tlx-buffer-offset-calculation{strict=true} 2>&1 | filecheck %s --check-prefix STRICT

#line = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!spec = !tlx.storage_alias_spec<smem>
!a = !ttg.memdesc<2x64xi32, #line, #smem, mutable>

// The group alone says how its members share the region. To strict it says nothing, and both begin with it.
// CHECK-LABEL: @group_alone
// CHECK: array<i64: 1024>
// CHECK: %b = {{.*}} {buffer_offset = 256 : i64, bytes_between_buffers = 512 : i64, group_size = 1 : i64}
// CHECK-NEXT: tt.return
// STRICT-LABEL: @group_alone
// STRICT: array<i64: 512>
// STRICT: %b = tlx.storage_alias_local_alloc %s :
// STRICT-NEXT: tt.return
tt.func @group_alone() {
  %s = tlx.storage_alias_spec storage = smem : !spec
  %a = tlx.storage_alias_local_alloc %s : !spec -> !a
  %b = tlx.storage_alias_local_alloc %s : !spec -> !a
  %g = tlx.reuse_group(%a, %b) group_kind = distinct : (!a, !a) -> !tlx.reuse_group<distinct>
  tt.return
}

// -----

#line = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#regs = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#smem = #ttg.shared_memory
!spec = !tlx.storage_alias_spec<smem>
!a = !ttg.memdesc<2x64xi32, #line, #smem, mutable>
!a_i = !ttg.memdesc<64xi32, #line, #smem, mutable>

// %a and %b are dead before %c is touched: the trees have the region one after the other, each with its own groups.
// CHECK-LABEL: @phases
// CHECK: array<i64: 1024>
// CHECK: %b = {{.*}} {buffer_offset = 256 : i64, bytes_between_buffers = 512 : i64, group_size = 1 : i64}
// CHECK: %c = {{.*}} {buffer_offset = 0 : i64, bytes_between_buffers = 256 : i64, group_size = 1 : i64}
// STRICT: kernel.py:7:5: error: storage_alias_spec already has a set_buffer_overlap defined; each spec can only have one overlap definition
// STRICT-NEXT: note: the first one is at kernel.py:6:5
tt.func @phases(%i: i32, %x: tensor<64xi32, #regs>) {
  %s = tlx.storage_alias_spec storage = smem : !spec
  %a = tlx.storage_alias_local_alloc %s : !spec -> !a
  %b = tlx.storage_alias_local_alloc %s : !spec -> !a
  %c = tlx.storage_alias_local_alloc %s : !spec -> !a
  %g = tlx.reuse_group(%a, %b) group_kind = distinct : (!a, !a) -> !tlx.reuse_group<distinct>
  tlx.set_buffer_overlap(%s, %g) : (!spec, !tlx.reuse_group<distinct>) -> () loc("kernel.py":6:5)
  %h = tlx.reuse_group(%c) group_kind = shared : (!a) -> !tlx.reuse_group<shared>
  tlx.set_buffer_overlap(%s, %h) : (!spec, !tlx.reuse_group<shared>) -> () loc("kernel.py":7:5)
  scf.for %k = %i to %i step %i : i32 {
    %a_k = ttg.memdesc_index %a[%k] : !a -> !a_i
    %b_k = ttg.memdesc_index %b[%k] : !a -> !a_i
    %v = ttg.local_load %a_k : !a_i -> tensor<64xi32, #regs>
    ttg.local_store %v, %b_k : tensor<64xi32, #regs> -> !a_i
  }
  %c_i = ttg.memdesc_index %c[%i] : !a -> !a_i
  ttg.local_store %x, %c_i : tensor<64xi32, #regs> -> !a_i
  tt.return
}

// -----

#line = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#regs = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#smem = #ttg.shared_memory
!spec = !tlx.storage_alias_spec<smem>
!a = !ttg.memdesc<2x64xi32, #line, #smem, mutable>
!a_i = !ttg.memdesc<64xi32, #line, #smem, mutable>

// Here %a is read again after the first store to %c.
// CHECK: kernel.py:7:5: error: storage_alias_spec already has a set_buffer_overlap defined; each spec can only have one overlap definition
// CHECK-NEXT: note: the first one is at kernel.py:6:5
// CHECK-NEXT: note: its buffers are live from kernel.py:10:5 to kernel.py:13:5
// CHECK-NEXT: note: those of this one are live from kernel.py:11:5 to kernel.py:12:5
tt.func @together(%i: i32, %x: tensor<64xi32, #regs>) {
  %s = tlx.storage_alias_spec storage = smem : !spec
  %a = tlx.storage_alias_local_alloc %s : !spec -> !a
  %c = tlx.storage_alias_local_alloc %s : !spec -> !a
  %g = tlx.reuse_group(%a) group_kind = shared : (!a) -> !tlx.reuse_group<shared>
  tlx.set_buffer_overlap(%s, %g) : (!spec, !tlx.reuse_group<shared>) -> () loc("kernel.py":6:5)
  %h = tlx.reuse_group(%c) group_kind = shared : (!a) -> !tlx.reuse_group<shared>
  tlx.set_buffer_overlap(%s, %h) : (!spec, !tlx.reuse_group<shared>) -> () loc("kernel.py":7:5)
  %a_i = ttg.memdesc_index %a[%i] : !a -> !a_i loc("kernel.py":10:5)
  %c_i = ttg.memdesc_index %c[%i] : !a -> !a_i loc("kernel.py":11:5)
  ttg.local_store %x, %c_i : tensor<64xi32, #regs> -> !a_i loc("kernel.py":12:5)
  %v = ttg.local_load %a_i : !a_i -> tensor<64xi32, #regs> loc("kernel.py":13:5)
  tt.return
}
