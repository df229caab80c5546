// RUN: tlx-opt %s -p tlx-storage-alias-lowering,tlx-rewrite-local-alias | filecheck %s
// Every stage can be printed and read back.
// RUN: tlx-opt %s -p tlx-storage-alias-size-definition | tlx-opt -p tlx-buffer-offset-calculation | tlx-opt -p tlx-storage-alias-allocation | tlx-opt -p tlx-rewrite-local-alias | filecheck %s

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!spec = !tlx.storage_alias_spec<smem>
!a = !ttg.memdesc<6x64x64xf16, #shared, #smem, mutable>
!b = !ttg.memdesc<3x64x256xf16, #shared, #smem, mutable>
!c = !ttg.memdesc<2x64x256xf16, #shared, #smem, mutable>

// The ring of a warp-specialised GEMM and the staging buffers of its result: B and both halves of A lie side by side,
// C on top of them. One group of buffers, so 3 * 32768 + 6 * 8192 bytes and nothing after.
// CHECK-LABEL: @gemm
tt.func @gemm(%i: i32) {
  // CHECK-NEXT: %storage = ttg.local_alloc {alignment = 1024 : i32} : () -> !ttg.memdesc<144x1024xi8,
  %storage = tlx.storage_alias_spec storage = smem : !spec
  // CHECK-NEXT: %a = ttg.memdesc_reinterpret %storage : {{.*}} -> !ttg.memdesc<18x64x64xf16,
  %a = tlx.storage_alias_local_alloc %storage : !spec -> !a
  // CHECK-NEXT: %b = ttg.memdesc_reinterpret %storage : {{.*}} -> !ttg.memdesc<3x64x256xf16,
  %b = tlx.storage_alias_local_alloc %storage : !spec -> !b
  // CHECK-NEXT: %c = ttg.memdesc_reinterpret %storage : {{.*}} -> !ttg.memdesc<2x64x256xf16,
  %c = tlx.storage_alias_local_alloc %storage : !spec -> !c
  %all_b = tlx.reuse_group(%b) group_kind = shared, group_size = 3 : (!b) -> !tlx.reuse_group<shared>
  %all_a = tlx.reuse_group(%a) group_kind = shared, group_size = 6 : (!a) -> !tlx.reuse_group<shared>
  %all_c = tlx.reuse_group(%c) group_kind = shared, group_size = 2 : (!c) -> !tlx.reuse_group<shared>
  %ring = tlx.reuse_group(%all_b, %all_a) group_kind = distinct : (!tlx.reuse_group<shared>, !tlx.reuse_group<shared>) -> !tlx.reuse_group<distinct>
  %root = tlx.reuse_group(%ring, %all_c) group_kind = shared : (!tlx.reuse_group<distinct>, !tlx.reuse_group<shared>) -> !tlx.reuse_group<shared>
  tlx.set_buffer_overlap(%storage, %root) : (!spec, !tlx.reuse_group<shared>) -> ()
  // CHECK-NEXT: %[[OFFSET:.*]] = arith.constant 12 : i32
  // CHECK-NEXT: %[[AT:.*]] = arith.addi %i, %[[OFFSET]] : i32
  // CHECK-NEXT: %a_i = ttg.memdesc_index %a[%[[AT]]]
  %a_i = ttg.memdesc_index %a[%i] : !a -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  // CHECK-NEXT: %b_i = ttg.memdesc_index %b[%i]
  %b_i = ttg.memdesc_index %b[%i] : !b -> !ttg.memdesc<64x256xf16, #shared, #smem, mutable>
  // CHECK-NEXT: %c_i = ttg.memdesc_index %c[%i]
  %c_i = ttg.memdesc_index %c[%i] : !c -> !ttg.memdesc<64x256xf16, #shared, #smem, mutable>
  tt.return
}
