// RUN: not tlx-opt %s --split-input-file -p tlx-storage-alias-size-definition 2>&1 | filecheck %s

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
!f32x2 = !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>
!f16x2 = !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>

// Without a tree the largest allocation decides: 2 * 64 * 64 * 4 bytes.
// CHECK-LABEL: @no_tree
tt.func @no_tree() {
  // CHECK: tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 32768>}
  %s = tlx.storage_alias_spec storage = smem : !tlx.storage_alias_spec<smem>
  %a = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem> -> !f32x2
  %b = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem> -> !f16x2
  tt.return
}

// The members of a distinct group add up in each of the two groups of buffers; each group starts on a whole f32
// buffer, the last one has nothing after it: (16384 + 8192 + 8192) + 16384 + 8192.
// CHECK-LABEL: @distinct
tt.func @distinct() {
  // CHECK: tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 57344>}
  %s = tlx.storage_alias_spec storage = smem : !tlx.storage_alias_spec<smem>
  %a = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem> -> !f32x2
  %b = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem> -> !f16x2
  %g = tlx.reuse_group(%a, %b) group_kind = distinct : (!f32x2, !f16x2) -> !tlx.reuse_group<distinct>
  tlx.set_buffer_overlap(%s, %g) : (!tlx.storage_alias_spec<smem>, !tlx.reuse_group<distinct>) -> ()
  tt.return
}

// With group_size 2 the two buffers of %b count as one, as large as the one buffer of %a.
// CHECK-LABEL: @subtiles
tt.func @subtiles() {
  // CHECK: tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 16384>}
  %s = tlx.storage_alias_spec storage = smem : !tlx.storage_alias_spec<smem>
  %a = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem> -> !ttg.memdesc<1x64x64xf32, #shared, #smem, mutable>
  %b = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem> -> !f16x2
  %p = tlx.reuse_group(%b) group_kind = shared, group_size = 2 : (!f16x2) -> !tlx.reuse_group<shared>
  %g = tlx.reuse_group(%a, %p) group_kind = shared : (!ttg.memdesc<1x64x64xf32, #shared, #smem, mutable>, !tlx.reuse_group<shared>) -> !tlx.reuse_group<shared>
  tlx.set_buffer_overlap(%s, %g) : (!tlx.storage_alias_spec<smem>, !tlx.reuse_group<shared>) -> ()
  tt.return
}

// A size of the user's own stays, as long as it is enough.
// CHECK-LABEL: @explicit
tt.func @explicit() {
  // CHECK: tlx.storage_alias_spec storage = smem, size = 40000 {buffer_shape = array<i64: 40000>}
  %s = tlx.storage_alias_spec storage = smem, size = 40000 : !tlx.storage_alias_spec<smem, 40000>
  %a = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem, 40000> -> !f32x2
  tt.return
}

// A spec without uses is dropped with a warning (standard error is not part of this order).
// CHECK-LABEL: @unused
tt.func @unused() {
  // CHECK-NEXT: tt.return
  %s = tlx.storage_alias_spec storage = smem : !tlx.storage_alias_spec<smem> loc("kernel.py":7:3)
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
!f32x2 = !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>

// The message has what one group of buffers needs and has, and the size that would do.
// CHECK: kernel.py:9:5: error: not enough space for distinct allocations: need 32768 bytes, have 512 bytes in each of 2 buffer groups; buffer_size_bytes 1024 must be at least 65536
// CHECK-NEXT: note: the storage_alias_spec is at kernel.py:5:5
tt.func @too_small() {
  %s = tlx.storage_alias_spec storage = smem, size = 1024 : !tlx.storage_alias_spec<smem, 1024> loc("kernel.py":5:5)
  %a = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem, 1024> -> !f32x2
  %b = tlx.storage_alias_local_alloc %s : !tlx.storage_alias_spec<smem, 1024> -> !f32x2
  %g = tlx.reuse_group(%a, %b) group_kind = distinct : (!f32x2, !f32x2) -> !tlx.reuse_group<distinct>
  tlx.set_buffer_overlap(%s, %g) : (!tlx.storage_alias_spec<smem, 1024>, !tlx.reuse_group<distinct>) -> () loc("kernel.py":9:5)
  tt.return
}
