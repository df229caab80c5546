// RUN: tlx-opt %s -p tlx-propagate-layout --split-input-file --verify-diagnostics

// Two requirements of one buffer, through different views: the first one and the allocation are named.

#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#turned = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#rows = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory
tt.func @two(%c: tensor<64x64xf32>, %ptr: !tt.ptr<f16>, %n: i32) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #rows, #smem, mutable>
  %0 = tlx.require_layout %a : !ttg.memdesc<64x64xf16, #rows, #smem, mutable> -> !ttg.memdesc<64x64xf16, #turned, #smem, mutable>
  %1 = ttng.warp_group_dot %0, %0, %c : !ttg.memdesc<64x64xf16, #turned, #smem, mutable> * !ttg.memdesc<64x64xf16, #turned, #smem, mutable> -> tensor<64x64xf32>
  // expected-error @below {{a buffer can't have two layouts: this layout is asked for, here #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>, but elsewhere it needs #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>}}
  // expected-note @below {{operand A of a wgmma needs an nvmma_shared layout}}
  // expected-note @below {{'a' comes from here}}
  %2 = tlx.require_layout %a {pin} : !ttg.memdesc<64x64xf16, #rows, #smem, mutable> -> !ttg.memdesc<64x64xf16, #tile, #smem, mutable>
  tlx.async_bulk_store %2, %ptr, %n : !ttg.memdesc<64x64xf16, #tile, #smem, mutable> -> !tt.ptr<f16>
  tt.return
}

// -----

// A layout of the user's is not to be changed.

#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#rows = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory
tt.func @users(%i: i32, %c: tensor<64x64xf32>) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16, #tlx.user_layout<#rows>, #smem, mutable>
  %a0 = ttg.memdesc_index %a[%i] : !ttg.memdesc<2x64x64xf16, #tlx.user_layout<#rows>, #smem, mutable> -> !ttg.memdesc<64x64xf16, #tlx.user_layout<#rows>, #smem, mutable>
  %0 = tlx.require_layout %a0 : !ttg.memdesc<64x64xf16, #tlx.user_layout<#rows>, #smem, mutable> -> !ttg.memdesc<64x64xf16, #tile, #smem, mutable>
  // expected-error @below {{a buffer can't have two layouts: operand A of a wgmma needs an nvmma_shared layout, here #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>, but elsewhere the user chose #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 4, order = [1, 0]}>}}
  // expected-note @below {{this buffer has the layout that the user chose}}
  // expected-note @below {{'a' comes from here}}
  %1 = ttng.warp_group_dot %0, %0, %c : !ttg.memdesc<64x64xf16, #tile, #smem, mutable> * !ttg.memdesc<64x64xf16, #tile, #smem, mutable> -> tensor<64x64xf32>
  tt.return
}

// -----

// What is asked for must do for whoever takes the buffer, also where that one never asked.

#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#rows = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory
tt.func @unfit(%c: tensor<64x64xf32>, %ptr: !tt.ptr<f16>, %n: i32) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #tile, #smem, mutable>
  %0 = tlx.require_layout %a {pin} : !ttg.memdesc<64x64xf16, #tile, #smem, mutable> -> !ttg.memdesc<64x64xf16, #rows, #smem, mutable>
  tlx.async_bulk_store %0, %ptr, %n : !ttg.memdesc<64x64xf16, #rows, #smem, mutable> -> !tt.ptr<f16>
  // expected-error @below {{operand A of a wgmma needs an nvmma_shared layout, found #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 4, order = [1, 0]}>}}
  // expected-note @below {{this layout is asked for}}
  %1 = ttng.warp_group_dot %a, %a, %c : !ttg.memdesc<64x64xf16, #tile, #smem, mutable> * !ttg.memdesc<64x64xf16, #tile, #smem, mutable> -> tensor<64x64xf32>
  tt.return
}

// -----

// A transposition of more than the last two dimensions has no layout of the tensor cores.

#rows = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [2, 1, 0]}>
#back = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1, 2]}>
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, rank = 3}>
#smem = #ttg.shared_memory
tt.func @no_layout(%ptr: !tt.ptr<f16>, %n: i32) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<64x8x64xf16, #rows, #smem, mutable>
  // expected-error @below {{a tile's last two dimensions can be swapped and no others, found [2, 1, 0], and its layout is required to be #ttg.nvmma_shared}}
  // expected-note @below {{this layout is asked for}}
  %t = ttg.memdesc_trans %a {order = array<i32: 2, 1, 0>} : !ttg.memdesc<64x8x64xf16, #rows, #smem, mutable> -> !ttg.memdesc<64x8x64xf16, #back, #smem, mutable>
  %0 = tlx.require_layout %t {pin} : !ttg.memdesc<64x8x64xf16, #back, #smem, mutable> -> !ttg.memdesc<64x8x64xf16, #tile, #smem, mutable>
  tlx.async_bulk_store %0, %ptr, %n : !ttg.memdesc<64x8x64xf16, #tile, #smem, mutable> -> !tt.ptr<f16>
  tt.return
}

// -----

// A swizzle mixes eight rows: a part may begin in the middle of the columns, but not of the eight rows.

#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @parts(%ptr: !tt.ptr<f16>, %n: i32) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<64x128xf16, #plain, #smem, mutable>
  %0 = tlx.require_layout %a {pin} : !ttg.memdesc<64x128xf16, #plain, #smem, mutable> -> !ttg.memdesc<64x128xf16, #tile, #smem, mutable>
  tlx.async_bulk_store %0, %ptr, %n : !ttg.memdesc<64x128xf16, #tile, #smem, mutable> -> !tt.ptr<f16>
  %p = ttg.memdesc_subslice %a[8, 32] : !ttg.memdesc<64x128xf16, #plain, #smem, mutable> -> !ttg.memdesc<8x32xf16, #plain, #smem, mutable, 64x128>
  // expected-error @below {{parts of [4, 64] elements split the swizzle of the buffer, whose layout is required to be #ttg.nvmma_shared}}
  // expected-note @below {{this layout is asked for}}
  %q = ttg.memdesc_subslice %a[4, 64] : !ttg.memdesc<64x128xf16, #plain, #smem, mutable> -> !ttg.memdesc<4x64xf16, #plain, #smem, mutable, 64x128>
  tt.return
}

// -----

// A placeholder in tensor memory without a use that determines it.

tt.func @no_use() {
  // expected-error @below {{DummyTMEMLayoutAttr was not resolved during layout propagation}}
  %s = ttng.tmem_alloc : () -> !ttg.memdesc<128x4xi8, #tlx.dummy_tmem_layout, #ttng.tensor_memory, mutable>
  tt.return
}
