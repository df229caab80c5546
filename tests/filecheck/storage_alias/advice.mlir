// RUN: tlx-opt %s -p tlx-storage-advice --split-input-file --verify-diagnostics | filecheck %s

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!spec = !tlx.storage_alias_spec<smem>
!a = !ttg.memdesc<6x64x64xf16, #shared, #smem, mutable>
!b = !ttg.memdesc<3x64x256xf16, #shared, #smem, mutable>
!c = !ttg.memdesc<2x64x256xf16, #shared, #smem, mutable>
!shared = !tlx.reuse_group<shared>

// The ring of a GEMM, 3 stages of 16,384 + 32,768 bytes, and C on top of it. All of it has room side by side.
// CHECK-LABEL: @gemm
tt.func @gemm() {
  // The module stays as it is.
  // CHECK-NEXT: tlx.storage_alias_spec
  // expected-remark @below {{in 'storage', c could grow by 81,920 B in the region without any cost: b and a take 147,456, c takes 65,536}}
  // expected-remark @below {{in 'storage', b, a and c need not share memory: apart they take 65,536 B more, in all 212,992 of 232,448}}
  // expected-remark @below {{in 'storage', 4 of b and 8 of a instead of 3 of b and 6 of a take 49,152 B more, in all 196,608 of 232,448; 2 of b and 4 of a save 49,152}}
  %storage = tlx.storage_alias_spec storage = smem : !spec
  %a = tlx.storage_alias_local_alloc %storage : !spec -> !a
  %b = tlx.storage_alias_local_alloc %storage : !spec -> !b
  %c = tlx.storage_alias_local_alloc %storage : !spec -> !c
  %all_b = tlx.reuse_group(%b) group_kind = shared, group_size = 3 : (!b) -> !shared
  %all_a = tlx.reuse_group(%a) group_kind = shared, group_size = 6 : (!a) -> !shared
  %all_c = tlx.reuse_group(%c) group_kind = shared, group_size = 2 : (!c) -> !shared
  %ring = tlx.reuse_group(%all_b, %all_a) group_kind = distinct : (!shared, !shared) -> !tlx.reuse_group<distinct>
  %root = tlx.reuse_group(%ring, %all_c) group_kind = shared : (!tlx.reuse_group<distinct>, !shared) -> !shared
  // CHECK: tlx.set_buffer_overlap
  tlx.set_buffer_overlap(%storage, %root) : (!spec, !shared) -> ()
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!spec = !tlx.storage_alias_spec<smem, 40960>
!a = !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>

// A size that the user gave: unused memory is reported, and no other size is proposed.
tt.func @explicit() {
  // expected-remark @below {{in 's', no buffer takes 24,576 of its 40,960 B: 8,192 to 16,384, 24,576 to 40,960}}
  %s = tlx.storage_alias_spec storage = smem, size = 40960 : !spec
  %a = tlx.storage_alias_local_alloc %s : !spec -> !a
  %g = tlx.reuse_group(%a) group_kind = shared : (!a) -> !tlx.reuse_group<shared>
  tlx.set_buffer_overlap(%s, %g) : (!spec, !tlx.reuse_group<shared>) -> ()
  tt.return
}

// -----

#s = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>
#p = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#l = #ttng.tensor_memory_encoding<blockM = 128, blockN = 1, colStride = 1>
!spec = !tlx.storage_alias_spec<tmem>
!o = !ttg.memdesc<2x128x64xf32, #p, #ttng.tensor_memory, mutable>
!s = !ttg.memdesc<2x128x128xf32, #s, #ttng.tensor_memory, mutable>
!p = !ttg.memdesc<4x128x64xf16, #p, #ttng.tensor_memory, mutable>
!l = !ttg.memdesc<2x128x1xf32, #l, #ttng.tensor_memory, mutable>
!shared = !tlx.reuse_group<shared>
!distinct = !tlx.reuse_group<distinct>

// Flash attention with a head of 64: 128 columns are left. That is enough for P, or for alpha and the rest, not for both.
module attributes {"ttg.target" = "cuda:100"} {
  tt.func @attention() {
    // expected-remark @below {{3 of o instead of 2 of o take 64 columns more, in all 448 of 512; 4 of o still fit; 1 of o save 64}}
    %o = ttng.tmem_alloc : () -> !o
    // expected-remark @below {{in 'qk', p, alpha and m could grow by 62 columns in each group of buffers without any cost: s takes 128, p, alpha and m take 66}}
    // expected-remark @below {{in 'qk', alpha and m need no memory of s: with their own they take 4 columns more, in all 388 of 512}}
    // expected-remark @below {{in 'qk', p needs no memory of s: with its own it takes 128 columns more, in all 512 of 512}}
    // expected-remark @below {{3 of s, 6 of p, 3 of alpha and 3 of m instead of 2 of s, 4 of p, 2 of alpha and 2 of m take 128 columns more, in all 512 of 512; 1 of s, 2 of p, 1 of alpha and 1 of m save 128}}
    %qk = tlx.storage_alias_spec storage = tmem : !spec
    %s = tlx.storage_alias_local_alloc %qk : !spec -> !s
    %p = tlx.storage_alias_local_alloc %qk : !spec -> !p
    %alpha = tlx.storage_alias_local_alloc %qk : !spec -> !l
    %m = tlx.storage_alias_local_alloc %qk : !spec -> !l
    %pairs = tlx.reuse_group(%p) group_kind = shared, group_size = 2 : (!p) -> !shared
    %apart = tlx.reuse_group(%pairs, %alpha, %m) group_kind = distinct : (!shared, !l, !l) -> !distinct
    %root = tlx.reuse_group(%s, %apart) group_kind = shared : (!s, !distinct) -> !shared
    tlx.set_buffer_overlap(%qk, %root) : (!spec, !shared) -> ()
    tt.return
  }
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory

// Over budget: what takes how much, largest first.
tt.func @too_much() {
  // expected-remark @below {{2 of a save 32,768 B}}
  %a = ttg.local_alloc : () -> !ttg.memdesc<3x128x128xf16, #shared, #smem, mutable>
  // expected-warning @below {{'too_much' needs 245,760 B of shared memory, sm_90a has 232,448}}
  // expected-note @below {{245,760 B: b, 15 buffers of 16,384}}
  // expected-note @below {{98,304 B: a, 3 buffers of 32,768}}
  // expected-remark @below {{14 of b save 16,384 B}}
  %b = ttg.local_alloc : () -> !ttg.memdesc<15x64x128xf16, #shared, #smem, mutable>
  tt.return
}
