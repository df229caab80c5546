// RUN: not tlx-opt %s --split-input-file -p tlx-storage-alias-size-definition,tlx-buffer-offset-calculation 2>&1 | filecheck %s --check-prefix PLACES
// RUN: not tlx-opt %s --split-input-file -p tlx-storage-alias-lowering,tlx-rewrite-local-alias 2>&1 | filecheck %s

#f32 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>
#f16 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 32, colStride = 1>
#one = #ttng.tensor_memory_encoding<blockM = 128, blockN = 1, colStride = 1>
#tmem = #ttng.tensor_memory
!spec = !tlx.storage_alias_spec<tmem>
!qk = !ttg.memdesc<2x128x128xf32, #f32, #tmem, mutable>
!p = !ttg.memdesc<8x128x32xf16, #f16, #tmem, mutable>
!p_i = !ttg.memdesc<128x32xf16, #f16, #tmem, mutable>
!row = !ttg.memdesc<2x128x1xf32, #one, #tmem, mutable>
!row_i = !ttg.memdesc<128x1xf32, #one, #tmem, mutable>

// Flash attention with four slices: QK takes 128 columns in each of two groups; over it lie P with 4 times 16 columns
// and three single columns. Offsets and strides are in columns, the shape is rows and columns.
// PLACES-LABEL: @attention
// CHECK-LABEL: @attention
tt.func @attention(%i: i32) {
  // PLACES: tlx.storage_alias_spec storage = tmem {buffer_shape = array<i64: 128, 256>}
  // CHECK-NEXT: %s = ttng.tmem_alloc : () -> !ttg.memdesc<1x128x256xi32, #{{.*}}, #ttng.tensor_memory, mutable>
  %s = tlx.storage_alias_spec storage = tmem : !spec
  // PLACES: %qk = {{.*}} {buffer_offset = 0 : i64, bytes_between_buffers = 128 : i64, group_size = 1 : i64}
  // CHECK-NEXT: %qk = ttg.memdesc_reinterpret %s : {{.*}} -> !ttg.memdesc<2x128x128xf32,
  %qk = tlx.storage_alias_local_alloc %s : !spec -> !qk
  // PLACES: %p = {{.*}} {buffer_offset = 0 : i64, bytes_between_buffers = 128 : i64, group_size = 4 : i64}
  // CHECK-NEXT: %p = ttg.memdesc_reinterpret %s : {{.*}} -> !ttg.memdesc<12x128x32xf16,
  %p = tlx.storage_alias_local_alloc %s : !spec -> !p
  // PLACES: %alpha = {{.*}} {buffer_offset = 64 : i64, bytes_between_buffers = 128 : i64, group_size = 1 : i64}
  // CHECK-NEXT: %alpha = ttg.memdesc_reinterpret %s : {{.*}} -> !ttg.memdesc<193x128x1xf32,
  %alpha = tlx.storage_alias_local_alloc %s : !spec -> !row
  // PLACES: %l = {{.*}} {buffer_offset = 65 : i64, bytes_between_buffers = 128 : i64, group_size = 1 : i64}
  // CHECK-NEXT: %l = ttg.memdesc_reinterpret %s : {{.*}} -> !ttg.memdesc<194x128x1xf32,
  %l = tlx.storage_alias_local_alloc %s : !spec -> !row
  // PLACES: %m = {{.*}} {buffer_offset = 66 : i64, bytes_between_buffers = 128 : i64, group_size = 1 : i64}
  // CHECK-NEXT: %m = ttg.memdesc_reinterpret %s : {{.*}} -> !ttg.memdesc<195x128x1xf32,
  %m = tlx.storage_alias_local_alloc %s : !spec -> !row
  %slices = tlx.reuse_group(%p) group_kind = shared, group_size = 4 : (!p) -> !tlx.reuse_group<shared>
  %parts = tlx.reuse_group(%slices, %alpha, %l, %m) group_kind = distinct : (!tlx.reuse_group<shared>, !row, !row, !row) -> !tlx.reuse_group<distinct>
  %tree = tlx.reuse_group(%qk, %parts) group_kind = shared : (!qk, !tlx.reuse_group<distinct>) -> !tlx.reuse_group<shared>
  tlx.set_buffer_overlap(%s, %tree) : (!spec, !tlx.reuse_group<shared>) -> ()
  // Slice 7 is the last of group 1: 8 + 3.
  %c7 = arith.constant 7 : i32
  // CHECK: %[[LAST:.*]] = arith.constant 11 : i32
  // CHECK-NEXT: ttg.memdesc_index %p[%[[LAST]]]
  %p_7 = ttg.memdesc_index %p[%c7] : !p -> !p_i
  // CHECK: arith.muli %i,
  // CHECK: ttg.memdesc_index %alpha
  %alpha_i = ttg.memdesc_index %alpha[%i] : !row -> !row_i
  tt.return
}

// A number of columns that is no power of two: blocks of the largest power of two that divides it.
// CHECK-LABEL: @blocks
tt.func @blocks() {
  // CHECK-NEXT: ttng.tmem_alloc : () -> !ttg.memdesc<35x128x1xi32,
  %s = tlx.storage_alias_spec storage = tmem : !spec
  %a = tlx.storage_alias_local_alloc %s : !spec -> !ttg.memdesc<2x128x32xf16, #f16, #tmem, mutable>
  %b = tlx.storage_alias_local_alloc %s : !spec -> !ttg.memdesc<3x128x1xf32, #one, #tmem, mutable>
  %a_2 = tlx.reuse_group(%a) group_kind = shared, group_size = 2 : (!ttg.memdesc<2x128x32xf16, #f16, #tmem, mutable>) -> !tlx.reuse_group<shared>
  %b_3 = tlx.reuse_group(%b) group_kind = shared, group_size = 3 : (!ttg.memdesc<3x128x1xf32, #one, #tmem, mutable>) -> !tlx.reuse_group<shared>
  %g = tlx.reuse_group(%a_2, %b_3) group_kind = distinct : (!tlx.reuse_group<shared>, !tlx.reuse_group<shared>) -> !tlx.reuse_group<distinct>
  tlx.set_buffer_overlap(%s, %g) : (!spec, !tlx.reuse_group<distinct>) -> ()
  tt.return
}

// -----

#f32 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>
!qk = !ttg.memdesc<2x128x128xf32, #f32, #ttng.tensor_memory, mutable>
!spec = !tlx.storage_alias_spec<tmem, 131072>

// 131072 bytes are 256 columns of 128 rows, each group has 128 of them.
// CHECK: kernel.py:9:5: error: not enough space for distinct allocations: need 131072 bytes, have 65536 bytes in each of 2 buffer groups; buffer_size_bytes 131072 must be at least 262144
// CHECK-NEXT: note: the storage_alias_spec is at kernel.py:5:5
tt.func @too_small() {
  %s = tlx.storage_alias_spec storage = tmem, size = 131072 : !spec loc("kernel.py":5:5)
  %a = tlx.storage_alias_local_alloc %s : !spec -> !qk
  %b = tlx.storage_alias_local_alloc %s : !spec -> !qk
  %g = tlx.reuse_group(%a, %b) group_kind = distinct : (!qk, !qk) -> !tlx.reuse_group<distinct>
  tlx.set_buffer_overlap(%s, %g) : (!spec, !tlx.reuse_group<distinct>) -> () loc("kernel.py":9:5)
  tt.return
}
