// RUN: tlx-opt %s -p tlx-propagate-layout --split-input-file | filecheck %s

// Back through a transposition, an index and a part, and forward to the other views of the allocation.

// CHECK-DAG:   #[[TILE:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
// CHECK-DAG:   #[[TURNED:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = true, elementBitWidth = 16}>
// CHECK-LABEL: @views
// CHECK-NEXT:    %a = ttg.local_alloc : () -> !ttg.memdesc<2x64x128xf16, #[[TILE]], #smem, mutable>
// CHECK-NEXT:    %other = ttg.local_alloc : () -> !ttg.memdesc<2x64x128xf16, #[[KEPT:.*]], #smem, mutable>
// CHECK-NEXT:    %a0 = ttg.memdesc_index %a[%i] : {{.*}} -> !ttg.memdesc<64x128xf16, #[[TILE]], #smem, mutable>
// CHECK-NEXT:    %p = ttg.memdesc_subslice %a0[0, 64] : {{.*}} -> !ttg.memdesc<64x64xf16, #[[TILE]], #smem, mutable, 64x128>
// CHECK-NEXT:    %t = ttg.memdesc_trans %p {{.*}} -> !ttg.memdesc<64x64xf16, #[[TURNED]], #smem, mutable>
// CHECK-NEXT:    ttng.warp_group_dot %t, %t, %c
// CHECK-NEXT:    %w = ttg.memdesc_trans %a0 {{.*}} -> !ttg.memdesc<128x64xf16, #[[TURNED]], #smem, mutable>
// CHECK-NEXT:    ttg.local_load %w
// CHECK-NEXT:    ttg.memdesc_index %other[%i] : {{.*}} -> !ttg.memdesc<64x128xf16, #[[KEPT]], #smem, mutable>
// CHECK-NOT:     require_layout
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#turned = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#wanted = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @views(%i: i32, %c: tensor<64x64xf32>) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<2x64x128xf16, #tile, #smem, mutable>
  %other = ttg.local_alloc : () -> !ttg.memdesc<2x64x128xf16, #tile, #smem, mutable>
  %a0 = ttg.memdesc_index %a[%i] : !ttg.memdesc<2x64x128xf16, #tile, #smem, mutable> -> !ttg.memdesc<64x128xf16, #tile, #smem, mutable>
  %p = ttg.memdesc_subslice %a0[0, 64] : !ttg.memdesc<64x128xf16, #tile, #smem, mutable> -> !ttg.memdesc<64x64xf16, #tile, #smem, mutable, 64x128>
  %t = ttg.memdesc_trans %p {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #tile, #smem, mutable, 64x128> -> !ttg.memdesc<64x64xf16, #turned, #smem, mutable>
  %r = tlx.require_layout %t : !ttg.memdesc<64x64xf16, #turned, #smem, mutable> -> !ttg.memdesc<64x64xf16, #wanted, #smem, mutable>
  %0 = ttng.warp_group_dot %r, %r, %c : !ttg.memdesc<64x64xf16, #wanted, #smem, mutable> * !ttg.memdesc<64x64xf16, #wanted, #smem, mutable> -> tensor<64x64xf32>
  %w = ttg.memdesc_trans %a0 {order = array<i32: 1, 0>} : !ttg.memdesc<64x128xf16, #tile, #smem, mutable> -> !ttg.memdesc<128x64xf16, #turned, #smem, mutable>
  %1 = ttg.local_load %w : !ttg.memdesc<128x64xf16, #turned, #smem, mutable> -> tensor<128x64xf16>
  %2 = ttg.memdesc_index %other[%i] : !ttg.memdesc<2x64x128xf16, #tile, #smem, mutable> -> !ttg.memdesc<64x128xf16, #tile, #smem, mutable>
  tt.return
}

// -----

// Wherever control flow, calls and captures take a buffer, it has one layout: that of all allocations it may come from.

