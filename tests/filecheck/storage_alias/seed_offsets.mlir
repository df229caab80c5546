// RUN: not tlx-opt %s --split-input-file -p tlx-storage-alias-size-definition,tlx-buffer-offset-calculation 2>&1 | filecheck %s

// The offsets that the design of storage aliasing works out; SEEDS.md has the section of each.

#f32 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#f16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#row = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!f32x2 = !ttg.memdesc<2x64x64xf32, #f32, #smem, mutable>
!f16x2 = !ttg.memdesc<2x64x64xf16, #f16, #smem, mutable>
!rows = !ttg.memdesc<2x64xf32, #row, #smem, mutable>
!spec = !tlx.storage_alias_spec<smem>
!spec32 = !tlx.storage_alias_spec<smem, 32768>
!spec64 = !tlx.storage_alias_spec<smem, 65536>

// CHECK-LABEL: @shared(
tt.func @shared() {
  %spec = tlx.storage_alias_spec storage = smem, size = 32768 : !spec32
  // CHECK: %a = {{.*}} {buffer_offset = 0 : i64, bytes_between_buffers = 16384 : i64
  %a = tlx.storage_alias_local_alloc %spec : !spec32 -> !f32x2
  // CHECK-NEXT: %b = {{.*}} {buffer_offset = 0 : i64, bytes_between_buffers = 16384 : i64
  %b = tlx.storage_alias_local_alloc %spec : !spec32 -> !f16x2
  %group = tlx.reuse_group(%a, %b) group_kind = shared : (!f32x2, !f16x2) -> !tlx.reuse_group<shared>
  tlx.set_buffer_overlap(%spec, %group) : (!spec32, !tlx.reuse_group<shared>) -> ()
  // CHECK-NEXT: tt.return
  tt.return
}

// CHECK-LABEL: @distinct(
tt.func @distinct() {
  %spec = tlx.storage_alias_spec storage = smem, size = 65536 : !spec64
  // CHECK: %a = {{.*}} {buffer_offset = 0 : i64, bytes_between_buffers = 32768 : i64
  %a = tlx.storage_alias_local_alloc %spec : !spec64 -> !f32x2
  // CHECK-NEXT: %b = {{.*}} {buffer_offset = 16384 : i64, bytes_between_buffers = 32768 : i64
  %b = tlx.storage_alias_local_alloc %spec : !spec64 -> !f32x2
  %group = tlx.reuse_group(%a, %b) group_kind = distinct : (!f32x2, !f32x2) -> !tlx.reuse_group<distinct>
  tlx.set_buffer_overlap(%spec, %group) : (!spec64, !tlx.reuse_group<distinct>) -> ()
  tt.return
}

// CHECK-LABEL: @three_distinct(
tt.func @three_distinct() {
  // CHECK: buffer_shape = array<i64: 98304>
  %spec = tlx.storage_alias_spec storage = smem : !spec
  // CHECK: %a = {{.*}} {buffer_offset = 0 : i64, bytes_between_buffers = 49152 : i64
  %a = tlx.storage_alias_local_alloc %spec : !spec -> !f32x2
  // CHECK-NEXT: %b = {{.*}} {buffer_offset = 16384 : i64
  %b = tlx.storage_alias_local_alloc %spec : !spec -> !f32x2
  // CHECK-NEXT: %c = {{.*}} {buffer_offset = 32768 : i64
  %c = tlx.storage_alias_local_alloc %spec : !spec -> !f32x2
  %group = tlx.reuse_group(%a, %b, %c) group_kind = distinct : (!f32x2, !f32x2, !f32x2) -> !tlx.reuse_group<distinct>
  tlx.set_buffer_overlap(%spec, %group) : (!spec, !tlx.reuse_group<distinct>) -> ()
  tt.return
}

