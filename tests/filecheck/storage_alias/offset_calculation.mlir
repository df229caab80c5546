// RUN: not tlx-opt %s --split-input-file -p tlx-storage-alias-size-definition,tlx-buffer-offset-calculation 2>&1 | filecheck %s

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
!f32x2 = !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>
!f16x2 = !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
!f16x4 = !ttg.memdesc<4x64x64xf16, #shared, #smem, mutable>

// Both lie after the other; the tree is gone.
// CHECK-LABEL: @distinct
tt.func @distinct() {
  %s = tlx.storage_alias_spec storage = smem : !tlx.storage_alias_spec<smem>
  // CHECK: %a = tlx.storage_alias_local_alloc %s {buffer_offset = 0 : i64, bytes_between_buffers = 32768 : i64, group_size = 1 : i64}
  %a = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem> -> !f32x2
  // CHECK-NEXT: %b = tlx.storage_alias_local_alloc %s {buffer_offset = 16384 : i64, bytes_between_buffers = 32768 : i64, group_size = 1 : i64}
  %b = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem> -> !f16x2
  // CHECK-NEXT: tt.return
  %g = tlx.reuse_group(%a, %b) group_kind = distinct : (!f32x2, !f16x2) -> !tlx.reuse_group<distinct>
  tlx.set_buffer_overlap(%s, %g) : (!tlx.storage_alias_spec<smem>, !tlx.reuse_group<distinct>) -> ()
  tt.return
}

// In the declared order %b would leave a gap of 8192 bytes before the larger %a, so %a comes first.
// CHECK-LABEL: @large_alignment_first
tt.func @large_alignment_first() {
  // CHECK: buffer_shape = array<i64: 65536>
  %s = tlx.storage_alias_spec storage = smem : !tlx.storage_alias_spec<smem>
  // CHECK: %a = {{.*}} {buffer_offset = 0 : i64, bytes_between_buffers = 32768 : i64
  %a = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem> -> !f32x2
  // CHECK-NEXT: %b = {{.*}} {buffer_offset = 16384 : i64, bytes_between_buffers = 32768 : i64
  %b = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem> -> !f16x2
  // CHECK-NEXT: %c = {{.*}} {buffer_offset = 24576 : i64, bytes_between_buffers = 32768 : i64
  %c = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem> -> !f16x2
  %g = tlx.reuse_group(%b, %a, %c) group_kind = distinct : (!f16x2, !f32x2, !f16x2) -> !tlx.reuse_group<distinct>
  tlx.set_buffer_overlap(%s, %g) : (!tlx.storage_alias_spec<smem>, !tlx.reuse_group<distinct>) -> ()
  tt.return
}

// Sizes of the groups on the way to the root multiply: the 4 buffers of %b are one group, the 2 of %a too.
// CHECK-LABEL: @nested_group_sizes
tt.func @nested_group_sizes() {
  %s = tlx.storage_alias_spec storage = smem : !tlx.storage_alias_spec<smem>
  // CHECK: %a = {{.*}} {buffer_offset = 0 : i64, {{.*}}, group_size = 2 : i64}
  %a = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem> -> !f32x2
  // CHECK-NEXT: %b = {{.*}} {buffer_offset = 32768 : i64, {{.*}}, group_size = 4 : i64}
  %b = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem> -> !f16x4
  %p = tlx.reuse_group(%b) group_kind = shared, group_size = 2 : (!f16x4) -> !tlx.reuse_group<shared>
  %g = tlx.reuse_group(%a, %p) group_kind = distinct, group_size = 2 : (!f32x2, !tlx.reuse_group<shared>) -> !tlx.reuse_group<distinct>
  tlx.set_buffer_overlap(%s, %g) : (!tlx.storage_alias_spec<smem>, !tlx.reuse_group<distinct>) -> ()
  tt.return
}

// The excess of an explicit size spreads between the groups of buffers.
// CHECK-LABEL: @explicit_padding
tt.func @explicit_padding() {
  %s = tlx.storage_alias_spec storage = smem, size = 65536 : !tlx.storage_alias_spec<smem, 65536>
  // CHECK: %a = {{.*}} {buffer_offset = 0 : i64, bytes_between_buffers = 32768 : i64
  %a = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem, 65536> -> !f32x2
  %g = tlx.reuse_group(%a) group_kind = shared : (!f32x2) -> !tlx.reuse_group<shared>
  tlx.set_buffer_overlap(%s, %g) : (!tlx.storage_alias_spec<smem, 65536>, !tlx.reuse_group<shared>) -> ()
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!f16x2 = !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
!f16x3 = !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>

// CHECK: kernel.py:9:5: error: all allocations of a reuse_group tree must have a whole number of buffer groups (buffers / group_size): a has 2 / 1 = 2, b has 3 / 2 = 3/2
tt.func @unequal_groups() {
  %s = tlx.storage_alias_spec storage = smem : !tlx.storage_alias_spec<smem>
  %a = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem> -> !f16x2
  %b = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem> -> !f16x3
  %p = tlx.reuse_group(%b) group_kind = shared, group_size = 2 : (!f16x3) -> !tlx.reuse_group<shared>
  %g = tlx.reuse_group(%a, %p) group_kind = shared : (!f16x2, !tlx.reuse_group<shared>) -> !tlx.reuse_group<shared>
  tlx.set_buffer_overlap(%s, %g) : (!tlx.storage_alias_spec<smem>, !tlx.reuse_group<shared>) -> () loc("kernel.py":9:5)
  tt.return
}