// CHECK-DAG:   #[[WANTED:.*]] = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
// CHECK-LABEL: @callee
// CHECK-SAME:    %a: !ttg.memdesc<64x64xf16, #[[WANTED]], #smem, mutable>) -> !ttg.memdesc<64x64xf16, #[[WANTED]], #smem, mutable>
// CHECK-LABEL: @carried
// CHECK-NEXT:    %a = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #[[WANTED]], #smem, mutable>
// CHECK-NEXT:    %b = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #[[WANTED]], #smem, mutable>
// CHECK-NEXT:    %d = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #[[WANTED]], #smem, mutable>
// CHECK-NEXT:    %s = scf.if %p -> (!ttg.memdesc<64x64xf16, #[[WANTED]], #smem, mutable>)
// CHECK:         %l = scf.for {{.*}} iter_args(%x = %s) -> (!ttg.memdesc<64x64xf16, #[[WANTED]], #smem, mutable>)
// CHECK:           arith.select %p, %x, %d : !ttg.memdesc<64x64xf16, #[[WANTED]], #smem, mutable>
// CHECK:         tt.call @callee(%l) : (!ttg.memdesc<64x64xf16, #[[WANTED]], #smem, mutable>) -> !ttg.memdesc<64x64xf16, #[[WANTED]], #smem, mutable>
// CHECK:         cf.br ^{{.*}}(%g : !ttg.memdesc<64x64xf16, #[[WANTED]], #smem, mutable>)
// CHECK:         ttg.warp_specialize(%y, %ptr, %n)
// CHECK:         partition0(%z: !ttg.memdesc<64x64xf16, #[[WANTED]], #smem, mutable>,
// CHECK-NEXT:      tlx.async_bulk_store %z,
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#wanted = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
builtin.module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func private @callee(%a: !ttg.memdesc<64x64xf16, #plain, #smem, mutable>) -> !ttg.memdesc<64x64xf16, #plain, #smem, mutable> {
    tt.return %a : !ttg.memdesc<64x64xf16, #plain, #smem, mutable>
  }
  tt.func @carried(%p: i1, %n: i32, %ptr: !tt.ptr<f16>) {
    %a = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #plain, #smem, mutable>
    %b = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #plain, #smem, mutable>
    %d = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #plain, #smem, mutable>
    %s = scf.if %p -> (!ttg.memdesc<64x64xf16, #plain, #smem, mutable>) {
      scf.yield %a : !ttg.memdesc<64x64xf16, #plain, #smem, mutable>
    } else {
      scf.yield %b : !ttg.memdesc<64x64xf16, #plain, #smem, mutable>
    }
    %l = scf.for %i = %n to %n step %n iter_args(%x = %s) -> (!ttg.memdesc<64x64xf16, #plain, #smem, mutable>) : i32 {
      %e = arith.select %p, %x, %d : !ttg.memdesc<64x64xf16, #plain, #smem, mutable>
      scf.yield %e : !ttg.memdesc<64x64xf16, #plain, #smem, mutable>
    }
    %g = tt.call @callee(%l) : (!ttg.memdesc<64x64xf16, #plain, #smem, mutable>) -> !ttg.memdesc<64x64xf16, #plain, #smem, mutable>
    cf.br ^next(%g : !ttg.memdesc<64x64xf16, #plain, #smem, mutable>)
  ^next(%y: !ttg.memdesc<64x64xf16, #plain, #smem, mutable>):
    ttg.warp_specialize(%y, %ptr, %n)
    default {
      ttg.warp_yield
    }
    partition0(%z: !ttg.memdesc<64x64xf16, #plain, #smem, mutable>, %q: !tt.ptr<f16>, %m: i32) num_warps(4) {
      %r = tlx.require_layout %z {pin} : !ttg.memdesc<64x64xf16, #plain, #smem, mutable> -> !ttg.memdesc<64x64xf16, #wanted, #smem, mutable>
      tlx.async_bulk_store %r, %q, %m : !ttg.memdesc<64x64xf16, #wanted, #smem, mutable> -> !tt.ptr<f16>
      ttg.warp_return
    } : (!ttg.memdesc<64x64xf16, #plain, #smem, mutable>, !tt.ptr<f16>, i32) -> ()
    tt.return
  }
}

// -----

// Threads load and store in any layout: what they are asked to prefer yields to what the tensor cores need, or the user
// has pinned; alone it decides. A reinterpretation of bytes has a layout of its own, one of the elements' kind has not.

// CHECK-DAG:   #[[TILE:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-DAG:   #[[ROWS:.*]] = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
// CHECK-LABEL: @preferences
// CHECK-NEXT:    %a = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #[[TILE]], #smem, mutable>
// CHECK-NEXT:    %b = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #[[ROWS]], #smem, mutable>
// CHECK-NEXT:    %bytes = ttg.local_alloc : () -> !ttg.memdesc<8192xi8, #[[LINE:.*]], #smem, mutable>
// CHECK-NEXT:    %v = ttg.memdesc_reinterpret %bytes : !ttg.memdesc<8192xi8, #[[LINE]], {{.*}}> -> !ttg.memdesc<64x64xf16, #[[ROWS]], #smem, mutable>
// CHECK-NEXT:    %ints = ttg.local_alloc : () -> !ttg.memdesc<64x64xi16, #[[ROWS]], #smem, mutable>
// CHECK-NEXT:    %f = ttg.memdesc_reinterpret %ints : {{.*}} -> !ttg.memdesc<64x64xf16, #[[ROWS]], #smem, mutable>
// CHECK-NEXT:    ttg.local_load %a : !ttg.memdesc<64x64xf16, #[[TILE]],
// CHECK-NEXT:    ttng.warp_group_dot %a, %a
// CHECK-NEXT:    ttg.local_load %b : !ttg.memdesc<64x64xf16, #[[ROWS]],
// CHECK-NEXT:    ttg.local_load %v : !ttg.memdesc<64x64xf16, #[[ROWS]],
// CHECK-NEXT:    ttg.local_load %f : !ttg.memdesc<64x64xf16, #[[ROWS]],
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#line = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#rows = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @preferences(%c: tensor<64x64xf32>) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #plain, #smem, mutable>
  %b = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #plain, #smem, mutable>
  %bytes = ttg.local_alloc : () -> !ttg.memdesc<8192xi8, #line, #smem, mutable>
  %v = ttg.memdesc_reinterpret %bytes : !ttg.memdesc<8192xi8, #line, #smem, mutable> -> !ttg.memdesc<64x64xf16, #plain, #smem, mutable>
  %ints = ttg.local_alloc : () -> !ttg.memdesc<64x64xi16, #plain, #smem, mutable>
  %f = ttg.memdesc_reinterpret %ints : !ttg.memdesc<64x64xi16, #plain, #smem, mutable> -> !ttg.memdesc<64x64xf16, #plain, #smem, mutable>
  %0 = tlx.require_layout %a : !ttg.memdesc<64x64xf16, #plain, #smem, mutable> -> !ttg.memdesc<64x64xf16, #rows, #smem, mutable>
  %1 = ttg.local_load %0 : !ttg.memdesc<64x64xf16, #rows, #smem, mutable> -> tensor<64x64xf16>
  %2 = tlx.require_layout %a : !ttg.memdesc<64x64xf16, #plain, #smem, mutable> -> !ttg.memdesc<64x64xf16, #tile, #smem, mutable>
  %3 = ttng.warp_group_dot %2, %2, %c : !ttg.memdesc<64x64xf16, #tile, #smem, mutable> * !ttg.memdesc<64x64xf16, #tile, #smem, mutable> -> tensor<64x64xf32>
  %4 = tlx.require_layout %b : !ttg.memdesc<64x64xf16, #plain, #smem, mutable> -> !ttg.memdesc<64x64xf16, #rows, #smem, mutable>
  %5 = ttg.local_load %4 : !ttg.memdesc<64x64xf16, #rows, #smem, mutable> -> tensor<64x64xf16>
  %6 = tlx.require_layout %v : !ttg.memdesc<64x64xf16, #plain, #smem, mutable> -> !ttg.memdesc<64x64xf16, #rows, #smem, mutable>
  %7 = ttg.local_load %6 : !ttg.memdesc<64x64xf16, #rows, #smem, mutable> -> tensor<64x64xf16>
  %8 = tlx.require_layout %f : !ttg.memdesc<64x64xf16, #plain, #smem, mutable> -> !ttg.memdesc<64x64xf16, #rows, #smem, mutable>
  %9 = ttg.local_load %8 : !ttg.memdesc<64x64xf16, #rows, #smem, mutable> -> tensor<64x64xf16>
  tt.return
}

// -----

// The user's layout stays, and is that of all views; what asks for the same is content.

// CHECK-LABEL: @users
// CHECK-NEXT:    %a = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16, #tlx.user_layout<#[[ROWS:.*]]>, #smem, mutable>
// CHECK-NEXT:    %b = ttg.memdesc_index %a[%i] : {{.*}} -> !ttg.memdesc<64x64xf16, #tlx.user_layout<#[[ROWS]]>, #smem, mutable>
// CHECK-NEXT:    tlx.async_bulk_store %b,
#rows = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
tt.func @users(%i: i32, %ptr: !tt.ptr<f16>) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16, #tlx.user_layout<#rows>, #smem, mutable>
  %b = ttg.memdesc_index %a[%i] : !ttg.memdesc<2x64x64xf16, #tlx.user_layout<#rows>, #smem, mutable> -> !ttg.memdesc<64x64xf16, #tlx.user_layout<#rows>, #smem, mutable>
  %r = tlx.require_layout %b {pin} : !ttg.memdesc<64x64xf16, #tlx.user_layout<#rows>, #smem, mutable> -> !ttg.memdesc<64x64xf16, #rows, #smem, mutable>
  tlx.async_bulk_store %r, %ptr, %i : !ttg.memdesc<64x64xf16, #rows, #smem, mutable> -> !tt.ptr<f16>
  tt.return
}

// -----

// A swizzle of the user's in other words: it puts the elements where the tensor cores look for them.

// CHECK-DAG:   #[[TILE:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-LABEL: @same_in_other_words
// CHECK-NEXT:    %a = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #tlx.user_layout<#[[TILE]]>, #smem, mutable>
// CHECK-NEXT:    ttng.warp_group_dot %a, %a,
#rows = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
tt.func @same_in_other_words(%c: tensor<64x64xf32>) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #tlx.user_layout<#rows>, #smem, mutable>
  %0 = ttng.warp_group_dot %a, %a, %c : !ttg.memdesc<64x64xf16, #tlx.user_layout<#rows>, #smem, mutable> * !ttg.memdesc<64x64xf16, #tlx.user_layout<#rows>, #smem, mutable> -> tensor<64x64xf32>
  tt.return
}

