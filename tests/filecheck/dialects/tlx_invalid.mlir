// RUN: tlx-opt %s --split-input-file --verify-diagnostics

// Each case breaks one rule of one operation; the right use stands in tlx_ops.mlir.

tt.func @size() {
  // expected-error @below {{buffer_size_bytes must be positive, got 0}}
  %0 = tlx.storage_alias_spec storage = smem, size = 0 : !tlx.storage_alias_spec<smem, 0>
  tt.return
}

// -----

tt.func @type() {
  // expected-error @below {{storage kind and size do not match the type}}
  %0 = "tlx.storage_alias_spec"() <{storage = #tlx<storage_kind smem>}> : () -> !tlx.storage_alias_spec<tmem>
  tt.return
}

// -----

tt.func @no_members() {
  // expected-error @below {{reuse_group requires at least one element}}
  %0 = tlx.reuse_group() group_kind = shared : () -> !tlx.reuse_group<shared>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
tt.func @group_size(%b: !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>) {
  // expected-error @below {{group_size must be a positive integer, got 0}}
  %0 = tlx.reuse_group(%b) group_kind = shared, group_size = 0 : (!ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>) -> !tlx.reuse_group<shared>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
tt.func @group_kind(%b: !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>) {
  // expected-error @below {{group_kind attribute (shared) doesn't match result type group kind (distinct)}}
  %0 = "tlx.reuse_group"(%b) <{group_kind = #tlx<reuse_group_kind shared>, group_size = 1 : i64}> : (!ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>) -> !tlx.reuse_group<distinct>
  tt.return
}

// -----

tt.func @member(%x: i32) {
  // expected-error @below {{a member must be an allocation or a reuse_group, found i32}}
  %0 = tlx.reuse_group(%x) group_kind = shared : (i32) -> !tlx.reuse_group<shared>
  tt.return
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
tt.func @alias_space(%b: !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable>) {
  // expected-error @below {{requires the same memory space for all operands and results}}
  %0 = tlx.local_alias %b : !ttg.memdesc<2x64x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}

// -----

tt.func @changed(%x: tensor<64xf32>) {
  // expected-error @below {{changes more than the layout: from tensor<64xf32> to tensor<32xf32>}}
  %0 = tlx.require_layout %x : tensor<64xf32> -> tensor<32xf32>
  tt.return
}

// -----

tt.func @released(%x: tensor<64xf32>) {
  // expected-error @below {{requires the source tensor to have a layout encoding}}
  %0 = tlx.release_layout %x : tensor<64xf32> -> tensor<64xf32>
  tt.return
}