// QK lies over P and alpha after it, which is the flash attention example: 0, 0 and 8192, 16384 bytes apart.
// CHECK-LABEL: @shared_of_distinct(
tt.func @shared_of_distinct() {
  %spec = tlx.storage_alias_spec storage = smem, size = 32768 : !spec32
  // CHECK: %qk = {{.*}} {buffer_offset = 0 : i64, bytes_between_buffers = 16384 : i64
  %qk = tlx.storage_alias_local_alloc %spec : !spec32 -> !f32x2
  // CHECK-NEXT: %p = {{.*}} {buffer_offset = 0 : i64, bytes_between_buffers = 16384 : i64
  %p = tlx.storage_alias_local_alloc %spec : !spec32 -> !f16x2
  // CHECK-NEXT: %alpha = {{.*}} {buffer_offset = 8192 : i64, bytes_between_buffers = 16384 : i64
  %alpha = tlx.storage_alias_local_alloc %spec : !spec32 -> !rows
  %inner = tlx.reuse_group(%p, %alpha) group_kind = distinct : (!f16x2, !rows) -> !tlx.reuse_group<distinct>
  %outer = tlx.reuse_group(%qk, %inner) group_kind = shared : (!f32x2, !tlx.reuse_group<distinct>) -> !tlx.reuse_group<shared>
  tlx.set_buffer_overlap(%spec, %outer) : (!spec32, !tlx.reuse_group<shared>) -> ()
  // CHECK-NEXT: tt.return
  tt.return
}

// A shared member counts as large as its largest member.
// CHECK-LABEL: @distinct_of_shared(
tt.func @distinct_of_shared() {
  %spec = tlx.storage_alias_spec storage = smem : !spec
  // CHECK: %a = {{.*}} {buffer_offset = 0 : i64, bytes_between_buffers = 32768 : i64
  %a = tlx.storage_alias_local_alloc %spec : !spec -> !f32x2
  // CHECK-NEXT: %b = {{.*}} {buffer_offset = 0 : i64, bytes_between_buffers = 32768 : i64
  %b = tlx.storage_alias_local_alloc %spec : !spec -> !f16x2
  // CHECK-NEXT: %c = {{.*}} {buffer_offset = 16384 : i64, bytes_between_buffers = 32768 : i64
  %c = tlx.storage_alias_local_alloc %spec : !spec -> !f16x2
  %inner = tlx.reuse_group(%a, %b) group_kind = shared : (!f32x2, !f16x2) -> !tlx.reuse_group<shared>
  %outer = tlx.reuse_group(%inner, %c) group_kind = distinct : (!tlx.reuse_group<shared>, !f16x2) -> !tlx.reuse_group<distinct>
  tlx.set_buffer_overlap(%spec, %outer) : (!spec, !tlx.reuse_group<distinct>) -> ()
  tt.return
}

// CHECK-LABEL: @three_levels(
tt.func @three_levels() {
  %spec = tlx.storage_alias_spec storage = smem : !spec
  // CHECK: %qk = {{.*}} {buffer_offset = 0 : i64, bytes_between_buffers = 16384 : i64
  %qk = tlx.storage_alias_local_alloc %spec : !spec -> !f32x2
  // CHECK-NEXT: %p = {{.*}} {buffer_offset = 0 : i64
  %p = tlx.storage_alias_local_alloc %spec : !spec -> !f16x2
  // CHECK-NEXT: %alpha = {{.*}} {buffer_offset = 8192 : i64
  %alpha = tlx.storage_alias_local_alloc %spec : !spec -> !rows
  // CHECK-NEXT: %m = {{.*}} {buffer_offset = 8192 : i64
  %m = tlx.storage_alias_local_alloc %spec : !spec -> !rows
  %rows = tlx.reuse_group(%alpha, %m) group_kind = shared : (!rows, !rows) -> !tlx.reuse_group<shared>
  %inner = tlx.reuse_group(%p, %rows) group_kind = distinct : (!f16x2, !tlx.reuse_group<shared>) -> !tlx.reuse_group<distinct>
  %outer = tlx.reuse_group(%qk, %inner) group_kind = shared : (!f32x2, !tlx.reuse_group<distinct>) -> !tlx.reuse_group<shared>
  tlx.set_buffer_overlap(%spec, %outer) : (!spec, !tlx.reuse_group<shared>) -> ()
  tt.return
}

