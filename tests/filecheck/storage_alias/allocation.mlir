// RUN: tlx-opt %s --split-input-file -p tlx-storage-alias-allocation | filecheck %s

// CHECK: #[[BYTES:.*]] = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!spec = !tlx.storage_alias_spec<smem>
!a = !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
!a_i = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
!p = !ttg.memdesc<8x64x64xf16, #shared, #smem, mutable>

// Stock Triton wants a power of two in every dimension of a layout: 24576 bytes are 24 buffers of 1024. The alignment
// is that of the 128-byte swizzle. Dense buffers at the start keep their indices.
// CHECK-LABEL: @dense(
tt.func @dense(%i: i32) {
  // CHECK-NEXT: %s = ttg.local_alloc {alignment = 1024 : i32} : () -> !ttg.memdesc<24x1024xi8, #[[BYTES]], #smem, mutable>
  %s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 24576>} : !spec
  // CHECK-NEXT: %a = tlx.local_alias %s : {{.*}} -> !ttg.memdesc<2x64x64xf16,
  %a = tlx.storage_alias_local_alloc %s : !spec -> !a
  // CHECK-NEXT: %a_i = ttg.memdesc_index %a[%i]
  %a_i = ttg.memdesc_index %a[%i] : !a -> !a_i
  // CHECK-NEXT: tt.return
  tt.return
}

// A single group of buffers: only the offset counts, and a constant index stays a constant.
// CHECK-LABEL: @shifted(
tt.func @shifted(%i: i32) {
  %s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 40960>} : !spec
  // CHECK: %a = tlx.local_alias %s : {{.*}} -> !ttg.memdesc<5x64x64xf16,
  %a = tlx.storage_alias_local_alloc %s {buffer_offset = 24576 : i64, bytes_between_buffers = 40960 : i64, group_size = 2 : i64} : !spec -> !a
  // CHECK-NEXT: %[[OFFSET:.*]] = arith.constant 3 : i32
  // CHECK-NEXT: %[[AT:.*]] = arith.addi %i, %[[OFFSET]] : i32
  // CHECK-NEXT: %a_i = ttg.memdesc_index %a[%[[AT]]]
  %a_i = ttg.memdesc_index %a[%i] : !a -> !a_i
  %c1 = arith.constant 1 : i32
  // CHECK: %[[FOUR:.*]] = arith.constant 4 : i32
  // CHECK-NEXT: %a_1 = ttg.memdesc_index %a[%[[FOUR]]]
  %a_1 = ttg.memdesc_index %a[%c1] : !a -> !a_i
  tt.return
}

// One buffer in each group: i * 3 + 1.
// CHECK-LABEL: @scaled(
tt.func @scaled(%i: i32) {
  %s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 49152>} : !spec
  // CHECK: %a = tlx.local_alias %s : {{.*}} -> !ttg.memdesc<5x64x64xf16,
  %a = tlx.storage_alias_local_alloc %s {buffer_offset = 8192 : i64, bytes_between_buffers = 24576 : i64, group_size = 1 : i64} : !spec -> !a
  // CHECK-NEXT: %[[STRIDE:.*]] = arith.constant 3 : i32
  // CHECK-NEXT: %[[GROUP:.*]] = arith.muli %i, %[[STRIDE]] : i32
  // CHECK-NEXT: %[[OFFSET:.*]] = arith.constant 1 : i32
  // CHECK-NEXT: %[[AT:.*]] = arith.addi %[[GROUP]], %[[OFFSET]] : i32
  // CHECK-NEXT: ttg.memdesc_index %a[%[[AT]]]
  %a_i = ttg.memdesc_index %a[%i] : !a -> !a_i
  tt.return
}

// Four buffers in each of two groups: (i / 4) * 6 + i % 4 + 1.
// CHECK-LABEL: @subtiles(
tt.func @subtiles(%i: i32) {
  %s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 98304>} : !spec
  // CHECK: %p = tlx.local_alias %s : {{.*}} -> !ttg.memdesc<11x64x64xf16,
  %p = tlx.storage_alias_local_alloc %s {buffer_offset = 8192 : i64, bytes_between_buffers = 49152 : i64, group_size = 4 : i64} : !spec -> !p
  // CHECK-NEXT: %[[SIZE:.*]] = arith.constant 4 : i32
  // CHECK-NEXT: %[[GROUP:.*]] = arith.divui %i, %[[SIZE]] : i32
  // CHECK-NEXT: %[[MEMBER:.*]] = arith.remui %i, %[[SIZE]] : i32
  // CHECK-NEXT: %[[STRIDE:.*]] = arith.constant 6 : i32
  // CHECK-NEXT: %[[START:.*]] = arith.muli %[[GROUP]], %[[STRIDE]] : i32
  // CHECK-NEXT: %[[BUFFER:.*]] = arith.addi %[[START]], %[[MEMBER]] : i32
  // CHECK-NEXT: %[[OFFSET:.*]] = arith.constant 1 : i32
  // CHECK-NEXT: %[[AT:.*]] = arith.addi %[[BUFFER]], %[[OFFSET]] : i32
  // CHECK-NEXT: ttg.memdesc_index %p[%[[AT]]]
  %p_i = ttg.memdesc_index %p[%i] : !p -> !a_i
  tt.return
}

// The index is rewritten wherever the array arrives: in loops and in partitions.
// CHECK-LABEL: @partitions(
tt.func @partitions(%i: i32) {
  %s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 24576>} : !spec
  %a = tlx.storage_alias_local_alloc %s {buffer_offset = 8192 : i64, bytes_between_buffers = 16384 : i64, group_size = 2 : i64} : !spec -> !a
  // CHECK: default
  ttg.warp_specialize(%a, %i)
  default {
    // CHECK: scf.for
    scf.for %k = %i to %i step %i : i32 {
      // CHECK: %[[AT:.*]] = arith.addi %k,
      // CHECK-NEXT: ttg.memdesc_index %a[%[[AT]]]
      %a_k = ttg.memdesc_index %a[%k] : !a -> !a_i
    }
    ttg.warp_yield
  }
  // CHECK: partition0(%inner: !ttg.memdesc<3x64x64xf16, {{.*}}>, %[[J:.*]]: i32)
  partition0(%inner: !a, %j: i32) num_warps(4) {
    // CHECK: %[[AT:.*]] = arith.addi %[[J]],
    // CHECK-NEXT: ttg.memdesc_index %inner[%[[AT]]]
    %a_j = ttg.memdesc_index %inner[%j] : !a -> !a_i
    ttg.warp_return
  } : (!a, i32) -> ()
  tt.return
}

// -----

#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
!spec = !tlx.storage_alias_spec<smem>

// A size that is no multiple of 1024 gets the rows that fit.
// CHECK-LABEL: @small_rows(
tt.func @small_rows() {
  // CHECK-NEXT: ttg.local_alloc {alignment = 16 : i32} : () -> !ttg.memdesc<3x64xi8,
  %s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 192>} : !spec
  %a = tlx.storage_alias_local_alloc %s : !spec -> !ttg.memdesc<3x16xf32, #plain, #smem, mutable>
  tt.return
}
