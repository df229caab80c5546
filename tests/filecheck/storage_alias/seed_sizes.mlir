// RUN: tlx-opt %s -p tlx-storage-alias-size-definition | filecheck %s --check-prefix SIZE
// RUN: tlx-opt %s -p tlx-storage-alias-lowering | filecheck %s

// Sizes without an overlap tree, and what becomes of the allocations; SEEDS.md has the section of each.

#f32 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#f16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
!f32x2 = !ttg.memdesc<2x64x64xf32, #f32, #smem, mutable>
!bf16x2 = !ttg.memdesc<2x64x64xbf16, #f16, #smem, mutable>
!spec = !tlx.storage_alias_spec<smem>
!spec64 = !tlx.storage_alias_spec<smem, 65536>

// One allocation: 2 * 64 * 64 * 2 bytes. The seed prints the size in the type; ours stands in buffer_shape.
// SIZE-LABEL: @one(
// CHECK-LABEL: @one(
tt.func @one() {
  // SIZE-NEXT: tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 16384>} : !tlx.storage_alias_spec<smem>
  // CHECK-NEXT: ttg.local_alloc {alignment = 1024 : i32} : () -> !ttg.memdesc<16x1024xi8,
  %s = tlx.storage_alias_spec storage = smem : !spec
  // CHECK-NEXT: tlx.local_alias %s : {{.*}} -> !ttg.memdesc<2x64x64xbf16,
  %a = tlx.storage_alias_local_alloc %s : !spec -> !bf16x2
  // CHECK-NEXT: tt.return
  tt.return
}

// The size is the larger of 32768 and 16384; both begin with the region. The seed's backing buffer is one row of 32768
// bytes; ours has rows of 1024, because stock Triton wants powers of two in every dimension but the first.
// SIZE-LABEL: @largest(
// CHECK-LABEL: @largest(
tt.func @largest() {
  // SIZE-NEXT: buffer_shape = array<i64: 32768>
  // CHECK-NEXT: ttg.local_alloc {alignment = 1024 : i32} : () -> !ttg.memdesc<32x1024xi8,
  %s = tlx.storage_alias_spec storage = smem : !spec
  // CHECK-NEXT: %a = tlx.local_alias %s : {{.*}} -> !ttg.memdesc<2x64x64xf32,
  %a = tlx.storage_alias_local_alloc %s : !spec -> !f32x2
  // CHECK-NEXT: %b = tlx.local_alias %s : {{.*}} -> !ttg.memdesc<2x64x64xbf16,
  %b = tlx.storage_alias_local_alloc %s : !spec -> !bf16x2
  // CHECK-NEXT: tt.return
  tt.return
}

// An explicit size with padding stays.
// SIZE-LABEL: @padded(
// CHECK-LABEL: @padded(
tt.func @padded() {
  // SIZE-NEXT: tlx.storage_alias_spec storage = smem, size = 65536 {buffer_shape = array<i64: 65536>}
  // CHECK-NEXT: ttg.local_alloc {alignment = 1024 : i32} : () -> !ttg.memdesc<64x1024xi8,
  %s = tlx.storage_alias_spec storage = smem, size = 65536 : !spec64
  // CHECK-NEXT: %a = tlx.local_alias %s : {{.*}} -> !ttg.memdesc<2x64x64xf32,
  %a = tlx.storage_alias_local_alloc %s : !spec64 -> !f32x2
  tt.return
}

// Two regions in a function are two allocations.
// CHECK-LABEL: @two_regions(
tt.func @two_regions() {
  // CHECK-NEXT: %s = ttg.local_alloc
  %s = tlx.storage_alias_spec storage = smem : !spec
  // CHECK-NEXT: %t = ttg.local_alloc
  %t = tlx.storage_alias_spec storage = smem : !spec
  // CHECK-NEXT: %a = tlx.local_alias %s
  %a = tlx.storage_alias_local_alloc %s : !spec -> !f32x2
  // CHECK-NEXT: %b = tlx.local_alias %t
  %b = tlx.storage_alias_local_alloc %t : !spec -> !bf16x2
  // CHECK-NEXT: tt.return
  tt.return
}
