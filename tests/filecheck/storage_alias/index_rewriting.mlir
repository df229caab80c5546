// RUN: tlx-opt %s -p tlx-storage-alias-allocation | filecheck %s

// The buffers of %a lie at i * 2, those of %q at (i / 2) * 4 + i % 2 + 2. Wherever the array goes its type counts all
// slots up to the last buffer, and every index into it is mapped.

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#turned = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#wide = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
!spec = !tlx.storage_alias_spec<smem>
!a = !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
!a_i = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
!q = !ttg.memdesc<4x64x64xf16, #shared, #smem, mutable>
!wide = !ttg.memdesc<2x64x32xf32, #wide, #smem, mutable>
!wide_i = !ttg.memdesc<64x32xf32, #wide, #smem, mutable>
!halves = !ttg.memdesc<4x32x64xf16, #shared, #smem, mutable>
!half = !ttg.memdesc<32x64xf16, #shared, #smem, mutable>
!turned = !ttg.memdesc<2x64x64xf16, #turned, #smem, mutable>
!turned_i = !ttg.memdesc<64x64xf16, #turned, #smem, mutable>
!second = !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable, 4x64x64>
!left = !ttg.memdesc<2x64x32xf16, #shared, #smem, mutable, 2x64x64>
!left_i = !ttg.memdesc<64x32xf16, #shared, #smem, mutable, 64x64>

// CHECK-LABEL: @structured(
tt.func @structured(%i: i32, %c: i1) {
  %s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 24576>} : !spec
  %a = tlx.storage_alias_local_alloc %s {buffer_offset = 0 : i64, bytes_between_buffers = 16384 : i64, group_size = 1 : i64} : !spec -> !a
  // CHECK: %f = scf.for %k = {{.*}} iter_args(%x = %a) -> (!ttg.memdesc<3x64x64xf16, {{.*}}>)
  %f = scf.for %k = %i to %i step %i iter_args(%x = %a) -> (!a) : i32 {
    // CHECK-NEXT: %[[TWO:.*]] = arith.constant 2 : i32
    // CHECK-NEXT: %[[AT:.*]] = arith.muli %k, %[[TWO]] : i32
    // CHECK-NEXT: ttg.memdesc_index %x[%[[AT]]] : !ttg.memdesc<3x64x64xf16,
    %x_k = ttg.memdesc_index %x[%k] : !a -> !a_i
    // CHECK-NEXT: scf.yield %x : !ttg.memdesc<3x64x64xf16,
    scf.yield %x : !a
  }
  // CHECK: %r = scf.if %c -> (!ttg.memdesc<3x64x64xf16,
  %r = scf.if %c -> (!a) {
    scf.yield %a : !a
  } else {
    scf.yield %f : !a
  }
  // CHECK: scf.while (%y = %r) : (!ttg.memdesc<3x64x64xf16, {{.*}}>) -> !ttg.memdesc<3x64x64xf16,
  %w = scf.while (%y = %r) : (!a) -> !a {
    scf.condition(%c) %y : !a
  } do {
  // CHECK: ^{{.*}}(%z: !ttg.memdesc<3x64x64xf16, {{.*}}>):
  ^bb0(%z: !a):
    scf.yield %z : !a
  }
  // CHECK: %t = arith.select %c, %a, %w : !ttg.memdesc<3x64x64xf16,
  %t = arith.select %c, %a, %w : !a
  // CHECK: %[[TWO:.*]] = arith.constant 2 : i32
  // CHECK-NEXT: %t_1 = ttg.memdesc_index %t[%[[TWO]]]
  %c1 = arith.constant 1 : i32
  %t_1 = ttg.memdesc_index %t[%c1] : !a -> !a_i
  tt.return
}

// CHECK-LABEL: @branches(
tt.func @branches(%i: i32, %c: i1) {
  %s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 24576>} : !spec
  %a = tlx.storage_alias_local_alloc %s {buffer_offset = 0 : i64, bytes_between_buffers = 16384 : i64, group_size = 1 : i64} : !spec -> !a
  // CHECK: cf.cond_br %c, ^[[THEN:.*]](%a : !ttg.memdesc<3x64x64xf16, {{.*}}>), ^[[END:.*]](%a : !ttg.memdesc<3x64x64xf16,
  cf.cond_br %c, ^bb1(%a : !a), ^bb2(%a : !a)