// The kinds need not alternate (the older design says they must, and `strict` still does): P, and after it the rows.
// CHECK-LABEL: @distinct_of_distinct(
tt.func @distinct_of_distinct() {
  %spec = tlx.storage_alias_spec storage = smem : !spec
  // CHECK: %qk = {{.*}} {buffer_offset = 0 : i64, bytes_between_buffers = 16384 : i64
  %qk = tlx.storage_alias_local_alloc %spec : !spec -> !f32x2
  // CHECK-NEXT: %p = {{.*}} {buffer_offset = 0 : i64
  %p = tlx.storage_alias_local_alloc %spec : !spec -> !f16x2
  // CHECK-NEXT: %alpha = {{.*}} {buffer_offset = 8192 : i64
  %alpha = tlx.storage_alias_local_alloc %spec : !spec -> !rows
  // CHECK-NEXT: %l = {{.*}} {buffer_offset = 8448 : i64
  %l = tlx.storage_alias_local_alloc %spec : !spec -> !rows
  // CHECK-NEXT: %m = {{.*}} {buffer_offset = 8704 : i64
  %m = tlx.storage_alias_local_alloc %spec : !spec -> !rows
  %rows = tlx.reuse_group(%alpha, %l, %m) group_kind = distinct : (!rows, !rows, !rows) -> !tlx.reuse_group<distinct>
  %inner = tlx.reuse_group(%p, %rows) group_kind = distinct : (!f16x2, !tlx.reuse_group<distinct>) -> !tlx.reuse_group<distinct>
  %outer = tlx.reuse_group(%qk, %inner) group_kind = shared : (!f32x2, !tlx.reuse_group<distinct>) -> !tlx.reuse_group<shared>
  tlx.set_buffer_overlap(%spec, %outer) : (!spec, !tlx.reuse_group<shared>) -> ()
  tt.return
}

// Another number of buffers: the stride is that of one group, whatever the number.
// CHECK-LABEL: @six_buffers(
tt.func @six_buffers() {
  %spec = tlx.storage_alias_spec storage = smem : !spec
  // CHECK: %a = {{.*}} {buffer_offset = 0 : i64, bytes_between_buffers = 16384 : i64
  %a = tlx.storage_alias_local_alloc %spec : !spec -> !ttg.memdesc<6x64x64xf16, #f16, #smem, mutable>
  // CHECK-NEXT: %b = {{.*}} {buffer_offset = 8192 : i64, bytes_between_buffers = 16384 : i64
  %b = tlx.storage_alias_local_alloc %spec : !spec -> !ttg.memdesc<6x64x64xf16, #f16, #smem, mutable>
  %group = tlx.reuse_group(%a, %b) group_kind = distinct : (!ttg.memdesc<6x64x64xf16, #f16, #smem, mutable>, !ttg.memdesc<6x64x64xf16, #f16, #smem, mutable>) -> !tlx.reuse_group<distinct>
  tlx.set_buffer_overlap(%spec, %group) : (!spec, !tlx.reuse_group<distinct>) -> ()
  tt.return
}

// -----

#f32 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
!f32x2 = !ttg.memdesc<2x64x64xf32, #f32, #smem, mutable>

// CHECK: kernel.py:9:5: error: storage_alias_spec already has a set_buffer_overlap defined; each spec can only have one overlap definition
tt.func @duplicate() {
  %spec = tlx.storage_alias_spec storage = smem, size = 32768 : !tlx.storage_alias_spec<smem, 32768>
  %a = tlx.storage_alias_local_alloc %spec : !tlx.storage_alias_spec<smem, 32768> -> !f32x2
  %b = tlx.storage_alias_local_alloc %spec : !tlx.storage_alias_spec<smem, 32768> -> !f32x2
  %group1 = tlx.reuse_group(%a, %b) group_kind = shared : (!f32x2, !f32x2) -> !tlx.reuse_group<shared>
  tlx.set_buffer_overlap(%spec, %group1) : (!tlx.storage_alias_spec<smem, 32768>, !tlx.reuse_group<shared>) -> ()
  %group2 = tlx.reuse_group(%a, %b) group_kind = distinct : (!f32x2, !f32x2) -> !tlx.reuse_group<distinct>
  tlx.set_buffer_overlap(%spec, %group2) : (!tlx.storage_alias_spec<smem, 32768>, !tlx.reuse_group<distinct>) -> () loc("kernel.py":9:5)
  // Both are used at the same time, so their trees cannot follow one another either.
  %c0 = arith.constant 0 : i32
  %a0 = ttg.memdesc_index %a[%c0] : !f32x2 -> !ttg.memdesc<64x64xf32, #f32, #smem, mutable>
  %b0 = ttg.memdesc_index %b[%c0] : !f32x2 -> !ttg.memdesc<64x64xf32, #f32, #smem, mutable>
  tt.return
}
