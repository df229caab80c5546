// RUN: tlx-opt %s -p tlx-storage-alias-lowering | filecheck %s
// RUN: not tlx-opt %s -p tlx-storage-alias-lowering{strict=true} 2>&1 | filecheck %s --check-prefix STRICT

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
!f32x2 = !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>
!f16x2 = !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>

// A group of buffers takes 24576 bytes, which is no multiple of a buffer of %a: padded, or refused under strict.
// CHECK-LABEL: @distinct
// CHECK: %a = tlx.local_alias {{.*}} -> !ttg.memdesc<3x64x64xf32,
// CHECK: %b = tlx.local_alias {{.*}} -> !ttg.memdesc<7x64x64xf16,
// STRICT: kernel.py:9:5: error: units_between_buffer_groups (24576) must be a multiple of the original buffer size (16384)
tt.func @distinct() {
  %s = tlx.storage_alias_spec storage = smem : !tlx.storage_alias_spec<smem>
  %a = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem> -> !f32x2
  %b = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem> -> !f16x2
  %g = tlx.reuse_group(%a, %b) group_kind = distinct : (!f32x2, !f16x2) -> !tlx.reuse_group<distinct>
  tlx.set_buffer_overlap(%s, %g) : (!tlx.storage_alias_spec<smem>, !tlx.reuse_group<distinct>) -> () loc("kernel.py":9:5)
  tt.return
}