^bb1(%x: !a):
  cf.br ^bb2(%x : !a)
// CHECK: ^[[END]](%y: !ttg.memdesc<3x64x64xf16, {{.*}}>):
^bb2(%y: !a):
  // CHECK: %[[AT:.*]] = arith.muli %i,
  // CHECK-NEXT: ttg.memdesc_index %y[%[[AT]]]
  %y_i = ttg.memdesc_index %y[%i] : !a -> !a_i
  tt.return
}

// Partitions get the array as an argument; what they make of it there is followed too.
// CHECK-LABEL: @partitions(
tt.func @partitions(%i: i32) {
  %s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 24576>} : !spec
  %a = tlx.storage_alias_local_alloc %s {buffer_offset = 0 : i64, bytes_between_buffers = 16384 : i64, group_size = 1 : i64} : !spec -> !a
  %r = ttg.warp_specialize(%a, %i)
  default {
    // CHECK: ttg.warp_yield %a : !ttg.memdesc<3x64x64xf16,
    ttg.warp_yield %a : !a
  }
  // CHECK: partition0(%p: !ttg.memdesc<3x64x64xf16, {{.*}}>, %j: i32)
  partition0(%p: !a, %j: i32) num_warps(4) {
    // CHECK: scf.for {{.*}} iter_args(%x = %p) -> (!ttg.memdesc<3x64x64xf16,
    %f = scf.for %k = %j to %j step %j iter_args(%x = %p) -> (!a) : i32 {
      // CHECK: %[[AT:.*]] = arith.muli %k,
      // CHECK-NEXT: ttg.memdesc_index %x[%[[AT]]]
      %x_k = ttg.memdesc_index %x[%k] : !a -> !a_i
      scf.yield %x : !a
    }
    ttg.warp_return
  // CHECK: } : (!ttg.memdesc<3x64x64xf16, {{.*}}>, i32) -> !ttg.memdesc<3x64x64xf16,
  } : (!a, i32) -> !a
  tt.return
}

// A function that is called with arrays at different places exists twice.
// CHECK-LABEL: @caller(
tt.func @caller(%i: i32) {
  %s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 32768>} : !spec
  %a = tlx.storage_alias_local_alloc %s {buffer_offset = 0 : i64, bytes_between_buffers = 16384 : i64, group_size = 1 : i64} : !spec -> !a
  %b = tlx.storage_alias_local_alloc %s {buffer_offset = 8192 : i64, bytes_between_buffers = 16384 : i64, group_size = 1 : i64} : !spec -> !a
  // CHECK: tt.call @callee(%a, %i) : (!ttg.memdesc<3x64x64xf16, {{.*}}>, i32) -> !ttg.memdesc<3x64x64xf16,
  %a2 = tt.call @callee(%a, %i) : (!a, i32) -> !a
  // CHECK: %b2 = tt.call @callee_1(%b, %i) : (!ttg.memdesc<4x64x64xf16, {{.*}}>, i32) -> !ttg.memdesc<4x64x64xf16,
  %b2 = tt.call @callee(%b, %i) : (!a, i32) -> !a
  // CHECK: arith.muli
  // CHECK: arith.addi
  // CHECK-NEXT: memdesc_index %b2
  %b_i = ttg.memdesc_index %b2[%i] : !a -> !a_i
  tt.return
}
// CHECK: tt.func private @callee(%x: !ttg.memdesc<3x64x64xf16, {{.*}}>, %i: i32) -> !ttg.memdesc<3x64x64xf16,
// CHECK: tt.func private @callee_1(%x: !ttg.memdesc<4x64x64xf16, {{.*}}>, %i: i32) -> !ttg.memdesc<4x64x64xf16,
tt.func private @callee(%x: !a, %i: i32) -> !a {
  %x_i = ttg.memdesc_index %x[%i] : !a -> !a_i
  tt.return %x : !a
}