// -----

// A placeholder in tensor memory is what its users need: scales, or blocks of an operand. An accumulator of a pair of
// CTAs is one from its allocation on.

// CHECK-DAG:   #[[SCALES:.*]] = #ttng.tensor_memory_scales_encoding<>
// CHECK-DAG:   #[[PACKED:.*]] = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
// CHECK-DAG:   #[[PAIR:.*]] = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, twoCTAs = true>
// CHECK-LABEL: @tensor_memory
// CHECK-NEXT:    %s = ttng.tmem_alloc : () -> !ttg.memdesc<128x4xi8, #[[SCALES]], #ttng.tensor_memory, mutable>
// CHECK-NEXT:    %a = ttng.tmem_alloc : () -> !ttg.memdesc<1x128x64xi8, #[[PACKED]], #ttng.tensor_memory, mutable>
// CHECK-NEXT:    %d = ttng.tmem_alloc : () -> !ttg.memdesc<1x128x64xf32, #[[PAIR]], #ttng.tensor_memory, mutable>
#acc = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#pair = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, twoCTAs = true>
#rows = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
#half = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 16}>
#tile16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @tensor_memory(%b: !ttg.memdesc<64x64xi8, #tile, #smem, mutable>, %i: i32, %src: !ttg.memdesc<32x16xi8, #rows, #smem, mutable>, %acc: !ttg.memdesc<128x64xi32, #acc, #ttng.tensor_memory, mutable>, %x: !ttg.memdesc<128x64xf16, #tile16, #smem, mutable>, %y: !ttg.memdesc<64x64xf16, #tile16, #smem, mutable>) {
  %s = ttng.tmem_alloc : () -> !ttg.memdesc<128x4xi8, #tlx.dummy_tmem_layout, #ttng.tensor_memory, mutable>
  %a = ttng.tmem_alloc : () -> !ttg.memdesc<1x128x64xi8, #tlx.dummy_tmem_layout, #ttng.tensor_memory, mutable>
  %d = ttng.tmem_alloc : () -> !ttg.memdesc<1x128x64xf32, #acc, #ttng.tensor_memory, mutable>
  %true = arith.constant true
  ttng.tmem_copy %src, %s : !ttg.memdesc<32x16xi8, #rows, #smem, mutable>, !ttg.memdesc<128x4xi8, #tlx.dummy_tmem_layout, #ttng.tensor_memory, mutable>
  %a0 = ttg.memdesc_index %a[%i] : !ttg.memdesc<1x128x64xi8, #tlx.dummy_tmem_layout, #ttng.tensor_memory, mutable> -> !ttg.memdesc<128x64xi8, #tlx.dummy_tmem_layout, #ttng.tensor_memory, mutable>
  ttng.tc_gen5_mma %a0, %b, %acc, %true, %true : !ttg.memdesc<128x64xi8, #tlx.dummy_tmem_layout, #ttng.tensor_memory, mutable>, !ttg.memdesc<64x64xi8, #tile, #smem, mutable>, !ttg.memdesc<128x64xi32, #acc, #ttng.tensor_memory, mutable>
  %d0 = ttg.memdesc_index %d[%i] : !ttg.memdesc<1x128x64xf32, #acc, #ttng.tensor_memory, mutable> -> !ttg.memdesc<128x64xf32, #acc, #ttng.tensor_memory, mutable>
  %p = tlx.require_layout %d0 : !ttg.memdesc<128x64xf32, #acc, #ttng.tensor_memory, mutable> -> !ttg.memdesc<128x64xf32, #pair, #ttng.tensor_memory, mutable>
  ttng.tc_gen5_mma %x, %y, %p, %true, %true {two_ctas} : !ttg.memdesc<128x64xf16, #tile16, #smem, mutable>, !ttg.memdesc<64x64xf16, #tile16, #smem, mutable>, !ttg.memdesc<128x64xf32, #pair, #ttng.tensor_memory, mutable>
  tt.return
}
