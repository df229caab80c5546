// RUN: tlx-opt %s -p tlx-storage-alias-allocation | filecheck %s

// Padding as more buffers in the array, with the numbers of the design: 2 buffers of 4x8xf16, 64 bytes each, 128 bytes
// from one to the next. The array ends with its last buffer: no slot of padding after it.

#rows = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
!spec = !tlx.storage_alias_spec<smem>
!x2 = !ttg.memdesc<2x4x8xf16, #rows, #smem, mutable>
!x1 = !ttg.memdesc<4x8xf16, #rows, #smem, mutable>

// CHECK-LABEL: @stride(
tt.func @stride(%i: i32) {
  %s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 256>} : !spec
  // CHECK: %a = tlx.local_alias {{.*}} -> !ttg.memdesc<3x4x8xf16,
  %a = tlx.storage_alias_local_alloc %s {buffer_offset = 0 : i64, bytes_between_buffers = 128 : i64, group_size = 1 : i64} : !spec -> !x2
  // CHECK-NEXT: %[[SCALE:.*]] = arith.constant 2 : i32
  // CHECK-NEXT: %[[AT:.*]] = arith.muli %i, %[[SCALE]] : i32
  // CHECK-NEXT: ttg.memdesc_index %a[%[[AT]]]
  %view = ttg.memdesc_index %a[%i] : !x2 -> !x1
  tt.return
}

// CHECK-LABEL: @stride_and_offset(
tt.func @stride_and_offset(%i: i32) {
  %s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 256>} : !spec
  // CHECK: %a = tlx.local_alias {{.*}} -> !ttg.memdesc<4x4x8xf16,
  %a = tlx.storage_alias_local_alloc %s {buffer_offset = 64 : i64, bytes_between_buffers = 128 : i64, group_size = 1 : i64} : !spec -> !x2
  // CHECK-NEXT: %[[SCALE:.*]] = arith.constant 2 : i32
  // CHECK-NEXT: %[[SCALED:.*]] = arith.muli %i, %[[SCALE]] : i32
  // CHECK-NEXT: %[[OFFSET:.*]] = arith.constant 1 : i32
  // CHECK-NEXT: %[[AT:.*]] = arith.addi %[[SCALED]], %[[OFFSET]] : i32
  // CHECK-NEXT: ttg.memdesc_index %a[%[[AT]]]
  %view = ttg.memdesc_index %a[%i] : !x2 -> !x1
  tt.return
}

// Buffers 0 and 1 are slots 1 and 3.
// CHECK-LABEL: @constants(
tt.func @constants() {
  %s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 256>} : !spec
  // CHECK: %a = tlx.local_alias {{.*}} -> !ttg.memdesc<4x4x8xf16,
  %a = tlx.storage_alias_local_alloc %s {buffer_offset = 64 : i64, bytes_between_buffers = 128 : i64, group_size = 1 : i64} : !spec -> !x2
  %c0 = arith.constant 0 : i32
  // CHECK: %[[ONE:.*]] = arith.constant 1 : i32
  // CHECK-NEXT: %view0 = ttg.memdesc_index %a[%[[ONE]]]
  %view0 = ttg.memdesc_index %a[%c0] : !x2 -> !x1
  %c1 = arith.constant 1 : i32
  // CHECK: %[[THREE:.*]] = arith.constant 3 : i32
  // CHECK-NEXT: %view1 = ttg.memdesc_index %a[%[[THREE]]]
  %view1 = ttg.memdesc_index %a[%c1] : !x2 -> !x1
  tt.return
}

// A view of the array has the padding of the array.
// CHECK-LABEL: @through_reinterpret(
tt.func @through_reinterpret(%i: i32) {
  %s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 256>} : !spec
  // CHECK: %a = tlx.local_alias {{.*}} -> !ttg.memdesc<4x4x8xf16,
  %a = tlx.storage_alias_local_alloc %s {buffer_offset = 64 : i64, bytes_between_buffers = 128 : i64, group_size = 1 : i64} : !spec -> !x2
  // CHECK-NEXT: %reinterp = ttg.memdesc_reinterpret %a : {{.*}} -> !ttg.memdesc<4x4x8xi16,
  %reinterp = ttg.memdesc_reinterpret %a : !x2 -> !ttg.memdesc<2x4x8xi16, #rows, #smem, mutable>
  // CHECK: %[[SCALED:.*]] = arith.muli %i,
  // CHECK: %[[AT:.*]] = arith.addi %[[SCALED]],
  // CHECK-NEXT: ttg.memdesc_index %reinterp[%[[AT]]]
  %view = ttg.memdesc_index %reinterp[%i] : !ttg.memdesc<2x4x8xi16, #rows, #smem, mutable> -> !ttg.memdesc<4x8xi16, #rows, #smem, mutable>
  tt.return
}

// So has what a branch hands out; both branches must hand out arrays that are padded in one way, which `%other` is as
// a member of the same shared group would be.
// CHECK-LABEL: @through_control_flow(
tt.func @through_control_flow(%i: i32, %cond: i1) {
  %s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 256>} : !spec
  // CHECK: %alias = tlx.local_alias {{.*}} -> !ttg.memdesc<4x4x8xf16,
  %alias = tlx.storage_alias_local_alloc %s {buffer_offset = 64 : i64, bytes_between_buffers = 128 : i64, group_size = 1 : i64} : !spec -> !x2
  %other = tlx.storage_alias_local_alloc %s {buffer_offset = 64 : i64, bytes_between_buffers = 128 : i64, group_size = 1 : i64} : !spec -> !x2
  // CHECK: %result = scf.if %cond -> (!ttg.memdesc<4x4x8xf16,
  %result = scf.if %cond -> (!x2) {
    scf.yield %alias : !x2
  } else {
    scf.yield %other : !x2
  }
  // CHECK: %[[SCALED:.*]] = arith.muli %i,
  // CHECK: %[[AT:.*]] = arith.addi %[[SCALED]],
  // CHECK-NEXT: ttg.memdesc_index %result[%[[AT]]]
  %view = ttg.memdesc_index %result[%i] : !x2 -> !x1
  tt.return
}