// CHECK-LABEL: @views(
tt.func @views(%i: i32) {
  %s = tlx.storage_alias_spec storage = smem {buffer_shape = array<i64: 65536>} : !spec
  %a = tlx.storage_alias_local_alloc %s {buffer_offset = 0 : i64, bytes_between_buffers = 16384 : i64, group_size = 1 : i64} : !spec -> !a
  %q = tlx.storage_alias_local_alloc %s {buffer_offset = 16384 : i64, bytes_between_buffers = 32768 : i64, group_size = 2 : i64} : !spec -> !q

  // As many bytes in a buffer: the same map.
  // CHECK: %wide = ttg.memdesc_reinterpret %a : {{.*}} -> !ttg.memdesc<3x64x32xf32,
  %wide = ttg.memdesc_reinterpret %a : !a -> !wide
  // CHECK: %[[AT:.*]] = arith.muli %i,
  // CHECK-NEXT: ttg.memdesc_index %wide[%[[AT]]]
  %wide_i = ttg.memdesc_index %wide[%i] : !wide -> !wide_i

  // Two for one: (i / 2) * 4 + i % 2.
  // CHECK: %halves = tlx.local_alias %a : {{.*}} -> !ttg.memdesc<6x32x64xf16,
  %halves = tlx.local_alias %a : !a -> !halves
  // CHECK-NEXT: %[[SIZE:.*]] = arith.constant 2 : i32
  // CHECK-NEXT: %[[GROUP:.*]] = arith.divui %i, %[[SIZE]] : i32
  // CHECK-NEXT: %[[MEMBER:.*]] = arith.remui %i, %[[SIZE]] : i32
  // CHECK-NEXT: %[[STRIDE:.*]] = arith.constant 4 : i32
  // CHECK-NEXT: %[[START:.*]] = arith.muli %[[GROUP]], %[[STRIDE]] : i32
  // CHECK-NEXT: %[[AT:.*]] = arith.addi %[[START]], %[[MEMBER]] : i32
  // CHECK-NEXT: ttg.memdesc_index %halves[%[[AT]]]
  %halves_i = ttg.memdesc_index %halves[%i] : !halves -> !half

  // Stock Triton transposes and reshapes buffers only, not arrays of them; the layouts say all.
  // CHECK: %turned = ttg.memdesc_reinterpret %a {{.*}} -> !ttg.memdesc<3x64x64xf16,
  %turned = ttg.memdesc_trans %a {order = array<i32: 0, 2, 1>} : !a -> !turned
  // CHECK: %[[AT:.*]] = arith.muli %i,
  // CHECK-NEXT: ttg.memdesc_index %turned[%[[AT]]]
  %turned_i = ttg.memdesc_index %turned[%i] : !turned -> !turned_i

  // And it indexes arrays of whole buffers only: a part of each is a part of the one.
  %left = ttg.memdesc_subslice %a[0, 0, 32] : !a -> !left
  // CHECK: %[[AT:.*]] = arith.muli %i,
  // CHECK-NEXT: %[[WHOLE:.*]] = ttg.memdesc_index %a[%[[AT]]]
  // CHECK-NEXT: %left_i = ttg.memdesc_subslice %[[WHOLE]][0, 32]
  %left_i = ttg.memdesc_index %left[%i] : !left -> !left_i

  // Buffers 2 and 3 are next to each other, in the second group: i + 6.
  // CHECK: %second = ttg.memdesc_subslice %q[0, 0, 0] : {{.*}} -> !ttg.memdesc<8x64x64xf16, #{{.*}}, #smem, mutable>
  %second = ttg.memdesc_subslice %q[2, 0, 0] : !q -> !second
  // CHECK-NEXT: %[[SIX:.*]] = arith.constant 6 : i32
  // CHECK-NEXT: %[[AT:.*]] = arith.addi %i, %[[SIX]] : i32
  // CHECK-NEXT: ttg.memdesc_index %second[%[[AT]]]
  %second_i = ttg.memdesc_index %second[%i] : !second -> !a_i

  // What is no larger than a buffer lies in the first one.
  // CHECK: %[[TWO:.*]] = arith.constant 2 : i32
  // CHECK-NEXT: %[[FIRST:.*]] = ttg.memdesc_index %q[%[[TWO]]]
  // CHECK-NEXT: %one = ttg.memdesc_reinterpret %[[FIRST]] : !ttg.memdesc<64x64xf16, {{.*}}> -> !ttg.memdesc<64x32xf32,
  %one = ttg.memdesc_reinterpret %q : !q -> !wide_i
  tt.return
}
